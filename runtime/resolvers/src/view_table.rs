//! Metrics views as tables of SQL clients: one SELECT of a statement asks the view, and the rest reads what it answers.
//!
//! In the syntax tree the view's place is taken by a table with the answer. Of the SELECT over that table the conditions become
//! those of the metrics query, groups become its dimensions, and aggregates of measures the measures; what is left computes from
//! the answer's columns. Nothing that is left may count or sum the answer's rows, which are not those of the view.

mod fields;
mod rewrite;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Value, json};

pub use fields::Fields;

use super::condition::{children, is_empty, literal, text};
use super::{ResolveError, metrics_sql};
use rewrite::{Rewrite, natural_name};

/// The name of a table in a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The schema in lower case; empty if the statement names none.
    pub schema: String,
    /// The name as it is written.
    pub table: String,
}

/// The question that was taken out of a statement.
#[derive(Debug)]
pub struct Taken {
    /// The fields of the view that is asked.
    pub fields: Arc<Fields>,
    /// The metrics query in JSON; none for a statement that reads the columns' types alone.
    pub query: Option<Value>,
}

/// Takes the question to a metrics view out of the syntax tree of a statement, and puts a table of the name `answer` in its
/// place. `find` tells views from other tables; `is_aggregate` knows functions by their names in lower case. Returns none, and
/// leaves the tree as it was, if the statement reads no view.
///
/// # Errors
/// What can't be asked of a view: several views or a join, fields that it lacks, groups that are no dimensions, conditions that
/// filters don't have.
pub fn take(
    document: &mut Value,
    answer: &str,
    find: &dyn Fn(&Named) -> Option<Arc<Fields>>,
    is_aggregate: &dyn Fn(&str) -> bool,
) -> Result<Option<Taken>, ResolveError> {
    let views = tables(document)
        .into_iter()
        .filter_map(|(named, place)| Some((place, find(&named)?)));
    let places: Vec<(String, Arc<Fields>)> = views.collect();
    let refused = |message: String, fields: &Fields| ResolveError::MetricsSql {
        message,
        hint: Some(fields.hint()),
    };
    match <[_; 1]>::try_from(places) {
        Ok([(place, fields)]) => {
            let taken = take_at(document, place, (answer, is_aggregate), &fields);
            let query = taken.map_err(|message| refused(message, &fields))?;
            Ok(Some(Taken { fields, query }))
        }
        Err(places) => match places.first() {
            None => Ok(None),
            Some((_, fields)) => Err(refused(
                "a statement asks one metrics view, once".to_owned(),
                fields,
            )),
        },
    }
}

/// Returns the tables that a statement reads with their places in its syntax tree, without the parts that it defines itself.
#[must_use]
pub fn tables(document: &Value) -> Vec<(Named, String)> {
    let (mut hidden, mut found) = (Vec::new(), Vec::new());
    names_of_parts(document, &mut hidden);
    collect_tables(document, "", &hidden, &mut found);
    found
}

/// Collects the names of the parts that a statement defines by WITH.
fn names_of_parts(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| names_of_parts(value, names)),
        Value::Object(fields) => {
            if let Some(parts) = value.pointer("/cte_map/map").and_then(Value::as_array) {
                names.extend(parts.iter().map(|part| text(part, "key").to_owned()));
            }
            fields.values().for_each(|value| names_of_parts(value, names));
        }
        _ => {}
    }
}

fn collect_tables(value: &Value, place: &str, hidden: &[String], found: &mut Vec<(Named, String)>) {
    match value {
        Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                collect_tables(value, &format!("{place}/{at}"), hidden, found);
            }
        }
        Value::Object(fields) => {
            if text(value, "type") == "BASE_TABLE" {
                let named = Named {
                    schema: text(value, "schema_name").to_ascii_lowercase(),
                    table: text(value, "table_name").to_owned(),
                };
                let is_part = hidden.iter().any(|part| part.eq_ignore_ascii_case(&named.table));
                if !(is_part && named.schema.is_empty()) {
                    found.push((named, place.to_owned()));
                }
            }
            for (key, value) in fields {
                collect_tables(value, &format!("{place}/{key}"), hidden, found);
            }
        }
        _ => {}
    }
}

/// Returns the query of the SELECT whose table is at a place, and rewrites that SELECT.
fn take_at(
    document: &mut Value,
    place: String,
    (answer, is_aggregate): (&str, &dyn Fn(&str) -> bool),
    fields: &Fields,
) -> Result<Option<Value>, String> {
    let alone = || "a metrics view is read alone: what is joined is the answer, in a subquery".to_owned();
    let mut place = place.strip_suffix("/from_table").ok_or_else(alone)?.to_owned();
    // Tools put `SELECT * FROM view` into brackets and ask that.
    while is_bare(document.pointer(&place).unwrap_or(&Value::Null))
        && let Some(outer) = place.strip_suffix("/from_table/subquery/node")
    {
        let outer = outer.to_owned();
        let subquery = document.pointer_mut(&format!("{outer}/from_table"));
        let subquery = subquery.map(Value::take).unwrap_or_default();
        let mut table = subquery
            .pointer("/subquery/node/from_table")
            .cloned()
            .unwrap_or_default();
        if !is_empty(&subquery, "column_name_alias") || !is_empty(&subquery, "sample") {
            return Err(alone());
        }
        table["alias"] = subquery["alias"].clone();
        if let Some(put) = document.pointer_mut(&format!("{outer}/from_table")) {
            *put = table;
        }
        place = outer;
    }
    let node = document.pointer_mut(&place).ok_or_else(alone)?;
    check(node)?;
    let table = &mut node["from_table"];
    let alias = match text(table, "alias") {
        "" => text(table, "table_name").to_owned(),
        alias => alias.to_owned(),
    };
    table["schema_name"] = "".into();
    table["catalog_name"] = "".into();
    table["table_name"] = answer.into();
    table["alias"] = alias.as_str().into();
    let has_star = parts(node, "select_list").any(|item| text(item, "type") == "STAR");
    if has_star {
        return match is_only_types(node) {
            true => Ok(None),
            false => Err(format!("name the fields of `{}` instead of `*`", fields.view)),
        };
    }
    question(node, alias, is_aggregate, fields).map(Some)
}

/// Returns true for `SELECT * FROM view`.
fn is_bare(node: &Value) -> bool {
    let star = match node["select_list"].as_array().map(Vec::as_slice) {
        Some([star]) => star,
        _ => return false,
    };
    let is_plain = [
        "exclude_list",
        "replace_list",
        "rename_list",
        "expr",
        "qualified_exclude_list",
    ]
    .into_iter()
    .all(|key| is_empty(star, key));
    let is_alone = [
        "where_clause",
        "group_expressions",
        "having",
        "qualify",
        "sample",
        "modifiers",
    ]
    .into_iter()
    .all(|key| is_empty(node, key));
    text(star, "type") == "STAR" && is_plain && is_alone && is_empty(&node["cte_map"], "map")
}

/// Refuses the parts of a SELECT that a view has no answer to.
fn check(node: &Value) -> Result<(), String> {
    if text(node, "type") != "SELECT_NODE" {
        return Err("a metrics view is read by a SELECT".to_owned());
    }
    for part in ["qualify", "sample"] {
        if !is_empty(node, part) {
            return Err(format!("a metrics view is read without {}", part.to_uppercase()));
        }
    }
    let table = &node["from_table"];
    if !is_empty(table, "sample") || !is_empty(table, "at_clause") || !is_empty(table, "column_name_alias") {
        return Err("a metrics view is read by its name and an alias".to_owned());
    }
    let sets = node["group_sets"].as_array().map_or(0, Vec::len);
    match sets > 1 {
        true => Err("groups of a metrics view have no ROLLUP, CUBE or GROUPING SETS".to_owned()),
        false => Ok(()),
    }
}

/// Returns true for a SELECT that reads no rows, by which tools learn of columns.
fn is_only_types(node: &Value) -> bool {
    let limits = parts(node, "modifiers").map(|modifier| &modifier["limit"]);
    let is_limited = limits.into_iter().any(|limit| literal(limit) == Ok(json!(0)));
    is_limited || conjuncts(&node["where_clause"]).iter().any(is_false)
}

/// Returns true for a condition that holds for no row: `false`, or a comparison of two other numbers for equality.
fn is_false(condition: &Value) -> bool {
    match text(condition, "type") {
        "VALUE_CONSTANT" | "OPERATOR_CAST" => literal(condition) == Ok(json!(false)),
        "COMPARE_EQUAL" => match (literal(&condition["left"]), literal(&condition["right"])) {
            (Ok(left), Ok(right)) => left.is_number() && right.is_number() && left != right,
            _ => false,
        },
        _ => false,
    }
}

/// Returns the conditions that all have to hold.
fn conjuncts(condition: &Value) -> Vec<Value> {
    match text(condition, "type") {
        "CONJUNCTION_AND" => children(condition).iter().flat_map(conjuncts).collect(),
        _ if condition.is_null() => Vec::new(),
        _ => vec![condition.clone()],
    }
}

/// Returns one condition that holds if all of these do; null for none.
fn all_of(mut conditions: Vec<Value>) -> Value {
    match conditions.len() {
        0 => Value::Null,
        1 => conditions.remove(0),
        _ => json!({
            "class": "CONJUNCTION", "type": "CONJUNCTION_AND", "alias": "", "query_location": 0, "children": conditions,
        }),
    }
}

fn parts<'a>(node: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    node[key].as_array().into_iter().flatten()
}

/// Returns the metrics query of a SELECT, and leaves what is computed from the answer.
fn question(
    node: &mut Value,
    alias: String,
    is_aggregate: &dyn Fn(&str) -> bool,
    fields: &Fields,
) -> Result<Value, String> {
    for item in node["select_list"].as_array_mut().into_iter().flatten() {
        if text(item, "alias").is_empty() {
            item["alias"] = natural_name(item).into();
        }
    }
    let aliases: Vec<String> = parts(node, "select_list")
        .map(|item| text(item, "alias").to_owned())
        .collect();
    let groups: Vec<Value> = parts(node, "group_expressions")
        .map(|group| meant(group, node, fields))
        .collect();
    let mut rewrite = Rewrite::new(fields, alias, aliases, is_aggregate);
    rewrite.group(&groups)?;
    let (own, left): (Vec<Value>, Vec<Value>) = conjuncts(&node["where_clause"])
        .into_iter()
        .partition(rewrite::reads_column);
    let filter = own
        .into_iter()
        .map(|part| rewrite.condition(part))
        .collect::<Result<Vec<_>, _>>()?;
    for item in node["select_list"].as_array_mut().into_iter().flatten() {
        rewrite.of_answer(item)?;
    }
    let mut having = node["having"].take();
    rewrite.of_answer_or_alias(&mut having)?;
    for modifier in node["modifiers"].as_array_mut().into_iter().flatten() {
        let orders = modifier.get_mut("orders").and_then(Value::as_array_mut);
        for order in orders.into_iter().flatten() {
            rewrite.of_answer_or_alias(&mut order["expression"])?;
        }
        if let Some(targets) = modifier
            .get_mut("distinct_on_targets")
            .and_then(Value::as_array_mut)
        {
            targets
                .iter_mut()
                .try_for_each(|target| rewrite.of_answer_or_alias(target))?;
        }
    }
    node["where_clause"] = all_of(left.into_iter().chain(conjuncts(&having)).collect());
    node["group_expressions"] = json!([]);
    node["group_sets"] = json!([]);
    node["aggregate_handling"] = "STANDARD_HANDLING".into();
    let mut query = rewrite.query()?;
    let ranged = metrics_sql::ranged(&all_of(filter))?;
    if let Some(range) = ranged.range {
        query["time_range"] = range;
    }
    if let Some(filter) = ranged.filter {
        query["where"] = filter;
    }
    Ok(query)
}

/// Returns the expression that a group means: the selected one of a number or an alias, or the group itself.
fn meant(group: &Value, node: &Value, fields: &Fields) -> Value {
    let selected: Vec<&Value> = parts(node, "select_list").collect();
    let number = literal(group).ok().and_then(|number| number.as_u64());
    let by_number = number.and_then(|number| selected.get(usize::try_from(number).ok()?.checked_sub(1)?));
    let name = match group["column_names"].as_array().map(Vec::as_slice) {
        Some([Value::String(name)]) if !fields.has(name) => Some(name),
        _ => None,
    };
    let by_alias = name.and_then(|name| {
        let mut all = selected.iter();
        all.find(|item| text(item, "alias").eq_ignore_ascii_case(name))
    });
    let found = by_number.or(by_alias).copied();
    found.unwrap_or(group).clone()
}

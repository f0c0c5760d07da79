//! Metrics queries written in SQL, read from the engine's parse tree (Q24).

use serde_json::{Map, Value, json};
use watershed_metrics::Query;

use super::condition::{self, children, field, is_empty, literal, sole_node, text};
use super::{ResolveError, metrics};

/// Reads a metrics query from SQL. `is_measure` tells measures of a view from dimensions; unknown fields count as
/// dimensions, and planning refuses them.
///
/// # Errors
/// A text that is not one `SELECT` of fields of one metrics view, and a part that queries don't have.
pub fn read(sql: &str, is_measure: impl Fn(&str, &str) -> bool) -> Result<Query, ResolveError> {
    let json = read_json(sql, is_measure)?;
    Query::from_json(&json).map_err(|error| metrics::refused(error).into())
}

/// Reads the JSON form of a metrics query from SQL, as [`read`] does.
///
/// # Errors
/// A text that is not one `SELECT` of fields of one metrics view, and a part that queries don't have.
pub fn read_json(sql: &str, is_measure: impl Fn(&str, &str) -> bool) -> Result<Value, ResolveError> {
    query(sql, &is_measure).map_err(|message| ResolveError::MetricsSql {
        message: format!("`metrics_sql`: {message}"),
        hint: Some(
            "it selects fields of one metrics view, as in `SELECT carrier, flights FROM delays WHERE origin = 'JFK'`"
                .to_owned(),
        ),
    })
}

fn query(sql: &str, is_measure: &dyn Fn(&str, &str) -> bool) -> Result<Value, String> {
    let node = sole_node(sql)?;
    if text(&node, "type") != "SELECT_NODE" {
        return Err("this is not one SELECT".to_owned());
    }
    if !is_empty(&node, "group_expressions") {
        return Err("it needs no GROUP BY: rows are grouped by the dimensions that it selects".to_owned());
    }
    for part in ["qualify", "sample"] {
        if !is_empty(&node, part) {
            return Err(format!("queries have no {}", part.to_uppercase()));
        }
    }
    let view = view(&node)?;
    let mut fields = Map::new();
    let (mut dimensions, mut measures, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for item in node
        .get("select_list")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let (name, selected) = selected(item)?;
        let is_measure = selected.is_string() && is_measure(&view, &name);
        if is_measure {
            &mut measures
        } else {
            &mut dimensions
        }
        .push(selected);
        names.push(name);
    }
    let ranged = ranged(node.get("where_clause").unwrap_or(&Value::Null))?;
    let having = node.get("having").filter(|having| !having.is_null());
    let mut set = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    set("metrics_view", view.into());
    set("dimensions", dimensions.into());
    set("measures", measures.into());
    if let Some(range) = ranged.range {
        set("time_range", range);
    }
    if let Some(filter) = ranged.filter {
        set("where", filter);
    }
    if let Some(having) = having {
        set("having", condition::read(having)?);
    }
    for modifier in node
        .get("modifiers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        match text(modifier, "type") {
            "ORDER_MODIFIER" => {
                set("sort", sort(modifier, &names)?);
            }
            "LIMIT_MODIFIER" => {
                for key in ["limit", "offset"] {
                    if let Some(count) = modifier.get(key).filter(|count| !count.is_null()) {
                        set(key, literal(count)?);
                    }
                }
            }
            other => return Err(format!("queries have no {}", words(other))),
        }
    }
    Ok(fields.into())
}

/// Returns the name of the only view in `FROM`.
fn view(node: &Value) -> Result<String, String> {
    let table = node.get("from_table").unwrap_or(&Value::Null);
    let is_plain = text(table, "type") == "BASE_TABLE"
        && text(table, "schema_name").is_empty()
        && is_empty(table, "sample");
    match text(table, "table_name") {
        "" => Err("it reads no metrics view".to_owned()),
        name if is_plain => Ok(name.to_owned()),
        _ => Err("it reads one metrics view by its name".to_owned()),
    }
}

/// Reads a selected expression: the column's name, and its form in the metrics query.
fn selected(item: &Value) -> Result<(String, Value), String> {
    let alias = text(item, "alias");
    if text(item, "type") == "FUNCTION" && text(item, "function_name") == "date_trunc" {
        let [grain, time] = children(item) else {
            return Err("`date_trunc` takes a grain and a time".to_owned());
        };
        let (grain, time) = (literal(grain)?, field(time)?);
        let dimension = time.get("name").and_then(Value::as_str).unwrap_or_default();
        let name = if alias.is_empty() { dimension } else { alias };
        let cut = json!({"name": name, "compute": {"time_floor": {"dimension": dimension, "grain": grain}}});
        return Ok((name.to_owned(), cut));
    }
    if text(item, "type") == "STAR" {
        return Err("name the fields instead of `*`".to_owned());
    }
    let named = field(item).map_err(|_| "it selects fields, and times cut by `date_trunc`".to_owned())?;
    let name = named.get("name").and_then(Value::as_str).unwrap_or_default();
    if !alias.is_empty() && alias != name {
        return Err(format!("`{name}` can't be renamed to `{alias}`"));
    }
    Ok((name.to_owned(), json!(name)))
}

/// Conditions of `WHERE`, separated into time range and filter.
#[derive(Default)]
pub(super) struct Ranged {
    pub(super) range: Option<Value>,
    pub(super) filter: Option<Value>,
}

/// Separates the condition of a statement into time range and filter.
///
/// # Errors
/// What is no condition of a filter, and half a range.
pub(super) fn ranged(node: &Value) -> Result<Ranged, String> {
    if node.is_null() {
        return Ok(Ranged::default());
    }
    let parts = match text(node, "type") {
        "CONJUNCTION_AND" => children(node).iter().collect(),
        _ => vec![node],
    };
    let mut ends: Vec<(String, String, &'static str)> = Vec::new();
    let mut rest = Vec::new();
    for part in parts {
        match end_of_range(part)? {
            Some(end) => ends.push(end),
            None => rest.push(condition::read(part)?),
        }
    }
    let range = match ends.as_slice() {
        [] => None,
        [(time, expression, one), (other_time, other_expression, other)]
            if time == other_time && expression == other_expression && one != other =>
        {
            Some(json!({"expression": expression, "time_dimension": time}))
        }
        _ => {
            let message = "a range is `TIME >= time_range_start('RANGE') AND TIME < time_range_end('RANGE')`";
            return Err(message.to_owned());
        }
    };
    let filter = match rest.len() {
        0 | 1 => rest.pop(),
        _ => Some(condition::condition("and", rest)),
    };
    Ok(Ranged { range, filter })
}

/// Reads a condition that bounds a time range: its time dimension, expression, and which end.
fn end_of_range(part: &Value) -> Result<Option<(String, String, &'static str)>, String> {
    let side = |key: &str| part.get(key).unwrap_or(&Value::Null);
    let right = side("right");
    let end = match (text(part, "type"), text(right, "function_name")) {
        ("COMPARE_GREATERTHANOREQUALTO", "time_range_start") => "start",
        ("COMPARE_LESSTHAN", "time_range_end") => "end",
        (_, "time_range_start" | "time_range_end") => {
            return Err("a range begins with `>=` and ends with `<`".to_owned());
        }
        _ => return Ok(None),
    };
    let [expression] = children(right) else {
        return Err("an end of a range takes one expression".to_owned());
    };
    let named = field(side("left"))?;
    let time = named.get("name").and_then(Value::as_str).unwrap_or_default();
    let expression = literal(expression)?;
    let expression = expression.as_str().unwrap_or_default();
    Ok(Some((time.to_owned(), expression.to_owned(), end)))
}

/// Converts an `ORDER BY` clause, whose terms are column names or positions.
fn sort(modifier: &Value, names: &[String]) -> Result<Value, String> {
    let orders = modifier.get("orders").and_then(Value::as_array);
    let by = |order: &Value| {
        let expression = order.get("expression").unwrap_or(&Value::Null);
        let place = literal(expression).ok().and_then(|place| place.as_u64());
        let name = match place.and_then(|place| names.get(usize::try_from(place).ok()?.checked_sub(1)?)) {
            Some(name) => json!(name),
            None => field(expression)
                .map_err(|_| "rows are sorted by columns of the answer".to_owned())?
                .get("name")
                .cloned()
                .unwrap_or_default(),
        };
        if text(order, "null_order") == "NULLS FIRST" {
            return Err("rows without a value come last".to_owned());
        }
        Ok(json!({"name": name, "desc": text(order, "type") == "DESCENDING"}))
    };
    orders.into_iter().flatten().map(by).collect()
}

fn words(part: &str) -> String {
    part.trim_end_matches("_MODIFIER").replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json_of(sql: &str) -> Result<Value, String> {
        query(sql, &|_, name| name == "flights" || name == "delay")
    }

    #[test]
    fn statements_become_queries() {
        let sql = "SELECT carrier, date_trunc('day', t) AS day, flights FROM delays \
            WHERE t >= time_range_start('7D') AND t < time_range_end('7D') AND origin IN ('JFK', 'LGA') \
            HAVING delay > 15 ORDER BY flights DESC, 1 LIMIT 5 OFFSET 2";
        let expected = json!({
            "metrics_view": "delays",
            "dimensions": ["carrier", {"name": "day", "compute": {"time_floor": {"dimension": "t", "grain": "day"}}}],
            "measures": ["flights"],
            "time_range": {"expression": "7D", "time_dimension": "t"},
            "where": {"cond": {"op": "in", "exprs": [{"name": "origin"}, {"val": ["JFK", "LGA"]}]}},
            "having": {"cond": {"op": "gt", "exprs": [{"name": "delay"}, {"val": 15}]}},
            "sort": [{"name": "flights", "desc": true}, {"name": "carrier", "desc": false}],
            "limit": 5,
            "offset": 2,
        });
        assert_eq!(json_of(sql), Ok(expected));
        let plain = json!({"metrics_view": "delays", "dimensions": [], "measures": ["flights"]});
        assert_eq!(json_of("SELECT flights FROM delays"), Ok(plain));
    }

    #[test]
    fn what_queries_do_not_have_is_refused() {
        for (sql, said) in [
            ("SELECT * FROM delays", "name the fields"),
            ("SELECT carrier, flights FROM delays GROUP BY 1", "no GROUP BY"),
            ("SELECT sum(flights) FROM delays", "selects fields"),
            ("SELECT carrier AS c FROM delays", "can't be renamed"),
            ("SELECT flights FROM a JOIN b USING (x)", "no metrics view"),
            ("SELECT flights FROM (SELECT 1)", "no metrics view"),
            (
                "SELECT flights FROM delays WHERE t >= time_range_start('7D')",
                "a range is",
            ),
            ("SELECT flights FROM delays WHERE a = b", "constant"),
            ("SELECT DISTINCT carrier FROM delays", "DISTINCT"),
            ("SELECT 1; SELECT 2", "not one statement"),
            ("DROP TABLE delays", ""),
        ] {
            let error = json_of(sql).expect_err(sql);
            assert!(error.contains(said), "{sql}: {error}");
        }
    }
}

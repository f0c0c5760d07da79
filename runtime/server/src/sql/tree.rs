//! Changes of a catalog statement's syntax tree: functions and casts that Postgres has and the engine has not.

use serde_json::{Map, Value, json};
use watershed_drivers::olap::Catalog;

use super::words::{OF_NAMES, OF_SESSION};

/// Types of Postgres' catalog, with the engine's types of their values.
const OF_CATALOG: [(&str, &str); 7] = [
    ("oid", "BIGINT"),
    ("xid", "BIGINT"),
    ("cid", "BIGINT"),
    ("name", "VARCHAR"),
    ("char", "VARCHAR"),
    ("regproc", "VARCHAR"),
    ("regprocedure", "VARCHAR"),
];

/// Puts the catalog's functions, casts and operators into the syntax tree of a statement.
pub(super) fn adapt(tree: &mut Value, catalog: &dyn Catalog) {
    if let Some(selected) = tree
        .pointer_mut("/statements/0/node/select_list")
        .and_then(Value::as_array_mut)
    {
        selected.iter_mut().for_each(name_column);
    }
    walk(tree, catalog);
}

/// Names a column as Postgres does: a function by its name, a cast by what is cast. Names of things are shown as names.
fn name_column(expression: &mut Value) {
    let name = match text(expression, "class") {
        "FUNCTION" if expression["is_operator"] != true => text(expression, "function_name").to_owned(),
        "COLUMN_REF" => only_name(expression)
            .filter(|name| OF_SESSION.contains(&name.as_str()))
            .unwrap_or_default(),
        "CAST" => {
            let is_of_name = OF_NAMES.contains(&cast_name(expression).as_str());
            let name = match text(&expression["child"], "class") {
                "COLUMN_REF" => last_name(&expression["child"]),
                "FUNCTION" => Some(text(&expression["child"], "function_name").to_owned()),
                _ => Some(cast_name(expression)).filter(|name| !name.is_empty()),
            };
            if is_of_name {
                let inner = expression.take();
                *expression = json!({
                    "class": "CAST", "type": "OPERATOR_CAST", "alias": "", "query_location": inner["query_location"],
                    "child": inner, "cast_type": {"id": "VARCHAR", "type_info": null}, "try_cast": false,
                });
            }
            name.unwrap_or_default()
        }
        "COMPARISON" | "CONJUNCTION" | "CONSTANT" | "OPERATOR" => "?column?".to_owned(),
        _ => String::new(),
    };
    if text(expression, "alias").is_empty() && !name.is_empty() {
        expression["alias"] = name.into();
    }
}

fn walk(value: &mut Value, catalog: &dyn Catalog) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| walk(value, catalog)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|value| walk(value, catalog));
            if let Some(changed) = changed(fields, catalog) {
                *value = changed;
            }
        }
        _ => {}
    }
}

/// Returns what takes the place of a part of the tree, whose own parts are changed already; none if it stays.
fn changed(fields: &mut Map<String, Value>, catalog: &dyn Catalog) -> Option<Value> {
    let class = fields.get("class").and_then(Value::as_str).unwrap_or_default();
    match class {
        "FUNCTION" => {
            change_function(fields, catalog);
            // A function of a set gives its rows wherever Postgres calls it, and a list here.
            let is_set = fields.get("function_name").and_then(Value::as_str) == Some("generate_series");
            is_set.then(|| {
                let alias = fields.insert("alias".to_owned(), "".into());
                let mut rows = call("unnest", vec![Value::Object(std::mem::take(fields))]);
                rows["alias"] = alias.unwrap_or_default();
                rows
            })
        }
        "COLUMN_REF" => {
            let whole = Value::Object(fields.clone());
            let name = only_name(&whole).filter(|name| OF_SESSION.contains(&name.as_str()))?;
            let mut call = call(&catalog.function(&name), Vec::new());
            call["alias"] = fields.get("alias").cloned().unwrap_or_default();
            Some(call)
        }
        "CAST" => cast(fields, catalog),
        "SUBQUERY" => among(fields),
        _ => {
            name_only_column(fields);
            None
        }
    }
}

/// Returns the call that takes the place of `x = ANY(list)`, which the engine makes a subquery that not every join can have.
fn among(fields: &Map<String, Value>) -> Option<Value> {
    let is = |key: &str, word: &str| fields.get(key).and_then(Value::as_str) == Some(word);
    let node = fields.get("subquery")?.get("node")?;
    let [row] = node.get("select_list")?.as_array()?.as_slice() else {
        return None;
    };
    let is_list = node.pointer("/from_table/type").and_then(Value::as_str) == Some("EMPTY")
        && text(row, "function_name") == "unnest";
    let [list] = row["children"].as_array()?.as_slice() else {
        return None;
    };
    let is_among = is("subquery_type", "ANY") && is("comparison_type", "COMPARE_EQUAL") && is_list;
    let mut contains = call("list_contains", vec![list.clone(), fields.get("child")?.clone()]);
    contains["alias"] = fields.get("alias").cloned().unwrap_or_default();
    is_among.then_some(contains)
}

/// Names the column of a table function as the table, which is how Postgres names it.
fn name_only_column(fields: &mut Map<String, Value>) {
    let alias = fields.get("alias").and_then(Value::as_str).unwrap_or_default();
    let is_unnamed = fields
        .get("column_name_alias")
        .and_then(Value::as_array)
        .is_some_and(Vec::is_empty);
    if fields.get("type").and_then(Value::as_str) == Some("TABLE_FUNCTION") && is_unnamed && !alias.is_empty()
    {
        let names = json!([alias]);
        fields.insert("column_name_alias".to_owned(), names);
    }
}

fn change_function(fields: &mut Map<String, Value>, catalog: &dyn Catalog) {
    let name = fields
        .get("function_name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let (own, is_caseless) = match name.as_str() {
        // The engine asks whether the whole text matches, and Postgres whether a part does.
        "regexp_full_match" | "~" => ("regexp_matches".to_owned(), false),
        "~*" => ("regexp_matches".to_owned(), true),
        _ if catalog.functions().contains(&name) => (catalog.function(&name), false),
        _ => return,
    };
    if is_caseless && let Some(Value::Array(children)) = fields.get_mut("children") {
        children.push(json!({
            "class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "query_location": 0,
            "value": {"type": {"id": "VARCHAR", "type_info": null}, "is_null": false, "value": "i"},
        }));
    }
    fields.insert("function_name".to_owned(), own.into());
    fields.insert("schema".to_owned(), "".into());
    fields.insert("is_operator".to_owned(), false.into());
}

/// Returns the call that takes the place of a cast to the name of a thing, and the cast to the engine's type of others.
fn cast(fields: &mut Map<String, Value>, catalog: &dyn Catalog) -> Option<Value> {
    let whole = Value::Object(fields.clone());
    let name = cast_name(&whole);
    if OF_NAMES.contains(&name.as_str()) {
        let child = fields.get("child").cloned().unwrap_or_default();
        let mut call = call(&catalog.function(&name), vec![child]);
        call["alias"] = fields.get("alias").cloned().unwrap_or_default();
        return Some(call);
    }
    if is_list(&whole)
        && let Some(Value::String(text)) = fields
            .get_mut("child")
            .and_then(|it| it.pointer_mut("/value/value"))
    {
        // `'{a,b}'::text[]`.
        if let Some(items) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            *text = format!("[{items}]");
        }
        return None;
    }
    if let Some((_, engine)) = OF_CATALOG.iter().find(|(own, _)| *own == name) {
        fields.insert("cast_type".to_owned(), json!({"id": engine, "type_info": null}));
        return None;
    }
    // A name of a thing as a text: `x::regclass::text`.
    let is_text = whole.pointer("/cast_type/id").and_then(Value::as_str) == Some("VARCHAR");
    let child = &whole["child"];
    let function = text(child, "function_name");
    let shown = OF_NAMES.iter().find(|own| function == catalog.function(own));
    let own = shown.filter(|_| is_text)?;
    let arguments = child["children"].as_array().cloned().unwrap_or_default();
    let mut call = call(&catalog.function(&format!("{own}_text")), arguments);
    call["alias"] = fields.get("alias").cloned().unwrap_or_default();
    Some(call)
}

fn is_list(cast: &Value) -> bool {
    cast.pointer("/cast_type/id").and_then(Value::as_str) == Some("LIST")
}

fn call(function: &str, arguments: Vec<Value>) -> Value {
    json!({
        "class": "FUNCTION", "type": "FUNCTION", "alias": "", "query_location": 0, "function_name": function, "schema": "",
        "children": arguments, "filter": null, "order_bys": {"type": "ORDER_MODIFIER", "orders": []}, "distinct": false,
        "is_operator": false, "export_state": false, "catalog": "",
    })
}

/// Returns the name of the type that a cast names, in lower case; nothing for the engine's own types.
fn cast_name(cast: &Value) -> String {
    let name = cast.pointer("/cast_type/type_info/name").and_then(Value::as_str);
    name.unwrap_or_default().to_ascii_lowercase()
}

fn only_name(column: &Value) -> Option<String> {
    let names = column["column_names"].as_array()?;
    match names.as_slice() {
        [one] => one.as_str().map(str::to_ascii_lowercase),
        _ => None,
    }
}

fn last_name(column: &Value) -> Option<String> {
    let names = column["column_names"].as_array()?;
    names.last()?.as_str().map(str::to_owned)
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

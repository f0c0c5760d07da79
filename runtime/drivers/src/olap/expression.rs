//! Texts that are to be exactly one expression: they are put between brackets of a statement, and what closes these and
//! opens others would change what stands around them.

use serde_json::Value;

use super::quote_literal;

/// Returns an expression of SQL whose value, a text, says to [`is_one_expression`] what a text is.
pub fn describe_expression(text: &str) -> String {
    // What closes the one kind of brackets leaves the other open.
    let statement = format!("SELECT (\n{text}\n), [\n{text}\n]");
    format!("json_serialize_sql({})", quote_literal(&statement))
}

/// Returns true if a text is exactly one expression, given the value of [`describe_expression`]: it stands alone between
/// brackets of either kind.
pub fn is_one_expression(described: &str) -> bool {
    let Ok(mut document) = serde_json::from_str::<Value>(described) else {
        return false;
    };
    without_places(&mut document);
    let statements = document["statements"].as_array().map(Vec::as_slice);
    let Some([statement]) = statements else {
        return false;
    };
    let node = &statement["node"];
    let bare = ["modifiers", "group_expressions", "group_sets"]
        .iter()
        .all(|key| node[*key].as_array().is_none_or(Vec::is_empty));
    let bare = bare
        && ["where_clause", "having", "sample", "qualify"]
            .iter()
            .all(|key| node[*key].is_null())
        && node["type"] == "SELECT_NODE"
        && node["from_table"]["type"] == "EMPTY";
    let Some([alone, list]) = node["select_list"].as_array().map(Vec::as_slice) else {
        return false;
    };
    let items = list["children"].as_array().map(Vec::as_slice);
    bare && list["function_name"] == "list_value"
        && list["alias"] == ""
        // Several columns in the place of one.
        && alone["class"] != "STAR"
        && matches!(items, Some([item]) if item == alone)
}

/// Takes the places of a parse tree away: the same text stands at another one.
fn without_places(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("query_location");
            fields.values_mut().for_each(without_places);
        }
        Value::Array(items) => items.iter_mut().for_each(without_places),
        _ => {}
    }
}

//! Checks that a text is exactly one expression. Texts are inserted between brackets of a statement, and a text that
//! closes them could change the statement around it.

use serde_json::Value as Json;

use watershed_dialect::{DuckDb, Quoting as _};

use crate::olap::Value;

/// Returns a statement whose rows describe texts for [`others`], without evaluating them.
pub(super) fn describe(texts: &[&str]) -> String {
    let described: Vec<String> = texts.iter().map(|text| described(text)).collect();
    format!("SELECT {}", described.join(", "))
}

/// Returns the texts that are not exactly one expression, from the rows of [`describe`] for the same texts.
pub(super) fn others<'t>(texts: &[&'t str], rows: &[Vec<Value>]) -> Vec<&'t str> {
    let mut values = rows.iter().flatten();
    let is_other = |_: &&str| !values.next().is_some_and(|value| is_one(&value.to_string()));
    texts.iter().copied().filter(is_other).collect()
}

fn described(text: &str) -> String {
    // What closes the one kind of brackets leaves the other open.
    let statement = format!("SELECT (\n{text}\n), [\n{text}\n]");
    format!("json_serialize_sql({})", DuckDb.text(&statement))
}

/// Returns true if the description of a text shows exactly one expression, alone between brackets of either kind.
fn is_one(described: &str) -> bool {
    let Ok(mut document) = serde_json::from_str::<Json>(described) else {
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

/// Removes positions from a parse tree, so that the same text elsewhere has an equal tree.
fn without_places(value: &mut Json) {
    match value {
        Json::Object(fields) => {
            fields.remove("query_location");
            fields.values_mut().for_each(without_places);
        }
        Json::Array(items) => items.iter_mut().for_each(without_places),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_which_nothing_is_known_is_not_one_expression() {
        assert_eq!(others(&["1", "2"], &[]), ["1", "2"]);
        let rows = [vec![Value::Text("no tree".to_owned())]];
        assert_eq!(others(&["1", "2"], &rows), ["1", "2"]);
    }
}

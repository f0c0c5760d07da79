//! The fields of a metrics view as rows, for people.

use serde_json::{Value, json};
use watershed_api::documents::{Column, ShowDocument};

/// Returns the fields of a metrics view as rows; none for a resource of another kind.
pub(crate) fn fields(document: &ShowDocument) -> Option<(Vec<Column>, Vec<Vec<Value>>)> {
    if document.resource.kind != "metrics_view" {
        return None;
    }
    let columns = ["field", "name", "expression", "shown_as", "type", "description"];
    let columns = columns.map(|name| Column {
        name: name.to_owned(),
        data_type: "VARCHAR".to_owned(),
    });
    let types = document.state.get("types");
    let mut rows = Vec::new();
    for (list, field) in [("dimensions", "dimension"), ("measures", "measure")] {
        // As they were found to be valid, with those that a parent or a pattern gives.
        let valid = document.state.get(list).and_then(Value::as_array);
        let stated = document.spec.get(list).and_then(Value::as_array);
        let stated = stated.map_or(&[][..], Vec::as_slice);
        let names: Vec<&str> = match valid.filter(|names| !names.is_empty()) {
            Some(names) => names.iter().filter_map(Value::as_str).collect(),
            None => stated.iter().filter_map(|one| text(one, "name")).collect(),
        };
        for name in names {
            let one = stated.iter().find(|one| text(one, "name") == Some(name));
            let said = |key: &str| {
                one.and_then(|one| text(one, key))
                    .map_or(Value::Null, Value::from)
            };
            rows.push(vec![
                json!(field),
                json!(name),
                one.map_or(Value::Null, expression),
                said("display_name"),
                types
                    .and_then(|types| types.get(name))
                    .cloned()
                    .unwrap_or_default(),
                said("description"),
            ]);
        }
    }
    Some((columns.to_vec(), rows))
}

/// Returns the SQL of a field: its expression, its column, or the column of its lookup table.
fn expression(field: &Value) -> Value {
    if let (Some(table), Some(column)) = (text(field, "lookup_table"), text(field, "lookup_value_column")) {
        return json!(format!("{table}.{column}"));
    }
    let sql = text(field, "expression").or_else(|| text(field, "column"));
    sql.map_or(Value::Null, Value::from)
}

/// Returns the text under a key; none if it is empty.
fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str().filter(|text| !text.is_empty())
}

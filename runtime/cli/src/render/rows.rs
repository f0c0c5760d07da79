//! Rows of a query, for other programs.

use serde_json::Value;

use watershed_api::documents::{Column, ExportDocument, GuessedDocument};
use watershed_drivers::volume::Bytes;

use super::units::count;

/// Renders a value as text: strings without quotes, null as an empty text, everything else as JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Renders the result of an export in one line.
pub(crate) fn exported(document: &ExportDocument) -> String {
    let size = Bytes(document.bytes);
    match document.rows {
        Some(rows) => format!("{} written to {} ({size})\n", count(rows, "row"), document.file),
        None => format!("{} written ({size})\n", document.file),
    }
}

/// Renders the guessed options of a file in one line.
pub(crate) fn guessed(document: &GuessedDocument) -> String {
    let option = |(name, value): (&String, &String)| match (name.as_str(), value.as_str()) {
        ("header", "false") => "header false (names of columns are made up)".to_owned(),
        ("header" | "skip", value) => format!("{name} {value}"),
        (_, value) => format!("{name} {value:?}"),
    };
    let options: Vec<String> = document.options.iter().map(option).collect();
    format!("guessed of {}: {}", document.file, options.join(", "))
}

/// Returns true if rows are the engine's plan of a query: `EXPLAIN`.
pub(crate) fn is_plan(columns: &[Column]) -> bool {
    columns
        .iter()
        .map(|column| column.name.as_str())
        .eq(["explain_key", "explain_value"])
}

/// Renders the engine's plan as the engine draws it.
pub(crate) fn plan(rows: &[Vec<Value>]) -> String {
    rows.iter()
        .filter_map(|row| row.last())
        .map(|drawn| format!("{}\n", plain(drawn).trim_end()))
        .collect()
}

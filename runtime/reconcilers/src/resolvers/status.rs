//! Resources by their status, as a statement of constants.

use std::sync::Arc;

use watershed_core::{Key, Row};
use watershed_drivers::olap::quote_literal;

/// Returns the statement that yields `kind`, `name`, `status` and `error` of each resource. The one that asks is none of
/// them, or its own error would be told for ever.
pub(super) fn statement(rows: &[Arc<Row>], own: &Key, only_errors: bool) -> String {
    let listed: Vec<String> = rows
        .iter()
        .filter(|row| row.key() != *own && (!only_errors || row.error.is_some()))
        .map(|row| values(row))
        .collect();
    const COLUMNS: &str = "resources(\"kind\", \"name\", \"status\", \"error\")";
    match listed.is_empty() {
        true => format!("SELECT * FROM (VALUES ('', '', '', '')) AS {COLUMNS} WHERE false"),
        false => format!("SELECT * FROM (VALUES {}) AS {COLUMNS}", listed.join(", ")),
    }
}

fn values(row: &Row) -> String {
    let (status, error) = match &row.error {
        Some(error) => ("failed", error.message.to_string()),
        None => ("ok", String::new()),
    };
    let texts = [row.kind.as_str(), row.name.as_str(), status, &error].map(quote_literal);
    format!("({})", texts.join(", "))
}

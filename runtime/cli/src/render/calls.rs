//! Answers of APIs for people.

use watershed_api::documents::CallDocument;

/// Returns advice for an answer without rows: an argument that was not given is NULL, and nothing equals NULL.
pub(crate) fn advice(document: &CallDocument) -> Vec<String> {
    let is_empty = document.rows.is_empty() && document.sql.is_none();
    let missing = document.missing_arguments.iter().filter(|_| is_empty);
    let advice = missing.map(|name| format!("it reads `{name}`, which was not given: `--arg {name}=VALUE`"));
    advice.collect()
}

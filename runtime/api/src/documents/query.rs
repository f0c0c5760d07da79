//! The result of a query.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GuessedDocument;

/// Columns and rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueryDocument {
    /// Name and version of this form: `watershed.query/1`.
    pub schema: String,
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// The rows; integers beyond 2^53, decimals and times are strings.
    pub rows: Vec<Vec<Value>>,
    /// The options that were guessed of a source of CSV, where one is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guessed: Option<GuessedDocument>,
}

impl QueryDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.query/1";
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type, in the engine's words.
    #[serde(rename = "type")]
    pub data_type: String,
}

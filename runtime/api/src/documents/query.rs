//! The document of `query`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GuessedDocument;

/// The rows of a query or a resource, with their columns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueryDocument {
    /// Name and version of this form: `watershed.query/1`.
    pub schema: String,
    /// Columns of the rows, in order.
    pub columns: Vec<Column>,
    /// Rows of the result. Integers beyond 2^53, decimals and times are strings.
    pub rows: Vec<Vec<Value>>,
    /// True if there are more rows than the document holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Options that were detected for a CSV source; absent unless such a source is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guessed: Option<GuessedDocument>,
}

impl QueryDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.query/1";
}

/// A column of a query's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// Name of the column.
    pub name: String,
    /// Type of the column, as the engine names it.
    #[serde(rename = "type")]
    pub data_type: String,
}

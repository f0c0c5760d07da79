//! The result of a query.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Columns and rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueryDocument {
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// The rows; integers beyond 2^53, decimals and times are strings.
    pub rows: Vec<Vec<Value>>,
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

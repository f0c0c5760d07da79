//! Inputs of paths that stream rows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::at::At;
use super::forms::Form;
use crate::documents::Column;
use crate::operations::ops;
use crate::request::{Parameters, QueryRequest, ShowRequest};

/// Body of a question in SQL.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "QueryForm")]
pub struct Query {
    /// One SELECT, DESCRIBE, SUMMARIZE or SHOW, over outputs of the project.
    pub sql: String,
    /// Values of the statement's parameters.
    #[serde(default)]
    pub parameters: Parameters,
    /// Maximum number of rows; null for all.
    #[serde(default)]
    pub limit: Option<u64>,
    /// Time limit of the statement, in milliseconds: 60,000 by default, at most 600,000.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

impl Form for Query {
    type Operation = ops::Query;
    type Document = RowsDocument;

    fn into_input(self, _: &At) -> QueryRequest {
        QueryRequest {
            sql: self.sql,
            parameters: self.parameters,
            limit: self.limit,
            timeout_ms: self.timeout_ms,
        }
    }
}

/// Query of a request for the rows of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "RowsForm")]
pub struct Rows {
    /// Maximum number of rows; absent for all.
    pub limit: Option<u64>,
}

impl Form for Rows {
    type Operation = ops::Show;
    type Document = RowsDocument;

    fn into_input(self, at: &At) -> ShowRequest {
        ShowRequest {
            name: at.one(),
            limit: self.limit.unwrap_or(u64::MAX),
        }
    }
}

/// Rows as they are streamed, with the outcome at the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RowsDocument {
    /// Name and version of this form: `watershed.query/1`.
    pub schema: String,
    /// Columns of the rows, in order.
    pub columns: Vec<Column>,
    /// Rows of the result. Integers beyond 2^53, decimals and times are strings.
    pub rows: Vec<Vec<Value>>,
    /// True if a limit cut off rows; absent after an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// Problem that ended the rows early; absent if all rows are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
}

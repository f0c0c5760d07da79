//! Final answers of operations: documents, or the end of rows that were sent before.

use serde::{Deserialize, Serialize};

pub use crate::documents::*;

/// The end of an answer whose rows were sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsEnd {
    /// True if a limit cut the result short.
    pub more: bool,
}

/// The metrics of a project in Prometheus' text format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PrometheusPage(pub String);

/// The final answer of `show`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// The first rows of the resource, which were sent before.
    Rows(RowsEnd),
    /// The spec and state of a resource that has no rows.
    Resource(Box<ShowDocument>),
}

/// The answer of a metrics view, shown or written to a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricsAnswer {
    /// The rows, or the SQL statement if the request asked for the statement.
    Document(Box<MetricsDocument>),
    /// The file that the rows were written to.
    File(ExportDocument),
}

/// The answer of an API or a report, shown or written to a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallAnswer {
    /// The rows, or the SQL statement if the request asked for the statement.
    Document(Box<CallDocument>),
    /// The file that the rows were written to.
    File(ExportDocument),
}

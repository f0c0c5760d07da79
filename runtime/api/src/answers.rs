//! Ends of answers: documents, and what stands for rows that were sent before.

use serde::{Deserialize, Serialize};

pub use crate::documents::*;

/// The end of an answer whose rows were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsEnd {
    /// True if a limit cut the result short.
    pub more: bool,
}

/// The numbers of a project in Prometheus' text format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PrometheusPage(pub String);

/// The end of `show`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// The first rows of the resource were sent.
    Rows(RowsEnd),
    /// The resource has no rows.
    Resource(Box<ShowDocument>),
}

/// The answer of a metrics view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricsAnswer {
    /// The rows, or the statement.
    Document(Box<MetricsDocument>),
    /// The file that the rows were written into.
    File(ExportDocument),
}

/// The answer of an API or a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallAnswer {
    /// The rows, or the statement.
    Document(Box<CallDocument>),
    /// The file that the rows were written into.
    File(ExportDocument),
}

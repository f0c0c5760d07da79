//! Requests for rows: into a file, of a metrics view, of an API or a report, of an alert's question.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Rows to be written into a file by the process that is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportRequest {
    /// The rows.
    pub rows: Rows,
    /// At most so many of them.
    pub limit: Option<u64>,
    /// Give up after so long.
    pub timeout_ms: Option<u64>,
    /// The file, with its whole path. Its name says its form.
    pub file: PathBuf,
    /// Replace a file that is there.
    pub force: bool,
}

/// Rows that are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rows {
    /// Of a statement that reads.
    Query(String),
    /// Of a resource, by its name.
    Of(String),
}

/// A query of a metrics view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricsRequest {
    /// The query in its JSON form.
    pub query: Value,
    /// A condition in SQL on the rows that count.
    pub condition: Option<String>,
    /// A condition in SQL on the groups that are shown.
    pub having: Option<String>,
    /// Beside each measure its value in the range that is compared with, and the change since then.
    #[serde(default)]
    pub shows_change: bool,
    /// The attributes of the user who asks; none for the owner.
    pub user: Option<serde_json::Map<String, Value>>,
    /// The explore or canvas through which it is asked, as `kind/name`.
    #[serde(default)]
    pub through: Option<String>,
    /// The time that the question is put at, if it is not now.
    pub at: Option<String>,
    /// At most so many rows, if the query itself has no limit; the answer says if there are more.
    pub shown: Option<u64>,
    /// The statement instead of the rows.
    pub sql: bool,
    /// The statement with the values of variables in it.
    #[serde(default)]
    pub show_values: bool,
    /// Into this file, with its whole path, instead of being shown.
    pub file: Option<PathBuf>,
    /// Replace a file that is there.
    pub force: bool,
}

/// A call of an API, or the rows of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRequest {
    /// The API or report.
    pub callee: Callee,
    /// The attributes of the user who asks; none for the owner.
    pub user: Option<serde_json::Map<String, Value>>,
    /// The time that the question is put at, if it is not now.
    pub at: Option<String>,
    /// At most so many rows; the answer says if there are more.
    pub shown: u64,
    /// The statement instead of the rows.
    pub sql: bool,
    /// The statement with the values of variables in it.
    #[serde(default)]
    pub show_values: bool,
    /// Into this file, with its whole path, instead of being shown.
    pub file: Option<PathBuf>,
    /// Replace a file that is there.
    pub force: bool,
}

/// A resource that answers calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Callee {
    /// An API.
    Api {
        /// Its name.
        name: String,
        /// The arguments.
        args: serde_json::Map<String, Value>,
    },
    /// A report, by its name.
    Report(String),
}

/// A trial of an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertTestRequest {
    /// The alert.
    pub name: String,
    /// The time that it is evaluated for, if it is not now.
    pub at: Option<String>,
    /// Send what people would be told.
    pub send: bool,
    /// End with a code of its own if it fails.
    pub exit_code: bool,
}

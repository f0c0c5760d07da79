//! Questions whose answers are rows.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One statement that reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryRequest {
    /// The statement.
    pub sql: String,
    /// The most rows; none for all.
    pub limit: Option<u64>,
    /// The time that the statement is given, in milliseconds; none for as long as somebody listens.
    pub timeout_ms: Option<u64>,
}

/// The first rows of a resource, or its spec and state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowRequest {
    /// The resource.
    pub name: String,
    /// The most rows.
    pub limit: u64,
}

/// The SQL of a model as the engine gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompileRequest {
    /// The model.
    pub name: String,
}

/// Rows that are written into a file by the process that is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportRequest {
    /// The rows.
    pub rows: Rows,
    /// The most rows; none for all.
    pub limit: Option<u64>,
    /// The time that the statement is given, in milliseconds; none for as long as somebody listens.
    pub timeout_ms: Option<u64>,
    /// The file, with its whole path. Its name says its form.
    pub file: PathBuf,
    /// True to replace a file that is there.
    pub force: bool,
}

/// Rows that are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rows {
    /// Rows of a statement that reads.
    Query(String),
    /// Rows of a resource, by its name.
    Of(String),
}

/// The way in which an answer is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerOptions {
    /// The time that the question is put at; none for now.
    pub at: Option<String>,
    /// The most rows that are shown; none for all. The answer says if there are more.
    pub shown: Option<u64>,
    /// True for the statement instead of the rows.
    pub sql: bool,
    /// True for the values of variables in that statement.
    #[serde(default)]
    pub show_values: bool,
    /// The file, with its whole path, that the rows are written into; none if they are shown.
    pub file: Option<PathBuf>,
    /// True to replace a file that is there.
    pub force: bool,
}

/// A query of a metrics view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsRequest {
    /// The query in its JSON form.
    pub query: Value,
    /// A condition in SQL on the rows that count.
    pub condition: Option<String>,
    /// A condition in SQL on the groups that are shown.
    pub having: Option<String>,
    /// True to add to each measure its value in the range that is compared with, and the change since then.
    #[serde(default)]
    pub shows_change: bool,
    /// The attributes of the user who asks; none for the owner.
    pub user: Option<Map<String, Value>>,
    /// The explore or canvas through which the question is asked, as `kind/name`.
    #[serde(default)]
    pub through: Option<String>,
    /// The way in which the answer is wanted. A query with a limit of its own shows all that it has.
    pub options: AnswerOptions,
}

/// A question for the ends of a metrics view's time dimension.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsBoundsRequest {
    /// The metrics view.
    pub view: String,
    /// The attributes of the user who asks; none for the owner.
    #[serde(default)]
    pub user: Option<Map<String, Value>>,
    /// The explore or canvas through which the question is asked, as `kind/name`.
    #[serde(default)]
    pub through: Option<String>,
}

/// A call of an API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRequest {
    /// The API.
    pub api: String,
    /// The arguments.
    pub args: Map<String, Value>,
    /// The attributes of the user who asks; none for the owner.
    pub user: Option<Map<String, Value>>,
    /// The way in which the answer is wanted.
    pub options: AnswerOptions,
}

/// The rows of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportRequest {
    /// The report.
    pub name: String,
    /// The way in which the answer is wanted.
    pub options: AnswerOptions,
}

/// A trial of an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlertTestRequest {
    /// The alert.
    pub name: String,
    /// The time that the alert is evaluated for; none for now.
    pub at: Option<String>,
    /// True to send what people would be told.
    pub send: bool,
    /// True to end with a code of its own if the alert fails.
    pub exit_code: bool,
}

//! Requests whose answers are rows.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A request to run one read-only statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryRequest {
    /// The SQL statement.
    pub sql: String,
    /// Most rows in the answer; none for all.
    pub limit: Option<u64>,
    /// The time that the statement may take, in milliseconds; none for no limit.
    pub timeout_ms: Option<u64>,
}

/// A request for the first rows of a resource, or its spec and state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowRequest {
    /// Name of the resource.
    pub name: String,
    /// Most rows in the answer.
    pub limit: u64,
}

/// A request for the compiled SQL of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompileRequest {
    /// Name of the model.
    pub name: String,
}

/// A request to write rows to a file, by the process that answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportRequest {
    /// The rows to write.
    pub rows: Rows,
    /// Most rows in the file; none for all.
    pub limit: Option<u64>,
    /// The time that the statement may take, in milliseconds; none for no limit.
    pub timeout_ms: Option<u64>,
    /// Absolute path of the file, whose extension determines the format.
    pub file: PathBuf,
    /// True to replace an existing file.
    pub force: bool,
}

/// The source of exported rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rows {
    /// A read-only SQL statement.
    Query(String),
    /// A resource, by its name.
    Of(String),
}

/// The form of an answer: shown rows, a file, or the statement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerOptions {
    /// The time at which the question is asked; none for now.
    pub at: Option<String>,
    /// Most rows that are shown; none for all. The answer says whether there are more.
    pub shown: Option<u64>,
    /// True to return the SQL statement instead of rows.
    pub sql: bool,
    /// True to show the values of variables in the SQL statement.
    #[serde(default)]
    pub show_values: bool,
    /// Absolute path of the file that rows are written to; none to show them.
    pub file: Option<PathBuf>,
    /// True to replace an existing file.
    pub force: bool,
}

/// A request to answer a query of a metrics view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsRequest {
    /// The query in its JSON form.
    pub query: Value,
    /// An SQL condition on the rows that are aggregated; none for all rows.
    pub condition: Option<String>,
    /// An SQL condition on the groups that are shown; none for all groups.
    pub having: Option<String>,
    /// True to add to each measure its value in the comparison range, and the relative change.
    #[serde(default)]
    pub shows_change: bool,
    /// The attributes of the user on whose behalf the query runs; none for the owner.
    pub user: Option<Map<String, Value>>,
    /// The explore or canvas whose rules apply too, as `kind/name`; none for the view alone.
    #[serde(default)]
    pub through: Option<String>,
    /// The form of the answer. A query with a limit of its own shows all of its rows.
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

/// A request to call an API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRequest {
    /// Name of the API.
    pub api: String,
    /// Arguments of the call, by name.
    pub args: Map<String, Value>,
    /// The attributes of the user on whose behalf the API is called; none for the owner.
    pub user: Option<Map<String, Value>>,
    /// The form of the answer.
    pub options: AnswerOptions,
}

/// A request for the rows of a report, without sending it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportRequest {
    /// Name of the report.
    pub name: String,
    /// The form of the answer.
    pub options: AnswerOptions,
}

/// A request to evaluate an alert without storing the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlertTestRequest {
    /// Name of the alert.
    pub name: String,
    /// The time for which the alert is evaluated; none for now.
    pub at: Option<String>,
    /// True to send the messages that people would get.
    pub send: bool,
    /// True to return a special exit code if the alert fails.
    pub exit_code: bool,
}

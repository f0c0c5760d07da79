//! Requests whose answers are rows.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Values of a statement's parameters: `[1, "AA"]` for `$1` and `$2` or two `?`, `{"carrier": "AA"}` for `$carrier`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Parameters {
    /// By place.
    Placed(Vec<Value>),
    /// By name.
    Named(Map<String, Value>),
}

impl Parameters {
    /// Returns true if there are no values.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Placed(values) => values.is_empty(),
            Self::Named(values) => values.is_empty(),
        }
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Self::Placed(Vec::new())
    }
}

/// A request to run a single read-only SQL statement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryRequest {
    /// SQL statement to run.
    pub sql: String,
    /// Values of its parameters.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    pub parameters: Parameters,
    /// Maximum number of rows in the answer; none for all.
    pub limit: Option<u64>,
    /// Time limit of the statement, in milliseconds; none for no limit.
    pub timeout_ms: Option<u64>,
}

impl QueryRequest {
    /// Returns the request for all rows of a statement without parameters.
    pub fn new(sql: impl Into<String>) -> Self {
        Self {
            sql: sql.into(),
            ..Self::default()
        }
    }
}

/// A request for the first rows of a resource, or its spec and state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowRequest {
    /// Name of the resource.
    pub name: String,
    /// Maximum number of rows in the answer.
    pub limit: u64,
}

/// A request for the compiled SQL of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompileRequest {
    /// Name of the model.
    pub name: String,
}

/// A request to write rows to a file, in the file system of the answering process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportRequest {
    /// Source of the rows to write.
    pub rows: Rows,
    /// Maximum number of rows in the file; none for all.
    pub limit: Option<u64>,
    /// Time limit of the statement, in milliseconds; none for no limit.
    pub timeout_ms: Option<u64>,
    /// Absolute path of the file to write. The extension determines the format.
    pub file: PathBuf,
    /// True to replace an existing file.
    pub force: bool,
}

/// The source of exported rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rows {
    /// The result of a read-only SQL statement.
    Query(String),
    /// The rows of a resource, given by name.
    Of(String),
}

/// The form of an answer: rows, a file, or the SQL statement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerOptions {
    /// Time for which the question is evaluated, as text; none for now.
    pub at: Option<String>,
    /// Maximum number of rows in the answer, which says whether there are more; none for all.
    pub shown: Option<u64>,
    /// True to return the SQL statement instead of rows.
    pub sql: bool,
    /// True to show the values of variables in the SQL statement.
    #[serde(default)]
    pub show_values: bool,
    /// Absolute path of the file to write the rows to; none to return them.
    pub file: Option<PathBuf>,
    /// True to replace an existing file.
    pub force: bool,
}

/// A request to answer a query of a metrics view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsRequest {
    /// Query in its JSON form.
    pub query: Value,
    /// Query as SQL over the view, in the place of all of the JSON form but the view's name; none for the JSON form.
    #[serde(default)]
    pub sql: Option<String>,
    /// SQL condition on the rows before aggregation; none for all rows.
    pub condition: Option<String>,
    /// SQL condition on the groups after aggregation; none for all groups.
    pub having: Option<String>,
    /// True to add, for each measure, its value in the comparison range and the relative change.
    #[serde(default)]
    pub shows_change: bool,
    /// Attributes of the user on whose behalf the query runs; none for the owner.
    pub user: Option<Map<String, Value>>,
    /// Explore or canvas whose rules apply too, as `kind/name`; none for the view alone.
    #[serde(default)]
    pub through: Option<String>,
    /// Form of the answer. A query with a limit of its own returns all of its rows.
    pub options: AnswerOptions,
}

/// A request for the first and last time in a metrics view's time dimension.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsBoundsRequest {
    /// Name of the metrics view.
    pub view: String,
    /// Attributes of the user on whose behalf the request runs; none for the owner.
    #[serde(default)]
    pub user: Option<Map<String, Value>>,
    /// Explore or canvas whose rules apply too, as `kind/name`; none for the view alone.
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
    /// Attributes of the user on whose behalf the API is called; none for the owner.
    pub user: Option<Map<String, Value>>,
    /// Form of the answer: rows, a file, or the SQL statement.
    pub options: AnswerOptions,
}

/// A request for the rows of a report, without sending it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportRequest {
    /// Name of the report.
    pub name: String,
    /// Form of the answer: rows, a file, or the SQL statement.
    pub options: AnswerOptions,
}

/// A request to evaluate an alert without storing the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlertTestRequest {
    /// Name of the alert.
    pub name: String,
    /// Time for which the alert is evaluated, as text; none for now.
    pub at: Option<String>,
    /// True to send the messages that the verdict would cause.
    pub send: bool,
    /// True to return exit code 5 unless the verdict is `pass`.
    pub exit_code: bool,
}

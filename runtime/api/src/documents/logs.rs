//! The document of `logs`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ResourceName, Time};

/// The log lines of a resource's runs, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogsDocument {
    /// Name and version of this form: `watershed.logs/1`.
    pub schema: String,
    /// Version of the program that wrote the document.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Path of the project's folder.
    pub root: String,
    /// Name of the project's environment.
    pub environment: String,
    /// Log lines of the resource's runs, oldest first.
    pub lines: Vec<LogLine>,
    /// Output lines of a job's or service's programs; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<OutputLine>,
}

/// A line of a program's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputLine {
    /// Name of the job, or of the service's replica.
    pub program: String,
    /// Text of the line, with each secret's value replaced by its name.
    pub text: String,
}

impl LogsDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.logs/1";
}

/// A log line of a run, in log files and with `--format jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// Id of the line, which increases from line to line, also across restarts.
    pub id: u64,
    /// Time at which the line was written.
    pub at: Time,
    /// Level of the line.
    pub level: LogLevel,
    /// Kind of the resource, and its name at the time of the run.
    pub resource: ResourceName,
    /// Id of the run, as in `history`.
    pub run: String,
    /// Message of the line, for people.
    pub message: String,
    /// Structured fields of the line, by name; absent if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, Value>,
    /// Part of the program that wrote the line.
    pub target: String,
}

/// The level of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// An error that a person must look at.
    Error,
    /// A warning that something is wrong.
    Warn,
    /// A record of work that was done.
    Info,
    /// Details of the work, for debugging.
    Debug,
    /// All details, for tracing.
    Trace,
}

impl LogLevel {
    /// Returns the name in documents, such as `info`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

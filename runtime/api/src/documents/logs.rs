//! The document of `logs`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ResourceName, Time};

/// Log lines of a resource's runs, the oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogsDocument {
    /// Name and version of this form: `watershed.logs/1`.
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Folder of the project.
    pub root: String,
    /// The environment.
    pub environment: String,
    /// The lines.
    pub lines: Vec<LogLine>,
    /// The output of programs, for jobs and services.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<OutputLine>,
}

/// A line that a program wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputLine {
    /// The job, or the replica of a service.
    pub program: String,
    /// The text, with the names of secrets in the place of their values.
    pub text: String,
}

impl LogsDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.logs/1";
}

/// One thing that a run said. Also what stands in one line of a file, and of `--format jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// Rises from line to line, also over restarts.
    pub id: u64,
    /// The time.
    pub at: Time,
    /// The level.
    pub level: LogLevel,
    /// The resource, by the name that it had then.
    pub resource: ResourceName,
    /// The run, named as in `history`.
    pub run: String,
    /// The message.
    pub message: String,
    /// Further fields.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, Value>,
    /// The part of the program that wrote it.
    pub target: String,
}

/// The level of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// A person must look.
    Error,
    /// Something is wrong.
    Warn,
    /// Things that were done.
    Info,
    /// Details of them.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// The word, as it stands in documents.
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

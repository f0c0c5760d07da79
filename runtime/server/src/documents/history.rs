//! The document of `history`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Link, Outcome, Reason, ResourceError, ResourceName, Time, Work};

/// Past runs, the latest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryDocument {
    /// Name and version of this form: `watershed.history/1`.
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Folder of the project.
    pub root: String,
    /// The environment.
    pub environment: String,
    /// The runs.
    pub runs: Vec<HistoryRun>,
}

impl HistoryDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.history/1";
}

/// A past run of one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryRun {
    /// Names the run.
    pub id: String,
    /// The resource, by the name that it had then.
    pub resource: ResourceName,
    /// The reason why it was asked for.
    pub reason: Reason,
    /// The origins of the request.
    pub cause: Vec<String>,
    /// The causal chain, the first step first; the last one is this resource's own.
    #[serde(default)]
    pub chain: Vec<Link>,
    /// The time at which it began.
    pub started_at: Time,
    /// The time that it took.
    pub duration_ms: u64,
    /// The outcome.
    pub outcome: Outcome,
    /// The work that it did outside.
    pub work: Work,
    /// Its failure.
    pub error: Option<ResourceError>,
}

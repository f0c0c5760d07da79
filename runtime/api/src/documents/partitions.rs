//! The document of `partitions`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ResourceName, Time};

/// The partitions of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartitionsDocument {
    /// Name and version of this form: `watershed.partitions/1`.
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Folder of the project.
    pub root: String,
    /// The environment.
    pub environment: String,
    /// The model.
    pub resource: ResourceName,
    /// Partitions of each phase.
    pub counts: PartitionTotals,
    /// The partitions that were asked for, the latest run first.
    pub partitions: Vec<PartitionEntry>,
    /// The token of the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl PartitionsDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.partitions/1";
}

/// Partitions by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartitionTotals {
    /// Their rows are in the table.
    pub done: u64,
    /// They are built, and not in the table yet.
    pub staged: u64,
    /// Their last run failed.
    pub failed: u64,
    /// They were asked for again.
    pub asked: u64,
    /// They failed, and are listed no more.
    pub gone: u64,
}

/// One partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartitionEntry {
    /// Its key, as `refresh --partition` takes it.
    pub key: String,
    /// The row that declares it.
    pub data: serde_json::Value,
    /// The watermark of its last build.
    pub watermark: Option<String>,
    /// Its state after that.
    pub phase: PartitionState,
    /// The start of its last run.
    pub ran_at: Time,
    /// The duration of that run.
    pub duration_ms: u64,
    /// Rows that it yielded.
    pub rows: Option<u64>,
    /// The error of a run that failed.
    pub error: Option<String>,
}

/// The state of a partition after its last run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartitionState {
    /// Its rows are in the table.
    Done,
    /// It is built, and not in the table yet.
    Staged,
    /// The run failed.
    Failed,
    /// It was asked for again.
    Asked,
    /// It failed, and is listed no more.
    Gone,
}

impl PartitionState {
    /// The word, as it is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Staged => "staged",
            Self::Failed => "failed",
            Self::Asked => "asked",
            Self::Gone => "gone",
        }
    }
}

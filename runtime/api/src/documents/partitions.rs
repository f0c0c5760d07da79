//! The document of `partitions`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ResourceName, Time};

/// A model's partitions, with their numbers by state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartitionsDocument {
    /// Name and version of this form: `watershed.partitions/1`.
    pub schema: String,
    /// Version of the program that wrote the document.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Path of the project's folder.
    pub root: String,
    /// Name of the project's environment.
    pub environment: String,
    /// Kind and name of the model.
    pub resource: ResourceName,
    /// Numbers of the model's partitions, by state.
    pub counts: PartitionTotals,
    /// Requested partitions, latest run first.
    pub partitions: Vec<PartitionEntry>,
    /// Token of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl PartitionsDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.partitions/1";
}

/// The numbers of a model's partitions, by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartitionTotals {
    /// Number of partitions whose rows are in the table.
    pub done: u64,
    /// Number of partitions that are built but not yet in the table.
    pub staged: u64,
    /// Number of partitions whose last run failed.
    pub failed: u64,
    /// Number of partitions for which a rebuild is requested.
    pub asked: u64,
    /// Number of failed partitions that the model no longer lists.
    pub gone: u64,
}

/// A partition of a model, with its last run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartitionEntry {
    /// Key of the partition, as `refresh --partition` accepts it.
    pub key: String,
    /// Row that declares the partition, as an object.
    pub data: serde_json::Value,
    /// Watermark of the last build; null if there is none.
    pub watermark: Option<String>,
    /// State of the partition after the last run.
    pub phase: PartitionState,
    /// Time at which the last run began.
    pub ran_at: Time,
    /// Duration of the last run, in milliseconds.
    pub duration_ms: u64,
    /// Number of rows that the last run produced; null if unknown.
    pub rows: Option<u64>,
    /// Error message of the last run; null if it succeeded.
    pub error: Option<String>,
}

/// The state of a partition after its last run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartitionState {
    /// The partition's rows are in the table.
    Done,
    /// The partition is built but not yet in the table.
    Staged,
    /// The last run of the partition failed.
    Failed,
    /// A rebuild of the partition is requested.
    Asked,
    /// The partition failed, and the model no longer lists it.
    Gone,
}

impl PartitionState {
    /// Returns the name in documents, such as `done`.
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

//! A resource with its status, as documents show it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{At, Link, Reason, ResourceError, ResourceName, TestDocument, Time};

/// A resource: its declaration, its status and its last run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceDocument {
    /// Kind of the resource, such as `model`.
    pub kind: String,
    /// Name of the resource.
    pub name: String,
    /// Resources that this resource reads.
    pub refs: Vec<ResourceName>,
    /// Type in the resource's file, such as `source`; absent if it equals the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_as: Option<String>,
    /// Paths of the files that declare the resource, relative to the project.
    pub paths: Vec<String>,
    /// False if the command's selection excludes the resource; absent otherwise.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub selected: bool,
    /// Phase in which the controller has the resource.
    pub phase: Phase,
    /// Health of the resource.
    pub health: Health,
    /// Error of the resource itself; null if there is none.
    pub error: Option<ResourceError>,
    /// Root causes that block the resource; empty if nothing does.
    pub blocked_by: Vec<ResourceName>,
    /// Reason why the resource can't be used yet, although its last run succeeded; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unready: Option<String>,
    /// Warnings about the resource's files.
    pub warnings: Vec<Warning>,
    /// Work that the command did on the resource's outputs.
    pub work: Work,
    /// Last run of the resource, by this command or an earlier command; null if there is none.
    pub last_run: Option<LastRun>,
    /// Number of runs since the resource was created.
    pub runs_total: u64,
    /// Time of the next scheduled run; null if none is scheduled.
    pub next_run_at: Option<Time>,
    /// Version of the spec, which increases with every change of spec, refs or name.
    pub spec_version: u64,
    /// Version of the state, which increases with every change of the state.
    pub state_version: u64,
    /// Result of the resource, such as a model's output table; null if there is none.
    pub result: Option<Value>,
    /// Tests of the resource, with the results of their last runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<TestDocument>,
    /// Options that were detected for a CSV source; absent unless such a source is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guessed: Option<GuessedDocument>,
    /// Desired spec with defaults filled in; absent without `--spec`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Value>,
}

/// The options of a CSV file that were detected, since its source does not declare them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuessedDocument {
    /// Path of the source's first file.
    pub file: String,
    /// Detected options by name, as they may be declared beside `path`. Without a header, column names are generated.
    pub options: BTreeMap<String, String>,
}

fn yes() -> bool {
    true
}

impl ResourceDocument {
    /// Returns the kind and name of the resource.
    pub fn id(&self) -> ResourceName {
        ResourceName {
            kind: self.kind.clone(),
            name: self.name.clone(),
        }
    }
}

/// The phase in which the controller has a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The resource is neither pending nor running.
    Idle,
    /// A run of the resource is requested and has not started.
    Pending,
    /// The resource is running.
    Running,
}

/// The health of a resource: the first value that applies, in order of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// This program can't run resources of this kind.
    Unsupported,
    /// The resource is paused by hand.
    Paused,
    /// The resource itself has an error.
    Failed,
    /// A resource that this resource depends on has failed.
    Blocked,
    /// The resource, or one that it waits for, can't be used yet; nothing has failed.
    Unready,
    /// Nothing was built for the resource yet.
    NeverBuilt,
    /// The resource's output is known to be out of date.
    Stale,
    /// The resource is up to date.
    Ok,
}

impl Health {
    /// Returns the name in documents, such as `never_built`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unsupported => "unsupported",
            Self::Paused => "paused",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::NeverBuilt => "never_built",
            Self::Unready => "unready",
            Self::Stale => "stale",
            Self::Ok => "ok",
        }
    }
}

/// The work that a run did on outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// The run built or replaced an output.
    Built,
    /// The run restored an output from the trash.
    Restored,
    /// The run renamed an output.
    Renamed,
    /// The run dropped an output.
    Dropped,
    /// The run checked its inputs and changed nothing.
    Checked,
    /// There was no run, or it did no work on outputs.
    None,
}

impl Work {
    /// Returns true if the run changed what is there of outputs.
    pub fn changes_outputs(self) -> bool {
        matches!(self, Self::Built | Self::Restored | Self::Renamed | Self::Dropped)
    }

    /// Returns the name in documents, such as `built`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Built => "built",
            Self::Restored => "restored",
            Self::Renamed => "renamed",
            Self::Dropped => "dropped",
            Self::Checked => "checked",
            Self::None => "none",
        }
    }
}

/// The outcome of a run: done, failed, or the reason why it did no work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The run did its work.
    Done,
    /// The run failed.
    Failed,
    /// The run was skipped because a ref has failed. The last good output stays.
    Skipped,
    /// The run was cancelled.
    Cancelled,
    /// The run found nothing to do.
    Unchanged,
    /// The resource was not selected, so it was left unchanged.
    NotSelected,
}

impl Outcome {
    /// Returns the name in documents, such as `not_selected`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
            Self::Unchanged => "unchanged",
            Self::NotSelected => "not_selected",
        }
    }
}

/// A run of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastRun {
    /// Id of the run, as in logs and history.
    pub id: String,
    /// Reason for the run.
    pub reason: Reason,
    /// Origins of the request: the parents, refs or callers behind the reason.
    pub cause: Vec<String>,
    /// Causal chain of the run, oldest link first, this resource's own link last.
    #[serde(default)]
    pub chain: Vec<Link>,
    /// Time at which the run began.
    pub started_at: Time,
    /// Duration of the run, in milliseconds.
    pub duration_ms: u64,
    /// Outcome of the run.
    pub outcome: Outcome,
}

/// A warning about a resource's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable code of the warning, for programs.
    pub code: String,
    /// Message of the warning, for people.
    pub message: String,
    /// Suggested fix; null if none is known.
    pub hint: Option<String>,
    /// Place in the project's files; null if no place is known.
    pub at: Option<At>,
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.path, self.line, self.column)
    }
}

//! One resource as documents show it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{At, Link, Reason, ResourceError, ResourceName, TestDocument, Time};

/// One resource: what it is, how it stands, what was done to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceDocument {
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The resources that it reads.
    pub refs: Vec<ResourceName>,
    /// The type that its file says, where that is another word than the kind: `source`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_as: Option<String>,
    /// The files that declare it.
    pub paths: Vec<String>,
    /// False if the command was for others alone (`--select`); absent if it was for this one too.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub selected: bool,
    /// The phase that the controller has it in.
    pub phase: Phase,
    /// Its health.
    pub health: Health,
    /// Its own failure.
    pub error: Option<ResourceError>,
    /// The root causes that keep it from being built.
    pub blocked_by: Vec<ResourceName>,
    /// The reason why it can't be used yet, although its last run succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unready: Option<String>,
    /// Warnings about its files.
    pub warnings: Vec<Warning>,
    /// The work that this command did outside for it.
    pub work: Work,
    /// Its last run, of this command or an earlier one.
    pub last_run: Option<LastRun>,
    /// The number of times that it was run since it was created.
    pub runs_total: u64,
    /// The time at which it is due next.
    pub next_run_at: Option<Time>,
    /// Rises with every change of what is wanted.
    pub spec_version: u64,
    /// Rises with every change of what was achieved.
    pub state_version: u64,
    /// Its result.
    pub result: Option<Value>,
    /// Its tests, and what they came to when they were last run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<TestDocument>,
    /// The options that were guessed of a source of CSV; only of one that is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guessed: Option<GuessedDocument>,
    /// The desired spec, defaults filled in; only with `--spec`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Value>,
}

/// The options with which a file of CSV is read and that its source does not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuessedDocument {
    /// The first file of the source.
    pub file: String,
    /// The options by name, as they may stand beside `path`. Without a header the names of columns are made up.
    pub options: BTreeMap<String, String>,
}

fn yes() -> bool {
    true
}

impl ResourceDocument {
    /// Kind and name alone.
    pub fn id(&self) -> ResourceName {
        ResourceName {
            kind: self.kind.clone(),
            name: self.name.clone(),
        }
    }
}

/// The phase that the controller has a resource in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing.
    Idle,
    /// It waits for its turn.
    Pending,
    /// It runs.
    Running,
}

/// The health of a resource: the first that holds. Ordered by how much it needs a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Nothing here can run a resource of its kind.
    Unsupported,
    /// Paused by hand.
    Paused,
    /// It has an error of its own.
    Failed,
    /// Something that it reads is failed.
    Blocked,
    /// It can't be used yet, or waits for what can't: nothing is wrong.
    Unready,
    /// Nothing was built for it yet.
    NeverBuilt,
    /// Its result is known to be behind.
    Stale,
    /// Up to date.
    Ok,
}

impl Health {
    /// The word, as it stands in documents.
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

/// The work that a run did outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Made or replaced an output.
    Built,
    /// Took an output back from the trash.
    Restored,
    /// Renamed an output.
    Renamed,
    /// Dropped an output.
    Dropped,
    /// Looked, and changed nothing.
    Checked,
    /// Nothing.
    None,
}

impl Work {
    /// The word, as it stands in documents.
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

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did its work.
    Done,
    /// It failed.
    Failed,
    /// A ref is failed: not built, the last good output stays.
    Skipped,
    /// It was stopped.
    Cancelled,
    /// There was nothing to do.
    Unchanged,
    /// It was left as it is, because the command was for others.
    NotSelected,
}

impl Outcome {
    /// The word, as it stands in documents.
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
    /// Names the run in logs and history.
    pub id: String,
    /// The reason why it was asked for.
    pub reason: Reason,
    /// The origins of the request: the parents, refs or callers behind the reason.
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
}

/// A warning about a resource's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable name of what was found.
    pub code: String,
    /// The message.
    pub message: String,
    /// A hint.
    pub hint: Option<String>,
    /// The place in the project's files.
    pub at: Option<At>,
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.path, self.line, self.column)
    }
}

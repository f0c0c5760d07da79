//! Requests that run resources, and the progress of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::documents::{ResourceName, Time};

/// The options of a command that runs resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// Variables from the command line. An owner that runs with other values refuses the request.
    pub variables: BTreeMap<String, String>,
    /// True to stop at the first failure.
    pub fail_fast: bool,
    /// True to count warnings as errors.
    pub warn_error: bool,
    /// True to list hidden resources too.
    pub all: bool,
    /// Resources that a run or a refresh applies to; all if empty.
    #[serde(default)]
    pub selection: Selection,
    /// Events to send while the command runs.
    #[serde(default)]
    pub events: Events,
    /// True to send the progress of the run too.
    #[serde(default)]
    pub progress: bool,
    /// Start time of a command that this request continues after the process that ran the command has ended; none for a
    /// new command.
    ///
    /// The work requested since then is stored, and is not requested again.
    #[serde(default)]
    pub goes_on_since: Option<Time>,
}

/// A request for work on named resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedRun {
    /// Names of the resources to work on.
    pub names: Vec<String>,
    /// Options of the run: failures, selection, and the events to send.
    pub run: RunRequest,
}

/// A request to do the work of resources again, even if they are up to date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefreshRequest {
    /// Names of the resources; empty if `run` selects the resources.
    pub names: Vec<String>,
    /// True to discard incremental state and rebuild all rows.
    pub full: bool,
    /// True to refresh transitive dependents too, except reports, which are sent only by name or schedule.
    pub downstream: bool,
    /// Partitions to rebuild in addition to the due partitions; none for only the due ones.
    #[serde(default)]
    pub partitions: Option<PartitionChoice>,
    /// Options of the run: failures, selection, and the events to send.
    pub run: RunRequest,
}

/// The partitions of a model to rebuild.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionChoice {
    /// All partitions that failed.
    Errored,
    /// The partitions with these keys, key prefixes, or values in their data.
    Keys(Vec<String>),
}

/// A selection of a project's resources, as typed after `--select` and `--exclude`; empty for all resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// Terms of `--select`: their union is selected; empty for all resources.
    pub select: Vec<String>,
    /// Terms of `--exclude`: their union is left out; empty to leave out nothing.
    pub exclude: Vec<String>,
}

impl Selection {
    /// Returns true if neither `select` nor `exclude` has a term.
    pub fn is_empty(&self) -> bool {
        self.select.is_empty() && self.exclude.is_empty()
    }
}

/// The events that a run sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Events {
    /// All events, including those of resources that were only checked.
    #[default]
    All,
    /// The events that a person reads, without those of resources that were only checked.
    News,
}

/// The progress of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Activity {
    /// Number of settled resources.
    pub settled: u64,
    /// Number of all resources of the run.
    pub total: u64,
    /// Resources that are running now.
    pub running: Vec<ResourceName>,
}

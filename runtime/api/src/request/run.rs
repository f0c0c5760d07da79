//! Requests for work, and its progress.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::documents::{ResourceName, Time};

/// The options of a command that runs resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// Variables from the command line; an owner with other values refuses the request.
    pub variables: BTreeMap<String, String>,
    /// True to stop at the first failure.
    pub fail_fast: bool,
    /// True to count warnings as errors.
    pub warn_error: bool,
    /// True to list hidden resources too.
    pub all: bool,
    /// The resources that a run or a refresh is for; all if empty.
    #[serde(default)]
    pub selection: Selection,
    /// The events that are sent while the command runs.
    #[serde(default)]
    pub events: Events,
    /// True to send the progress too.
    #[serde(default)]
    pub progress: bool,
    /// The start of a command that this request takes over, after the process that did its work has ended; none for a
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
    /// Names of the resources.
    pub names: Vec<String>,
    /// The options of the run.
    pub run: RunRequest,
}

/// A request to refresh resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefreshRequest {
    /// Names of the resources; empty if they are selected.
    pub names: Vec<String>,
    /// True to discard incremental state and rebuild all rows.
    pub full: bool,
    /// True to refresh transitive dependents too.
    pub downstream: bool,
    /// The partitions to rebuild in addition to those that are due; none for no others.
    #[serde(default)]
    pub partitions: Option<PartitionChoice>,
    /// The options of the run.
    pub run: RunRequest,
}

/// The partitions of a model to rebuild.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionChoice {
    /// All partitions that failed.
    Errored,
    /// The partitions with these keys, prefixes of keys, or values in their data.
    Keys(Vec<String>),
}

/// A selection of a project's resources, as typed after `--select` and `--exclude`; empty for all resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// The terms of `--select`, whose union is selected; empty for all resources.
    pub select: Vec<String>,
    /// The terms of `--exclude`, whose union is left out.
    pub exclude: Vec<String>,
}

impl Selection {
    /// Returns true if neither option was given.
    pub fn is_empty(&self) -> bool {
        self.select.is_empty() && self.exclude.is_empty()
    }
}

/// The events that a run sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Events {
    /// All events of the run.
    #[default]
    All,
    /// The events that a person reads; those of resources that were only checked are left out, at no cost.
    News,
}

/// The progress of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Activity {
    /// Number of resources that are settled.
    pub settled: u64,
    /// Number of all resources.
    pub total: u64,
    /// Names of the resources that run now.
    pub running: Vec<ResourceName>,
}

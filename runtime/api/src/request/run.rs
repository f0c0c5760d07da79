//! Requests for work, and its progress.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::documents::{ResourceName, Time};

/// The options of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// Variables set by hand; an owner with others refuses.
    pub variables: BTreeMap<String, String>,
    /// Stop at the first failure.
    pub fail_fast: bool,
    /// Count warnings as errors.
    pub warn_error: bool,
    /// Hidden resources too.
    pub all: bool,
    /// The resources that a run or a refresh is for.
    #[serde(default)]
    pub selection: Selection,
    /// The events that are told while it goes on.
    #[serde(default)]
    pub events: Events,
    /// Tell the progress too.
    #[serde(default)]
    pub progress: bool,
    /// The time at which the command began that goes on here: the process that did its work has ended. What it asked for
    /// since then is stored, and not to be asked for again.
    #[serde(default)]
    pub goes_on_since: Option<Time>,
}

/// Work on resources that are named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedRun {
    /// The resources.
    pub names: Vec<String>,
    /// The options of the run.
    pub run: RunRequest,
}

/// The work of resources once more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefreshRequest {
    /// The resources.
    pub names: Vec<String>,
    /// True to forget incremental state.
    pub full: bool,
    /// True to refresh dependents too.
    pub downstream: bool,
    /// The partitions that are built again, besides those that are due; none for no others.
    #[serde(default)]
    pub partitions: Option<PartitionChoice>,
    /// The options of the run.
    pub run: RunRequest,
}

/// The partitions that are built again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionChoice {
    /// Those that failed.
    Errored,
    /// These: by key, by the beginning of one, or by a value of their data.
    Keys(Vec<String>),
}

/// A choice among a project's resources, as it is typed behind `--select` and `--exclude`. Empty, it stands for all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// The resources that are meant; all if nothing is typed.
    pub select: Vec<String>,
    /// The ones that are left out of those.
    pub exclude: Vec<String>,
}

impl Selection {
    /// Returns whether nothing was typed.
    pub fn is_empty(&self) -> bool {
        self.select.is_empty() && self.exclude.is_empty()
    }
}

/// The events that a run tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Events {
    /// All of them.
    #[default]
    All,
    /// Those that a person reads. Resources that were looked at and left as they are cost nothing then.
    News,
}

/// The progress of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Activity {
    /// Resources that are settled.
    pub settled: u64,
    /// Resources there are.
    pub total: u64,
    /// The resources that run now.
    pub running: Vec<ResourceName>,
}

//! Looks at how things stand.

use serde::{Deserialize, Serialize};

use super::Selection;
use crate::documents::{Outcome, PartitionState, Time};

/// The input of an operation that needs none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoInput {}

/// The status of resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusRequest {
    /// The resources; empty for all.
    pub names: Vec<String>,
    /// The resources by selection.
    #[serde(default)]
    pub selection: Selection,
    /// True to list hidden resources too.
    pub all: bool,
}

/// The steps of a run that is not made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    /// True to end with a code of its own if there is anything to do.
    pub exit_code: bool,
    /// The resources that the run would be for.
    #[serde(default)]
    pub selection: Selection,
}

/// The mistakes in the project's files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidateRequest {
    /// The resources by selection.
    #[serde(default)]
    pub selection: Selection,
    /// True to list hidden resources too.
    pub all: bool,
    /// True to count warnings as errors.
    pub warn_error: bool,
    /// True to add to each resource its spec.
    pub spec: bool,
}

/// The graph of resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphRequest {
    /// The resource in the middle; none for the whole graph.
    pub name: Option<String>,
    /// The resources by selection.
    #[serde(default)]
    pub selection: Selection,
    /// True to list hidden resources too.
    pub all: bool,
}

/// Past runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryRequest {
    /// The resource; none for all.
    pub name: Option<String>,
    /// The most entries.
    pub limit: u64,
    /// The time before which entries are left out.
    #[serde(default)]
    pub from: Option<Time>,
    /// The time from which on entries are left out.
    #[serde(default)]
    pub until: Option<Time>,
    /// The outcomes that are meant; empty for all, and for transitions too.
    #[serde(default)]
    pub outcomes: Vec<Outcome>,
    /// The resources by selection.
    #[serde(default)]
    pub selection: Selection,
    /// The token of the page, as the page before gave it; none for the newest entries.
    #[serde(default)]
    pub page: Option<String>,
}

/// The partitions of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionsRequest {
    /// The model.
    pub name: String,
    /// True for those that failed alone.
    pub errored: bool,
    /// The most partitions.
    pub limit: u64,
    /// The phases that are meant; empty for all.
    #[serde(default)]
    pub phases: Vec<PartitionState>,
    /// The first key of a range.
    #[serde(default)]
    pub from: Option<String>,
    /// The key behind the last one of a range.
    #[serde(default)]
    pub to: Option<String>,
    /// The token of the page, as the page before gave it; none for the latest runs.
    #[serde(default)]
    pub page: Option<String>,
}

/// The reason why something is not running.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainRequest {
    /// The resource; none for the whole project.
    pub name: Option<String>,
}

/// The choice of tests to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestRequest {
    /// The models whose tests are run; empty for all.
    pub names: Vec<String>,
    /// The models by selection.
    #[serde(default)]
    pub selection: Selection,
    /// True to count warnings as errors.
    pub warn_error: bool,
}

/// The logs of a resource's runs, or the output of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogsRequest {
    /// The resource.
    pub name: String,
    /// The most lines of those that were written before.
    pub limit: u64,
    /// True to go on with what is written from now on, until nobody listens.
    pub follow: bool,
    /// The time before which lines are left out; none for all.
    #[serde(default)]
    pub since: Option<Time>,
    /// The part of a program's output; none for the logs of runs.
    #[serde(default)]
    pub program: Option<ProgramOutput>,
}

/// The part of a program's output that is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramOutput {
    /// The number of the replica; none for all of them.
    pub replica: Option<u64>,
    /// True for the start before the last one.
    pub previous: bool,
}

//! Requests that only read.

use serde::{Deserialize, Serialize};

use super::Selection;
use crate::documents::{Outcome, PartitionState, Time};

/// The input of an operation that needs none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoInput {}

/// A request for the status of resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusRequest {
    /// Names of the resources; empty for all.
    pub names: Vec<String>,
    /// The selected resources, if none are named.
    #[serde(default)]
    pub selection: Selection,
    /// True to list hidden resources too.
    pub all: bool,
}

/// A request for a forecast of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    /// True to return a special exit code if there is anything to do.
    pub exit_code: bool,
    /// The resources that the run would be for.
    #[serde(default)]
    pub selection: Selection,
}

/// A request to compile the project's files and list the findings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidateRequest {
    /// The selected resources; all if empty.
    #[serde(default)]
    pub selection: Selection,
    /// True to list hidden resources too.
    pub all: bool,
    /// True to count warnings as errors.
    pub warn_error: bool,
    /// True to add the spec of each resource.
    pub spec: bool,
}

/// A request for the graph of resources and their refs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphRequest {
    /// Name of the resource in the middle; none for the whole graph.
    pub name: Option<String>,
    /// The selected resources, if none is named.
    #[serde(default)]
    pub selection: Selection,
    /// True to list hidden resources too.
    pub all: bool,
}

/// A request for past runs and transitions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryRequest {
    /// Name of the resource; none for all.
    pub name: Option<String>,
    /// Most entries in the answer.
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

/// A request for the partitions of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionsRequest {
    /// Name of the model.
    pub name: String,
    /// True to list only partitions that failed.
    pub errored: bool,
    /// Most partitions in the answer.
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

/// A request for the reason why resources are not running.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainRequest {
    /// Name of the resource; none for the whole project.
    pub name: Option<String>,
}

/// A request to run the tests of models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestRequest {
    /// Names of the models whose tests are run; empty for all.
    pub names: Vec<String>,
    /// The selected models, if none are named.
    #[serde(default)]
    pub selection: Selection,
    /// True to count warnings as errors.
    pub warn_error: bool,
}

/// A request for the log lines of a resource, or the output of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogsRequest {
    /// Name of the resource or program.
    pub name: String,
    /// Most lines from before the request.
    pub limit: u64,
    /// True to go on with later lines until the reader hangs up.
    pub follow: bool,
    /// The time before which lines are left out; none for no such limit.
    #[serde(default)]
    pub since: Option<Time>,
    /// The part of a program's output; none for the log lines of runs.
    #[serde(default)]
    pub program: Option<ProgramOutput>,
}

/// The part of a program's output that is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramOutput {
    /// The number of the replica; none for all replicas.
    pub replica: Option<u64>,
    /// True for the output of the start before the last one.
    pub previous: bool,
}

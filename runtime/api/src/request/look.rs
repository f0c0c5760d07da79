//! Requests that only read, without rows in the answer.

use serde::{Deserialize, Serialize};

use super::Selection;
use crate::documents::{Outcome, PartitionState, Time};

/// The input of an operation that takes no arguments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoInput {}

/// A request for the status of resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusRequest {
    /// Names of the resources; empty for the selection.
    pub names: Vec<String>,
    /// Selection of resources, used if no names are given.
    #[serde(default)]
    pub selection: Selection,
    /// True to list hidden resources too.
    pub all: bool,
}

/// A request for a forecast of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    /// True to answer with exit code 5 if there is anything to do.
    pub exit_code: bool,
    /// Resources that the run would apply to; all if empty.
    #[serde(default)]
    pub selection: Selection,
}

/// A request to compile the project's files and list the findings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidateRequest {
    /// Resources to list; all if empty.
    #[serde(default)]
    pub selection: Selection,
    /// True to list hidden resources too.
    pub all: bool,
    /// True to count warnings as errors.
    pub warn_error: bool,
    /// True to add each resource's spec to the answer.
    pub spec: bool,
}

/// A request for the graph of resources and their refs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphRequest {
    /// Name of the resource whose ancestors and descendants are drawn; none for the whole graph.
    pub name: Option<String>,
    /// Selection of resources to draw, used if no name is given.
    #[serde(default)]
    pub selection: Selection,
    /// True to draw hidden resources too.
    pub all: bool,
}

/// A request for past runs and transitions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryRequest {
    /// Name of the resource; none for all resources.
    pub name: Option<String>,
    /// Maximum number of entries in the answer.
    pub limit: u64,
    /// Earliest start of the listed entries; none for no such bound.
    #[serde(default)]
    pub from: Option<Time>,
    /// End of the period, exclusive: entries that start at or after this time are left out; none for no such bound.
    #[serde(default)]
    pub until: Option<Time>,
    /// Outcomes of the listed runs; empty lists all runs, and transitions too.
    #[serde(default)]
    pub outcomes: Vec<Outcome>,
    /// Selection of resources whose entries are listed; all if empty.
    #[serde(default)]
    pub selection: Selection,
    /// Token of the page, from the previous page's answer; none for the newest entries.
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
    /// Maximum number of partitions in the answer.
    pub limit: u64,
    /// States of the listed partitions; empty for all.
    #[serde(default)]
    pub phases: Vec<PartitionState>,
    /// First partition key of a range, inclusive; none for no lower bound.
    #[serde(default)]
    pub from: Option<String>,
    /// End of a range of partition keys, exclusive; none for no upper bound.
    #[serde(default)]
    pub to: Option<String>,
    /// Token of the page, from the previous page's answer; none for the latest runs.
    #[serde(default)]
    pub page: Option<String>,
}

/// A request to explain why resources are not running.
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
    /// Names of the models to test; empty for the selection.
    pub names: Vec<String>,
    /// Selection of models to test, used if no names are given.
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
    /// Maximum number of lines written before the request.
    pub limit: u64,
    /// True to stream later lines until the reader disconnects.
    pub follow: bool,
    /// Earliest time of the returned lines; none for no such bound.
    #[serde(default)]
    pub since: Option<Time>,
    /// Part of a program's output to return; none for the log lines of runs.
    #[serde(default)]
    pub program: Option<ProgramOutput>,
}

/// The requested part of a program's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramOutput {
    /// Number of the replica; none for all replicas.
    pub replica: Option<u64>,
    /// True for the output of the start before the last start.
    pub previous: bool,
}

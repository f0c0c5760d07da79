//! The document of `history`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Link, Outcome, Reason, ResourceError, ResourceName, Time, Work};

/// Past runs and transitions, the latest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryDocument {
    /// Name and version of this form: `watershed.history/1`.
    pub schema: String,
    /// Version of the program that wrote the document.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Path of the project's folder.
    pub root: String,
    /// Name of the project's environment.
    pub environment: String,
    /// Past runs, latest first.
    pub runs: Vec<HistoryRun>,
    /// Transitions of jobs, services and managed resources, evaluations of alerts, and exports of reports, latest
    /// first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transitions: Vec<HistoryTransition>,
    /// Token of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// End of the earliest run that was searched; absent if the search covered all stored runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched_since: Option<Time>,
    /// Early end of the last process, which could not store its work; absent if it ended in order, or a process runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<EndedEarly>,
}

/// The end of a process that could not store its work any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndedEarly {
    /// Time at which the process ended.
    pub at: Time,
    /// Reason for the early end: the disk of the state folder was full.
    pub message: String,
}

impl HistoryDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.history/1";

    /// Returns runs and transitions together, the latest first.
    pub fn moments(&self) -> Vec<Moment<'_>> {
        let runs = self.runs.iter().map(Moment::Run);
        let transitions = self.transitions.iter().map(Moment::Transition);
        let mut all: Vec<Moment<'_>> = transitions.chain(runs).collect();
        all.sort_by_key(|moment| std::cmp::Reverse(moment.at()));
        all
    }
}

/// An entry of a history: a run or a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Moment<'a> {
    /// A past run of a resource.
    Run(&'a HistoryRun),
    /// A past transition of a resource.
    Transition(&'a HistoryTransition),
}

impl Moment<'_> {
    /// Returns the start of the run, or the time of the transition.
    pub fn at(self) -> Time {
        match self {
            Self::Run(run) => run.started_at,
            Self::Transition(transition) => transition.at,
        }
    }
}

/// A past transition of a job, a service, a replica or a managed resource: another stage, or a notable event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryTransition {
    /// Time of the transition.
    pub at: Time,
    /// Kind and name of the resource.
    pub resource: ResourceName,
    /// Stage before the transition, or an alert's previous verdict; empty for reports.
    pub from: String,
    /// Stage after the transition, or an alert's new verdict; empty for reports.
    pub to: String,
    /// Reason for the transition, as a stable word such as `exited`.
    pub reason: String,
    /// Details for people; absent if there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Id of the run that recorded the transition, as in `runs`; absent for alerts and reports.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// Time for which the alert was evaluated, or the report made; absent for other transitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moment: Option<Time>,
    /// Number of rows that the alert found and kept, or that the report's file holds; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Names of the notifications that the transition caused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
}

/// A past run of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryRun {
    /// Id of the run.
    pub id: String,
    /// Kind of the resource, and its name at the time of the run.
    pub resource: ResourceName,
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
    /// Work that the run did on outputs.
    pub work: Work,
    /// Error of the run; null if it did not fail.
    pub error: Option<ResourceError>,
    /// Series of runs with the same end, of which this run is the last; absent if the run stands alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
}

/// A series of consecutive runs that ended in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repeats {
    /// Number of runs in the series, including the last.
    pub runs: u32,
    /// Time at which the first run of the series began.
    pub since: Time,
}

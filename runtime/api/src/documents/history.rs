//! The document of `history`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Link, Outcome, Reason, ResourceError, ResourceName, Time, Work};

/// Past runs and transitions, the latest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryDocument {
    /// Name and version of this form: `watershed.history/1`.
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Folder of the project.
    pub root: String,
    /// The environment.
    pub environment: String,
    /// The runs.
    pub runs: Vec<HistoryRun>,
    /// The transitions of jobs, services and managed resources, evaluations of alerts and files of reports, the latest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transitions: Vec<HistoryTransition>,
    /// The token of the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The time of the earliest run that was looked at; absent where all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched_since: Option<Time>,
    /// The end of the last process, if it could not store what it did any more; none if it did, or one runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<EndedEarly>,
}

/// The end of a process that could not store what it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndedEarly {
    /// The time.
    pub at: Time,
    /// The reason: the disk of the state folder was full.
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

/// One entry of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Moment<'a> {
    /// A run.
    Run(&'a HistoryRun),
    /// A transition.
    Transition(&'a HistoryTransition),
}

impl Moment<'_> {
    /// Returns the time at which it began.
    pub fn at(self) -> Time {
        match self {
            Self::Run(run) => run.started_at,
            Self::Transition(transition) => transition.at,
        }
    }
}

/// A past transition of a job, a service or one of its replicas, or a managed resource: another stage, or an event worth
/// telling. An alert that was evaluated goes from verdict to verdict, a report that was made from nothing to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryTransition {
    /// The time.
    pub at: Time,
    /// The resource.
    pub resource: ResourceName,
    /// The stage before.
    pub from: String,
    /// The stage after.
    pub to: String,
    /// The reason, as a word.
    pub reason: String,
    /// More for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The run that recorded it, named as in `runs`; not of alerts and reports.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// The moment that an evaluation or a file is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moment: Option<Time>,
    /// The rows that were found, at most those that are kept, or the rows of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// The keys of the messages that tell of it: names of notifications.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
}

/// A past run of one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryRun {
    /// Names the run.
    pub id: String,
    /// The resource, by the name that it had then.
    pub resource: ResourceName,
    /// The reason why it was asked for.
    pub reason: Reason,
    /// The origins of the request.
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
    /// The work that it did outside.
    pub work: Work,
    /// Its failure.
    pub error: Option<ResourceError>,
    /// The runs in a row that ended as this one did, which is the last of them; none if it is the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
}

/// Runs in a row that ended in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repeats {
    /// Their number, the last one included.
    pub runs: u32,
    /// The time at which the first of them began.
    pub since: Time,
}

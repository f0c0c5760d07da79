//! Runs of reconcilers: phases, outcomes, and the record of the last run.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Epoch, InvocationId, Reason, Refreshes, SpecVersion, StateVersion, Timestamp, Uid};

/// The phase of an invocation: the reconciler's method that runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Undoes what the resource stands for.
    Delete,
    /// Moves the output to the new name.
    Rename,
    /// Converges the outside to the spec: the only *regular* phase.
    Reconcile,
}

/// The work that a run did outside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Made or replaced something.
    Built,
    /// Restored something made before.
    Restored,
    /// Moved something to another name.
    Renamed,
    /// Removed something that an earlier run had made.
    Dropped,
    /// Looked, and changed nothing.
    Checked,
    /// Did nothing at all.
    #[default]
    None,
}

/// The result of a successful run.
///
/// ```
/// use std::time::Duration;
/// use watershed_core::{Outcome, Timestamp, Work};
///
/// let now = Timestamp(1_000);
/// let outcome = Outcome { retrigger: Some(now.after(Duration::from_secs(60))), ..Outcome::from_work(Work::Checked) };
/// assert_eq!(outcome.retrigger, Some(Timestamp(61_000)));
/// assert_eq!(Outcome::unchanged(), Outcome::default());
/// assert_eq!(Outcome::changed().requeue_after(Duration::from_secs(60)).work, Work::Built);
/// assert!(Outcome::changed().unready("its endpoint does not answer").unready.is_some());
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Kind of work that the run did outside.
    pub work: Work,
    /// Time of the next run; none if none is needed. A time that is past or too near is moved to the kind's smallest
    /// requeue interval.
    pub retrigger: Option<Timestamp>,
    /// Longest wait from the return to the next run, which comes sooner if `retrigger` says so. Measured by the
    /// monotonic clock; after a restart the rest remains, and never more than the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue_after: Option<Duration>,
    /// True if the run was passed over: it did nothing on purpose, and its requests are left to a later run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passed_over: bool,
    /// Reason why the resource can't be used yet, although the run succeeded: refs that require `ready` wait. None if
    /// it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unready: Option<Arc<str>>,
}

impl Outcome {
    /// Creates the outcome of a run that did this work.
    pub fn from_work(work: Work) -> Self {
        Self {
            work,
            ..Self::default()
        }
    }

    /// Creates the outcome of a run that made, replaced or removed something.
    pub fn changed() -> Self {
        Self::from_work(Work::Built)
    }

    /// Creates the outcome of a run that found everything as it should be. Such a run leaves only a counter behind.
    pub fn unchanged() -> Self {
        Self::default()
    }

    /// Creates the outcome of a run that did nothing on purpose. The resource keeps its error and observed versions, so
    /// its requests stay open.
    pub fn passed_over() -> Self {
        Self {
            passed_over: true,
            ..Self::default()
        }
    }

    /// Marks the resource as not usable yet, with the reason for people.
    #[must_use]
    pub fn unready(mut self, why: impl Into<Arc<str>>) -> Self {
        self.unready = Some(why.into());
        self
    }

    /// Requests another run this long after the return.
    #[must_use]
    pub fn requeue_after(mut self, wait: Duration) -> Self {
        self.requeue_after = Some(wait);
        self
    }
}

/// The end of an invocation, as stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunResult {
    /// The run returned an outcome.
    Done(Work),
    /// The run returned an error, or panicked.
    Failed,
    /// The run was cancelled; its result was dropped.
    Cancelled,
}

impl RunResult {
    /// Returns true if something was made, moved or removed: such a run always has a history entry of its own.
    pub fn is_work(self) -> bool {
        matches!(
            self,
            Self::Done(Work::Built | Work::Restored | Work::Renamed | Work::Dropped)
        )
    }
}

/// A ref as a run saw it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ObservedRef {
    /// Uid and state version of the target; none if it was missing.
    pub target: Option<(Uid, StateVersion)>,
    /// True if the target counted as failed.
    pub failed: bool,
}

/// The inputs that a completed run saw. A reconciler can't tell runs with equal inputs apart.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ObservedInputs {
    /// Spec version that the resource had at the start.
    pub spec_version: SpecVersion,
    /// Refresh counters that the resource had at the start.
    pub refreshes: Refreshes,
    /// Versions of the kind's spec and state messages.
    pub formats: (u32, u32),
    /// Refs in their order.
    pub refs: Arc<[ObservedRef]>,
}

/// Runs in a row that ended alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Repeats {
    /// Number of runs, the last one included.
    pub runs: u32,
    /// Start time of the first run.
    pub since: Timestamp,
}

/// The last invocation of a resource, stored as one blob.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LastRun {
    /// Id of the invocation, unique within its epoch.
    pub id: InvocationId,
    /// Epoch under which the run acted.
    pub epoch: Epoch,
    /// Phase, and so the reconciler's method, that ran.
    pub phase: Phase,
    /// Reason why the invocation ran.
    pub reason: Arc<Reason>,
    /// Time at which the run started.
    pub started_at: Timestamp,
    /// Time at which the invocation returned.
    pub ended_at: Timestamp,
    /// Kind of end: done with some work, failed, or cancelled.
    pub result: RunResult,
    /// Inputs of the last *completed* reconcile, which may be an earlier run; none if none has completed.
    pub seen: Option<ObservedInputs>,
    /// State version of the resource when that reconcile returned.
    #[serde(default)]
    pub state_version: StateVersion,
    /// True if that reconcile failed. A cycle may have replaced the error itself since.
    #[serde(default)]
    pub failed: bool,
    /// Runs that share the history entry, if the next run may join them; none otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
    /// Length of the wait for the next run; none if that is planned for a wall time, or not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue_after: Option<Duration>,
}

//! Runs of reconcilers: phases, outcomes, and the record of the last run.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Epoch, InvocationId, Reason, Refreshes, SpecVersion, StateVersion, Timestamp, Uid};

/// The phase of an invocation: the method of the reconciler that it runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Undo the resource.
    Delete,
    /// Move it to its new name.
    Rename,
    /// Converge it: the only *regular* phase.
    Reconcile,
}

/// The work that a run did outside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Made or replaced something.
    Built,
    /// Put back in its place what was made before.
    Restored,
    /// Moved it to another name.
    Renamed,
    /// Removed it.
    Dropped,
    /// Looked, and changed nothing.
    Checked,
    /// Nothing at all.
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
    /// The work that was done.
    pub work: Work,
    /// The time at which to run again. A time that is past, or too near, counts as the kind's smallest requeue
    /// interval.
    pub retrigger: Option<Timestamp>,
    /// The longest wait from its return to the next run, which comes sooner where `retrigger` says so. It goes by a clock that
    /// nobody sets; after a restart what is left of it, and never more than all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue_after: Option<Duration>,
    /// It was passed over: nothing was done on purpose, and what was requested is left to a later run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passed_over: bool,
    /// The reason why its resource can't be used yet, although the run succeeded: refs that require `ready` wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unready: Option<Arc<str>>,
}

impl Outcome {
    /// The outcome of a run that did this.
    pub fn from_work(work: Work) -> Self {
        Self {
            work,
            ..Self::default()
        }
    }

    /// The outcome of a run that made, replaced or removed something.
    pub fn changed() -> Self {
        Self::from_work(Work::Built)
    }

    /// The outcome of a run that found everything as it should be. Such a run leaves no trace but a counter.
    pub fn unchanged() -> Self {
        Self::default()
    }

    /// The outcome of a run that did nothing on purpose. Its resource stays as it is, with the error and the versions
    /// that its last run saw, so that its requests are still open.
    pub fn passed_over() -> Self {
        Self {
            passed_over: true,
            ..Self::default()
        }
    }

    /// The same of a resource that can't be used yet, with the reason for people.
    #[must_use]
    pub fn unready(mut self, why: impl Into<Arc<str>>) -> Self {
        self.unready = Some(why.into());
        self
    }

    /// The same, with another run this long after the return.
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
    /// It returned an outcome.
    Done(Work),
    /// It returned an error, or panicked.
    Failed,
    /// It was cancelled; whatever it returned was dropped.
    Cancelled,
}

impl RunResult {
    /// Returns true if something was made, moved or removed: such runs are what a history is read for, and each has an
    /// entry of its own.
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
    /// The target's uid and state version; none if there was no target.
    pub target: Option<(Uid, StateVersion)>,
    /// True if the target counted as failed.
    pub failed: bool,
}

/// The inputs that a completed run saw. If two are equal, a reconciler can't tell them apart.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ObservedInputs {
    /// Spec version of its resource.
    pub spec_version: SpecVersion,
    /// Refresh counters of its resource.
    pub refreshes: Refreshes,
    /// Versions of its kind's spec and state messages.
    pub formats: (u32, u32),
    /// Its refs, in their order.
    pub refs: Arc<[ObservedRef]>,
}

/// Runs in a row that ended in the same way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Repeats {
    /// Their number, the last one included.
    pub runs: u32,
    /// The time at which the first of them started.
    pub since: Timestamp,
}

/// The last invocation of a resource; stored as one blob.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LastRun {
    /// Its number, unique together with the epoch.
    pub id: InvocationId,
    /// The epoch that it ran under.
    pub epoch: Epoch,
    /// The method that ran.
    pub phase: Phase,
    /// The reason why it ran.
    pub reason: Arc<Reason>,
    /// The time at which it started.
    pub started_at: Timestamp,
    /// The time at which it returned.
    pub ended_at: Timestamp,
    /// The result.
    pub result: RunResult,
    /// The inputs of the last *completed* reconcile, which may be an earlier one. None if none completed.
    pub seen: Option<ObservedInputs>,
    /// The version of its resource's state when that reconcile returned.
    #[serde(default)]
    pub state_version: StateVersion,
    /// Set if that reconcile failed; the error itself may have gone with a cycle since.
    #[serde(default)]
    pub failed: bool,
    /// The runs that its entry of history stands for, if a next run that ends in the same way may take its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
    /// The length of the wait for the next run, if that is waited for and not a time of day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue_after: Option<Duration>,
}

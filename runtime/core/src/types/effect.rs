//! Effects: the operations that the host carries out.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    Applied, CallId, CommitId, Consistency, Epoch, Error, Explanation, InvocationId, Key, Mono, NoOpRun,
    ObservedInputs, Outcome, Phase, Reason, Ref, Refusal, Repeats, Revision, Row, RunResult, Settled,
    StateVersion, Status, Timestamp, Uid,
};

/// A ref as an invocation gets to see it.
#[derive(Clone, Debug)]
pub struct RefView {
    /// The ref.
    pub reference: Ref,
    /// The resource that it stood for at the start, if any.
    pub target: Option<Arc<Row>>,
    /// True if that one counts as failed: an error, a cycle, waiting for a ref or a name. False if missing.
    pub failed: bool,
}

/// An owned resource as an invocation of its owner gets to see it.
#[derive(Clone, Debug)]
pub struct OwnedView {
    /// The resource. Its spec, refs and name are committed; its state may not be yet.
    pub resource: Arc<Row>,
    /// Set if it counts as failed: an error, a cycle, waiting for a ref or a name.
    pub failed: bool,
}

/// An invocation to be started. The reconciler gets all of this but the reason.
#[derive(Clone, Debug)]
pub struct Start {
    /// Its number.
    pub invocation: InvocationId,
    /// The method to run.
    pub phase: Phase,
    /// The resource. Its spec, refs and name are committed; its state may not be yet.
    pub resource: Arc<Row>,
    /// Its refs, in their order. Empty for deletes and renames, which read none.
    pub refs: Vec<RefView>,
    /// The resources that it owns, in order of kind and name. Empty for deletes and renames, and for kinds that are not requested
    /// changes of what they own, see [`KindOptions::on_owned`](crate::KindOptions::on_owned).
    pub owned: Arc<[OwnedView]>,
    /// The reason why it runs; for people.
    pub reason: Arc<Reason>,
    /// The epoch to act under outside.
    pub epoch: Epoch,
}

/// One row to be written.
#[derive(Clone, Debug)]
pub enum Write {
    /// Insert or replace by uid.
    Put(Arc<Row>),
    /// Remove by uid.
    Remove(Uid),
}

/// An invocation that did something, mended something, failed or was cancelled; or a delete that gave up on the
/// reconciler. One that ends like those before it stands in the place of theirs and counts them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HistoryRow {
    /// The resource.
    pub uid: Uid,
    /// The name that it had.
    pub key: Key,
    /// The epoch that it ran under.
    #[serde(default)]
    pub epoch: Epoch,
    /// The invocation, unique together with the epoch; none for a forced delete, for which nothing ran.
    pub invocation: Option<InvocationId>,
    /// The phase that ran.
    pub phase: Phase,
    /// The reason.
    pub reason: Arc<Reason>,
    /// The time at which it started.
    pub started_at: Timestamp,
    /// The time at which it returned.
    pub ended_at: Timestamp,
    /// The result.
    pub result: RunResult,
    /// The error, if it failed.
    pub error: Option<Arc<Error>>,
    /// The inputs that it saw; none for deletes and renames.
    pub seen: Option<ObservedInputs>,
    /// The runs in a row that ended like this one, which this entry stands for. None if it is the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
    /// The entry of the run before, in whose place this one is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<(Epoch, InvocationId)>,
}

/// One transaction: all of it or nothing, and only if the store still holds `epoch`.
///
/// Writing it twice is the same as once: rows replace rows, and history rows have the key (epoch, invocation). A history
/// row takes the place of the one that it [replaces](HistoryRow::replaces).
#[derive(Clone, Debug)]
pub struct Commit {
    /// Its number; a commit that is tried again keeps it.
    pub id: CommitId,
    /// The epoch it is conditional on.
    pub epoch: Epoch,
    /// The catalog's revision after it.
    pub revision: Revision,
    /// Each resource at most once.
    pub writes: Arc<[Write]>,
    /// Rows of history, in the order in which the invocations ended.
    pub history: Arc<[HistoryRow]>,
}

/// A resource that is no longer in the catalog.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Removed {
    /// Its uid.
    pub uid: Uid,
    /// The name that it had last.
    pub key: Key,
    /// The revision without it.
    pub revision: Revision,
}

/// An unnumbered update of where a resource stands.
#[derive(Clone, PartialEq, Debug)]
pub struct StatusUpdate {
    /// The resource.
    pub uid: Uid,
    /// The present status.
    pub status: Status,
    /// Its last run, if that has just ended and was a no-op: no row says so.
    pub no_op: Option<Arc<NoOpRun>>,
}

/// Changes that readers and watchers may see from now on: applied as one, so that batches show whole.
///
/// Every resource named in `statuses` is in the catalog once `rows` and `removed` are applied.
#[derive(Clone, Debug, Default)]
pub struct Publish {
    /// The catalog's revision after it.
    pub revision: Revision,
    /// New and changed rows, in order of revision, each resource at most once.
    pub rows: Vec<Arc<Row>>,
    /// Resources that went.
    pub removed: Vec<Removed>,
    /// Changes of stage, reason and progress, and no-op runs.
    pub statuses: Vec<StatusUpdate>,
}

/// The outcome of a request for a reconcile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum RunOutcome {
    /// The first run that started after the request and completed succeeded.
    Done {
        /// The invocation.
        invocation: InvocationId,
        /// The returned outcome.
        outcome: Outcome,
    },
    /// That run failed; or the rename or delete that stood before it did.
    Failed {
        /// The invocation.
        invocation: InvocationId,
        /// The error.
        error: Arc<Error>,
    },
    /// The resource was deleted before a run completed.
    Deleted,
    /// No run can come: the resource settled without one, for this reason.
    NotRun(Settled),
    /// The controller shut down first.
    ShutDown,
    /// Another controller took the instance.
    LeaseLost,
}

/// The end of a wait for a resource and its descendants to settle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Settlement {
    /// Each has settled once after the request.
    Settled,
    /// The controller shut down first.
    ShutDown,
    /// Another controller took the instance.
    LeaseLost,
}

/// The answer to a call, released only when what it speaks of is committed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// To `Apply`, and first to `ApplyAndAwait` and `Await`.
    Applied(Applied),
    /// To `Reconcile` and `Refresh`: the request stands; `Outcome` and `Settled` follow.
    Recorded(Uid),
    /// To `Reconcile` and `Refresh`, after `Recorded`.
    Outcome(RunOutcome),
    /// To `ApplyAndAwait` and `Await`, after `Applied`: for each edit the outcome of the resource that it was about.
    Outcomes(Vec<RunOutcome>),
    /// To `Reconcile`, `Refresh`, `ApplyAndAwait` and `Await`, after their first answer.
    Settled(Settlement),
    /// To `WriteState`.
    StateWritten(StateVersion),
    /// To `Explain`.
    Explained(Box<Explanation>),
    /// To `Check`.
    Checked(Box<Consistency>),
    /// To `Nudge`, `NudgeAll`, `Cancel`, `Retry`, `Pause`, `Resume`, `WaitUntilIdle`.
    Done,
    /// Not carried out, or, for a handle, given up on. The last answer to that call.
    Refused(Refusal),
}

/// The reason why the controller stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// It was shut down.
    Shutdown,
    /// The store failed for too long; the text is its last error.
    StoreFailed(String),
    /// The store has no room left; the text is its error.
    StoreFull(String),
    /// Another controller took the instance.
    LeaseLost,
    /// The runtime that it ran on has ended, and took it along as a crash would. Said by hosts alone.
    RuntimeEnded,
    /// It panicked, which is a bug. Said by hosts alone.
    Panicked,
}

/// An invocation that had not returned when the controller stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unreturned {
    /// The invocation.
    pub invocation: InvocationId,
    /// The resource.
    pub uid: Uid,
    /// The name of the resource.
    pub key: Key,
    /// The phase.
    pub phase: Phase,
}

/// One thing to be done by the host. Carried out in order; none waits for another.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Start an invocation; it comes back as `Input::Returned`.
    Start(Box<Start>),
    /// Cancel an invocation. It still comes back.
    Cancel(InvocationId),
    /// Hand in `Input::Time` at this monotonic time; none for never. Replaces the last one.
    Timer(Option<Mono>),
    /// Write this; comes back as `Input::Committed` or `Input::CommitFailed`.
    Commit(Commit),
    /// Answer a call.
    Answer {
        /// The call.
        call: CallId,
        /// The answer.
        answer: Answer,
    },
    /// Show this to readers and watchers.
    Publish(Publish),
    /// The core has stopped and emits nothing more; all that it acknowledged is committed.
    Stopped {
        /// The reason.
        reason: StopReason,
        /// The invocations that did not return in time.
        unreturned: Vec<Unreturned>,
    },
}

//! Effects: the operations that the host carries out.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    Applied, CallId, CommitId, Consistency, Epoch, Error, Explanation, InvocationId, Key, Mono, NoOpRun,
    ObservedInputs, Outcome, Phase, Reason, Ref, Refusal, Repeats, Revision, Row, RunResult, Settled,
    StateVersion, Status, Timestamp, Uid,
};

/// A ref with its target, as an invocation sees it.
#[derive(Clone, Debug)]
pub struct RefView {
    /// The ref as the resource declares it.
    pub reference: Ref,
    /// Row of the target at the start; none if the target is missing.
    pub target: Option<Arc<Row>>,
    /// True if the target counts as failed: an error, a cycle, or a wait for a ref or a name. False if missing.
    pub failed: bool,
}

/// An owned resource, as an invocation of its owner sees it.
#[derive(Clone, Debug)]
pub struct OwnedView {
    /// Row of the owned resource. Its spec, refs and name are committed; its state may not be yet.
    pub resource: Arc<Row>,
    /// True if the resource counts as failed: an error, a cycle, or a wait for a ref or a name.
    pub failed: bool,
}

/// An invocation to start. The reconciler gets everything but the reason.
#[derive(Clone, Debug)]
pub struct Start {
    /// Id under which the invocation reports its return.
    pub invocation: InvocationId,
    /// Phase, and so the reconciler's method, to run.
    pub phase: Phase,
    /// Row of the resource. Its spec, refs and name are committed; its state may not be yet.
    pub resource: Arc<Row>,
    /// Refs in their order. Empty for deletes and renames, which read none.
    pub refs: Vec<RefView>,
    /// Owned resources, in order of kind and name. Empty for deletes and renames, and for kinds whose
    /// [`KindOptions::on_owned`](crate::KindOptions::on_owned) requests nothing.
    pub owned: Arc<[OwnedView]>,
    /// Reason for the run, for people.
    pub reason: Arc<Reason>,
    /// Epoch under which the run acts on the outside.
    pub epoch: Epoch,
}

/// One change of a stored row.
#[derive(Clone, Debug)]
pub enum Write {
    /// Inserts or replaces a row, by uid.
    Put(Arc<Row>),
    /// Removes a row, by uid.
    Remove(Uid),
}

/// History entry of an invocation that did or repaired something, failed or was cancelled, or of a forced delete. An
/// entry may stand for several runs in a row that ended alike.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HistoryRow {
    /// Uid of the resource that ran.
    pub uid: Uid,
    /// Kind and name of the resource at that time.
    pub key: Key,
    /// Epoch under which the run acted.
    #[serde(default)]
    pub epoch: Epoch,
    /// Id of the invocation, unique within its epoch; none for a forced delete, which runs nothing.
    pub invocation: Option<InvocationId>,
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
    /// Error of the run; none unless it failed.
    pub error: Option<Arc<Error>>,
    /// Inputs that the run saw; none for deletes and renames.
    pub seen: Option<ObservedInputs>,
    /// Runs in a row that ended alike and share this entry; none if there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
    /// Earlier entry that this one replaces; none if it is an addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<(Epoch, InvocationId)>,
}

/// One transaction: atomic, and valid only while the store still has `epoch`.
///
/// Writing it twice is the same as once: rows replace rows, and history rows have the key (epoch, invocation). A history
/// row takes the place of the one that it [replaces](HistoryRow::replaces).
#[derive(Clone, Debug)]
pub struct Commit {
    /// Id of the commit, which a retry keeps.
    pub id: CommitId,
    /// Epoch that the store must have.
    pub epoch: Epoch,
    /// Revision of the catalog after the commit.
    pub revision: Revision,
    /// Changed rows, each resource at most once.
    pub writes: Arc<[Write]>,
    /// History entries, in the order in which the invocations ended.
    pub history: Arc<[HistoryRow]>,
}

/// A resource that was removed from the catalog.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Removed {
    /// Uid of the removed resource.
    pub uid: Uid,
    /// Last kind and name of the removed resource.
    pub key: Key,
    /// Revision of the catalog without the resource.
    pub revision: Revision,
}

/// A status change, without a revision of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct StatusUpdate {
    /// Uid of the resource whose status changed.
    pub uid: Uid,
    /// New status of the resource.
    pub status: Status,
    /// Last run, if it has just ended as a no-op, which the row does not show.
    pub no_op: Option<Arc<NoOpRun>>,
}

/// Changes that readers and watchers may see from now on, applied together so that batches appear whole.
///
/// Every resource named in `statuses` is in the catalog once `rows` and `removed` are applied.
#[derive(Clone, Debug, Default)]
pub struct Publish {
    /// Revision of the catalog after the changes.
    pub revision: Revision,
    /// New and changed rows in order of revision, each resource at most once.
    pub rows: Vec<Arc<Row>>,
    /// Resources that left the catalog.
    pub removed: Vec<Removed>,
    /// Changes of stage, reason and progress, and no-op runs.
    pub statuses: Vec<StatusUpdate>,
}

/// Outcome of a requested reconcile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum RunOutcome {
    /// The first run that started after the request and completed succeeded.
    Done {
        /// Id of the invocation that succeeded.
        invocation: InvocationId,
        /// Outcome that the reconciler returned, with its work.
        outcome: Outcome,
    },
    /// The run failed, or a rename or delete before it did.
    Failed {
        /// Id of the invocation that failed.
        invocation: InvocationId,
        /// Error that is now stored on the resource.
        error: Arc<Error>,
    },
    /// The resource was deleted before a run completed.
    Deleted,
    /// No run follows: the resource settled without one, for this reason.
    NotRun(Settled),
    /// The controller shut down first.
    ShutDown,
    /// Another controller took the lease first.
    LeaseLost,
}

/// End of the wait for a resource and its descendants to settle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Settlement {
    /// Every resource has settled once after the request.
    Settled,
    /// The controller shut down first.
    ShutDown,
    /// Another controller took the lease first.
    LeaseLost,
}

/// Answer to a call, released only once the changes that it reports are committed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// Answer to `Apply`, and the first answer to `ApplyAndAwait` and `Await`.
    Applied(Applied),
    /// First answer to `Reconcile` and `Refresh`: the request is recorded; `Outcome` and `Settled` follow.
    Recorded(Uid),
    /// Answer to `Reconcile` and `Refresh`, after `Recorded`.
    Outcome(RunOutcome),
    /// Answer to `ApplyAndAwait` and `Await`, after `Applied`: the outcome of each edit's resource.
    Outcomes(Vec<RunOutcome>),
    /// Answer to `Reconcile`, `Refresh`, `ApplyAndAwait` and `Await`, after the first answer.
    Settled(Settlement),
    /// Answer to `WriteState`.
    StateWritten(StateVersion),
    /// Answer to `Explain`.
    Explained(Box<Explanation>),
    /// Answer to `Check`.
    Checked(Box<Consistency>),
    /// Answer to `Nudge`, `NudgeAll`, `Cancel`, `Retry`, `Pause`, `Resume` and `WaitUntilIdle`.
    Done,
    /// The call was refused, or its handle was given up. Always the last answer to a call.
    Refused(Refusal),
}

/// Reason why the controller stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// The embedder requested a shutdown.
    Shutdown,
    /// The store failed for too long; with its last error.
    StoreFailed(String),
    /// The store is full; with its error.
    StoreFull(String),
    /// Another controller took the lease.
    LeaseLost,
    /// The async runtime ended, which stopped the controller like a crash. Reported only by hosts.
    RuntimeEnded,
    /// The controller panicked, which is a bug. Reported only by hosts.
    Panicked,
}

/// An invocation that had not returned when the controller stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unreturned {
    /// Id of the unreturned invocation.
    pub invocation: InvocationId,
    /// Uid of the resource that it runs for.
    pub uid: Uid,
    /// Kind and name of the resource that it runs for.
    pub key: Key,
    /// Phase that has not returned.
    pub phase: Phase,
}

/// One operation for the host. Effects are carried out in order, and none waits for another.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Starts an invocation, which ends with `Input::Returned`.
    Start(Box<Start>),
    /// Cancels an invocation, which still returns.
    Cancel {
        /// The invocation.
        invocation: InvocationId,
        /// True if a caller cancelled the run: the resource runs again only after another request.
        by_caller: bool,
    },
    /// Sets the timer for the next `Input::Time`, replacing the last time; none turns it off.
    Timer(Option<Mono>),
    /// Writes a commit; answered by `Input::Committed` or `Input::CommitFailed`.
    Commit(Commit),
    /// Sends an answer to the caller.
    Answer {
        /// Id of the call, as the host assigned it.
        call: CallId,
        /// The answer, which may be one of several to that call.
        answer: Answer,
    },
    /// Shows changes to readers and watchers.
    Publish(Publish),
    /// The core has stopped and emits nothing more. Everything that it acknowledged is committed.
    Stopped {
        /// Reason why the core has stopped.
        reason: StopReason,
        /// Invocations that did not return in time.
        unreturned: Vec<Unreturned>,
    },
}

//! Inputs: every event that the host hands to the core.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    Applied, Batch, CallId, CommitId, Epoch, Error, InvocationId, Outcome, Revision, Row, StateVersion,
    Target, Uid,
};

/// A catalog as read from the store.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// Revision that the store had when it was read.
    pub revision: Revision,
    /// Epoch that this controller holds.
    pub epoch: Epoch,
    /// Stored rows, in any order.
    pub rows: Vec<StoredRow>,
}

/// A row as read from the store.
#[derive(Clone, Debug)]
pub struct StoredRow {
    /// The row, with as much as could be read.
    pub row: Arc<Row>,
    /// Error, if the spec or state could not be read: the row is listed with it, and is neither run nor overwritten.
    pub unreadable: Option<Error>,
    /// True if a start requests the resource as with [`AskIfUnsettled`](crate::AtStart::AskIfUnsettled), whatever its
    /// kind says.
    pub may_rest: bool,
}

impl From<Arc<Row>> for StoredRow {
    fn from(row: Arc<Row>) -> Self {
        Self {
            row,
            unreadable: None,
            may_rest: false,
        }
    }
}

/// A call. Each gets one [`Answer`](crate::Answer), unless said otherwise.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Call {
    /// Changes the catalog. Answered by `Applied` once committed.
    Apply(Batch),
    /// Changes the catalog and waits for the outcomes. Answered by `Applied` once committed, then by `Outcomes` and
    /// `Settled` in either order.
    ApplyAndAwait(Batch),
    /// Waits for the outcomes of a batch that an earlier leader applied. Answered like `ApplyAndAwait`.
    Await(Applied),
    /// Requests a reconcile. Answered by `Recorded`, then by `Outcome` and `Settled` in either order.
    Reconcile(Target),
    /// Raises a refresh counter and requests a reconcile. Answered like `Reconcile`; `Recorded` once committed.
    Refresh {
        /// Resource to refresh.
        target: Target,
        /// True to raise the full counter instead of the plain one.
        full: bool,
    },
    /// Reports a change outside. Answered by `Done`. The host debounces nudges, so that few of many arrive here.
    Nudge(Target),
    /// Nudges every resource whose requeue, retry or resync is due within its kind's nudging interval. Answered by
    /// `Done`.
    NudgeAll,
    /// Cancels the running invocation, and the pending requests for this resource alone. Answered by `Done`.
    Cancel(Target),
    /// Retries a failed resource now, with its failures forgotten. Answered by `Done`.
    Retry(Target),
    /// Holds back further reconciles. Answered by `Done` once committed.
    Pause(Target),
    /// Ends a pause; all requests meanwhile count as one. Answered by `Done` once committed.
    Resume(Target),
    /// Requests one reconcile of a paused resource. Answered like `Reconcile`.
    ReconcileOnce(Target),
    /// Makes a call in the name of somebody outside. The origin stands in the reasons of the requests that the call
    /// makes, and of edits without an origin of their own. Answered like the inner call.
    By {
        /// Name of the caller, as people read it.
        origin: Arc<str>,
        /// Inner call.
        call: Box<Call>,
    },
    /// Explains why a resource is not running now. Answered at once by `Explained`.
    Explain(Target),
    /// Checks every rule, and compares the catalog with one just read from the store. Answered at once by `Checked`.
    Check(#[serde(skip)] Option<Arc<Stored>>),
    /// Waits until everything has settled, ignoring future timers. Answered by `Done`.
    WaitUntilIdle,
    /// Stores the resource's state, from inside an invocation only. Answered by `StateWritten` once committed.
    WriteState {
        /// New state, as opaque bytes.
        #[serde(with = "crate::types::bytes")]
        state: Arc<[u8]>,
        /// State version that the resource must have; none for any.
        expected: Option<StateVersion>,
    },
}

impl Call {
    /// Returns the call without the name of its caller.
    pub fn inner(&self) -> &Self {
        match self {
            Self::By { call, .. } => call.inner(),
            call => call,
        }
    }

    /// Splits the call into the name of its caller, if it carries one, and the call itself.
    pub(crate) fn unnamed(self) -> (Option<Arc<str>>, Self) {
        match self {
            Self::By { origin, call } => (Some(origin), call.unnamed().1),
            call => (None, call),
        }
    }
}

/// Result of an invocation.
#[derive(Clone, PartialEq, Debug)]
pub enum Returned {
    /// The reconciler succeeded.
    Done(Outcome),
    /// The reconciler returned this error.
    Failed(Error),
    /// The reconciler panicked, with this message.
    Panicked(String),
}

/// Reason why a commit failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CommitError {
    /// The store failed, or the result is unknown. The same commit is tried again.
    Failed(String),
    /// The store is full. Not tried again, because that makes no room.
    Full(String),
    /// The store has another epoch. Not tried again.
    LeaseLost,
}

/// An event for the core.
#[derive(Clone, Debug)]
pub enum Input {
    /// A call by a caller, or by an invocation through its context.
    Call {
        /// Id of the call, which its answers carry.
        id: CallId,
        /// Invocation that makes the call; none for callers outside.
        by: Option<InvocationId>,
        /// Operation that is requested.
        call: Call,
    },
    /// A debounced nudge, whose call was answered already.
    Nudge(Uid),
    /// The caller is gone and gets no further answers to this call.
    Forget(CallId),
    /// Progress of an invocation: published, not stored.
    Progress {
        /// Id of the invocation that reports progress.
        invocation: InvocationId,
        /// Progress in words, for people.
        text: Arc<str>,
    },
    /// The return of an invocation: exactly once for each `Start`, also after a `Cancel`.
    Returned {
        /// Id of the invocation that has returned.
        invocation: InvocationId,
        /// Outcome, error or panic of the invocation.
        result: Returned,
    },
    /// The store has written this commit durably.
    Committed(CommitId),
    /// The commit failed in the store, or its result is unknown.
    CommitFailed {
        /// Id of the commit in question.
        commit: CommitId,
        /// Kind of the failure, which decides whether the commit is tried again.
        error: CommitError,
    },
    /// The lease is lost or about to be: the core stops at once.
    LeaseLost,
    /// Time has passed, so that timers may be due.
    Time,
    /// Begins a shutdown: no further calls, cancels, a wait for returns, the last commit, and then `Stopped`.
    Shutdown {
        /// Time for invocations to return before they are given up.
        grace: Duration,
    },
}

//! Inputs: every event that the host hands to the core.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    Applied, Batch, CallId, CommitId, Epoch, Error, InvocationId, Outcome, Revision, Row, StateVersion,
    Target, Uid,
};

/// The catalog as read from the store.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// Its revision.
    pub revision: Revision,
    /// The epoch that this controller holds.
    pub epoch: Epoch,
    /// Its rows, in any order.
    pub rows: Vec<StoredRow>,
}

/// One row as read.
#[derive(Clone, Debug)]
pub struct StoredRow {
    /// The row; where bytes could not be read, as far as it could be.
    pub row: Arc<Row>,
    /// Set if its spec or state could not be read: the row is listed with this error, and neither run nor
    /// overwritten.
    pub unreadable: Option<Error>,
    /// A start asks for it as if its kind said [`AskIfUnsettled`](crate::AtStart::AskIfUnsettled).
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

/// A call. Each gets one [`Answer`](crate::Answer), except where it says more.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Call {
    /// Change the catalog. Answered by `Applied` once committed.
    Apply(Batch),
    /// Change the catalog, and wait for what comes of it. Answered by `Applied` once committed, then, in either order, by
    /// `Outcomes` and `Settled`.
    ApplyAndAwait(Batch),
    /// Wait for what comes of a batch that an earlier holder of the instance has carried out; answered like it.
    Await(Applied),
    /// Ask for a reconcile. Answered by `Recorded`, then, in either order, `Outcome` and `Settled`.
    Reconcile(Target),
    /// Raise a refresh counter and request a reconcile; answered like it, `Recorded` once committed.
    Refresh {
        /// The resource.
        target: Target,
        /// Raise the full counter rather than the plain one.
        full: bool,
    },
    /// Something outside moved. Answered by `Done`. The host debounces: of many in a row it hands in few.
    Nudge(Target),
    /// Nudges all whose requeue time, retry or resync falls due within their kind's nudging interval. Answered by `Done`.
    NudgeAll,
    /// Cancel what runs and what is pending for this resource alone. Answered by `Done`.
    Cancel(Target),
    /// Try now what has failed, its failures forgotten. Answered by `Done`.
    Retry(Target),
    /// Hold further reconciles back. Answered by `Done` once committed.
    Pause(Target),
    /// Let them go on; requests meanwhile count as one request. Answered by `Done` once committed.
    Resume(Target),
    /// Ask for one reconcile although the resource is paused; answered like `Reconcile`.
    ReconcileOnce(Target),
    /// Say why a resource is not running now. Answered at once by `Explained`.
    Explain(Target),
    /// Check every rule, and compare a catalog as it was just read from the store. Answered at once by `Checked`.
    Check(#[serde(skip)] Option<Arc<Stored>>),
    /// Answered by `Done` when everything is settled; does not wait for times.
    WaitUntilIdle,
    /// Only from inside an invocation: store the resource's state. Answered by `StateWritten` once committed.
    WriteState {
        /// The new state.
        #[serde(with = "crate::types::bytes")]
        state: Arc<[u8]>,
        /// Refused unless this is the present version.
        expected: Option<StateVersion>,
    },
}

/// The return of an invocation.
#[derive(Clone, PartialEq, Debug)]
pub enum Returned {
    /// It succeeded.
    Done(Outcome),
    /// It failed.
    Failed(Error),
    /// It panicked, with this message.
    Panicked(String),
}

/// The reason why a commit did not go through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CommitError {
    /// The store failed, or it is not known whether it did. The same commit is requested again.
    Failed(String),
    /// The store has no room for it. Not tried again: whoever could make room is not here.
    Full(String),
    /// The store holds another epoch. Not tried again.
    LeaseLost,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// A caller, or an invocation through its context, requests something.
    Call {
        /// Numbers the call; answers carry it.
        id: CallId,
        /// The invocation that it comes from; none for callers outside.
        by: Option<InvocationId>,
        /// The call itself.
        call: Call,
    },
    /// A nudge that was held back for a while, and answered then.
    Nudge(Uid),
    /// The caller is gone: no further answers to this call.
    Forget(CallId),
    /// An invocation says how far it is. Shown, not stored.
    Progress {
        /// The invocation.
        invocation: InvocationId,
        /// The text.
        text: Arc<str>,
    },
    /// An invocation came back. Exactly once for each `Start`, also after a `Cancel`.
    Returned {
        /// The invocation.
        invocation: InvocationId,
        /// The result.
        result: Returned,
    },
    /// A commit is durable.
    Committed(CommitId),
    /// A commit did not go through.
    CommitFailed {
        /// The commit.
        commit: CommitId,
        /// The reason.
        error: CommitError,
    },
    /// The store's lease is lost, or about to be: stop at once.
    LeaseLost,
    /// Time has passed.
    Time,
    /// Stop in order: take no calls, cancel what runs, wait so long for it, commit, then `Stopped`.
    Shutdown {
        /// The time that invocations get to return.
        grace: Duration,
    },
}

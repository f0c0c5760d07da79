//! Stages of resources, published to watchers as updates without a revision, and never stored.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Error, InvocationId, Key, Phase, Reason, Ref, Timestamp, Uid};

/// Reason why a settled resource is settled.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    /// The last run succeeded, or nothing has requested the resource.
    Idle,
    /// The last run failed; the error is in the row.
    Failed,
    /// A failed reconcile, delete or rename will be retried.
    Retrying,
    /// The resource is paused and was requested.
    Paused,
    /// The resource is on a cycle, which the error in its row describes.
    OnCycle,
    /// A required ref does not exist or is not ready.
    WaitingForRef(Ref),
    /// Another resource still holds the name.
    WaitingForName {
        /// Uid of the resource that still has the name.
        holder: Uid,
        /// Present kind and name of that resource.
        key: Key,
    },
    /// An invocation did not return after its cancel: of this resource, of one above, or of one with its name. Its late
    /// return requests the resource.
    Abandoned {
        /// Id of the abandoned invocation.
        invocation: InvocationId,
        /// Uid of the resource that it ran for.
        holder: Uid,
        /// Kind and name of that resource.
        key: Key,
    },
    /// A caller cancelled the run.
    Cancelled,
    /// The kind has no reconciler registered here.
    Unsupported,
    /// The stored bytes can't be read.
    Unreadable(Arc<Error>),
}

/// The stage of a resource: settled, pending or running.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Neither pending nor running, for this reason.
    Settled(Settled),
    /// Requested and not started.
    Pending,
    /// An invocation is running.
    Running {
        /// Id of the running invocation.
        invocation: InvocationId,
        /// Phase that the invocation runs.
        phase: Phase,
        /// Time at which the run started.
        since: Timestamp,
        /// True if the invocation was cancelled and has not returned.
        cancelled: bool,
    },
}

/// The stage of a resource with its reason and progress.
#[derive(Clone, PartialEq, Debug)]
pub struct Status {
    /// Settled, pending or running, with the details of each.
    pub stage: Stage,
    /// Reason why the resource is pending or running; none if it is settled.
    pub reason: Option<Arc<Reason>>,
    /// Latest progress text of the invocation; none before the first.
    pub progress: Option<Arc<str>>,
}

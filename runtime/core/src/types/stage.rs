//! The stage of resources: published to watchers as unnumbered updates, never stored.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Error, InvocationId, Key, Phase, Reason, Ref, Timestamp, Uid};

/// The reason why a settled resource is settled.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    /// Its last run succeeded, or nothing has requested it.
    Idle,
    /// Its last run failed; the error is in its row.
    Failed,
    /// A failed reconcile, delete or rename is tried again later.
    Retrying,
    /// It is paused, and something requested it.
    Paused,
    /// It is on a cycle; its row's error spells it out.
    OnCycle,
    /// A ref that must exist or be ready is not.
    WaitingForRef(Ref),
    /// Its name is still held by another resource.
    WaitingForName {
        /// The holder of the name.
        holder: Uid,
        /// The holder's present name.
        key: Key,
    },
    /// An invocation did not return after its cancel: its own, that of a resource above it, or one that has its
    /// name. It is requested when that returns after all.
    Abandoned {
        /// The invocation.
        invocation: InvocationId,
        /// The resource.
        holder: Uid,
        /// The name of that resource.
        key: Key,
    },
    /// `cancel` stopped it.
    Cancelled,
    /// No reconciler of its kind is registered here.
    Unsupported,
    /// Its stored bytes can't be read.
    Unreadable(Arc<Error>),
}

/// The stage of a resource.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Neither pending nor running.
    Settled(Settled),
    /// Asked for, not yet started.
    Pending,
    /// An invocation runs.
    Running {
        /// The invocation.
        invocation: InvocationId,
        /// The phase.
        phase: Phase,
        /// The time at which it started.
        since: Timestamp,
        /// True if it was cancelled and has not returned.
        cancelled: bool,
    },
}

/// A resource's stage with its reason and progress.
#[derive(Clone, PartialEq, Debug)]
pub struct Status {
    /// The stage.
    pub stage: Stage,
    /// The reason why it is pending or running.
    pub reason: Option<Arc<Reason>>,
    /// The last progress text of its invocation.
    pub progress: Option<Arc<str>>,
}

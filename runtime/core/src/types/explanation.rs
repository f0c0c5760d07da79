//! Explanations of why a resource is not running, as data.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{InvocationId, Key, Phase, Reason, RetryPolicy, Revision, Settled, Stage, Timestamp, Uid};

/// A resource that an explanation speaks of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Subject {
    /// Its uid.
    pub uid: Uid,
    /// Its present name.
    pub key: Key,
}

/// One thing that keeps a resource from running, or says that nothing does.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// It runs.
    Runs {
        /// The invocation.
        invocation: InvocationId,
        /// Its phase.
        phase: Phase,
        /// True if it was cancelled and has not returned.
        cancelled: bool,
    },
    /// It has settled: nothing requests it, or this keeps it out.
    Settled(Settled),
    /// Its members go round in a circle; the text spells it out.
    Cycle(Arc<str>),
    /// It is tried again after so long.
    RetryIn(Duration),
    /// Something that it depends on is not durable yet.
    AwaitsCommit(Revision),
    /// Resources of kinds that come first have not settled yet; one of them.
    Gate(Subject),
    /// Deletes come first.
    DeletesFirst {
        /// The number of them.
        count: usize,
        /// Those that run, as far as there is room.
        running: Vec<Subject>,
    },
    /// Renames come before regular work.
    RenamesFirst {
        /// The number of them.
        count: usize,
        /// Those that run, as far as there is room.
        running: Vec<Subject>,
    },
    /// The concurrency limit of the controller is reached.
    ControllerFull(usize),
    /// The concurrency limit of its kind is reached.
    KindFull(usize),
    /// The concurrency limit of its pool is reached.
    PoolFull(Arc<str>),
    /// An invocation below has not returned.
    RunsBelow(Subject),
    /// An invocation that began under one of its names has not returned.
    NameInUse(Subject),
    /// It is about to start, or to settle.
    Next,
}

/// The reason why a resource is not running now.
///
/// ```
/// # use watershed_core::*;
/// # let now = Now::default();
/// # let kinds = vec![KindOptions::new("page")];
/// # let (mut core, mut effects) = Core::open(now, Limits::default(), kinds, Stored::default())?;
/// # let uid = Uid(uuid::Uuid::from_u128(1));
/// let new = NewResource::new(uid, "page", "home", *b"hello");
/// let call = Call::Apply(Edit::create(new).into());
/// core.handle(now, Input::Call { id: CallId(1), by: None, call }, &mut effects);
///
/// // What was just requested waits until the store has it.
/// let explanation = core.explain(&Key::new("page", "home").into()).expect("it is there");
/// assert_eq!(explanation.stage, Stage::Pending);
/// assert_eq!(explanation.because, Blocker::AwaitsCommit(Revision(1)));
/// assert_eq!(explanation.reason.map(|reason| reason.trigger), Some(Trigger::Created));
/// # Ok::<(), OpenError>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Explanation {
    /// The resource.
    pub subject: Subject,
    /// The stage of the resource.
    #[serde(rename = "standing")]
    pub stage: Stage,
    /// The reason why it is pending or running.
    pub reason: Option<Arc<Reason>>,
    /// The common ancestor that blocks it, if there is one.
    pub waits_for: Option<Subject>,
    /// The reason that keeps that ancestor, or the resource itself, from running.
    pub because: Blocker,
    /// The failures that stand at the root above it, for one that a failed ref keeps behind; at most 16.
    pub blocked_by: Vec<Subject>,
    /// The time at which it is to run again, as its last run returned it.
    pub next_reconcile: Option<Timestamp>,
    /// Failures in a row.
    pub attempts: u32,
    /// The policy for retries in force: its own, or that of its kind.
    pub retry: RetryPolicy,
}

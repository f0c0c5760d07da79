//! Explanations of why a resource is not running, as data.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{InvocationId, Key, Phase, Reason, RetryPolicy, Revision, Settled, Stage, Timestamp, Uid};

/// A resource in an explanation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Subject {
    /// Uid, which survives renames.
    pub uid: Uid,
    /// Present kind and name of the resource.
    pub key: Key,
}

/// The thing that keeps a resource from running, or the fact that nothing does.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// The resource is running.
    Runs {
        /// Id of the running invocation.
        invocation: InvocationId,
        /// Phase that the invocation runs.
        phase: Phase,
        /// True if the invocation was cancelled and has not returned.
        cancelled: bool,
    },
    /// The resource has settled, for this reason.
    Settled(Settled),
    /// The resource is on a cycle; the text describes the path.
    Cycle(Arc<str>),
    /// A retry follows after this time.
    RetryIn(Duration),
    /// A change that the run depends on is not committed yet; the value is its revision.
    AwaitsCommit(Revision),
    /// Some resources of `first` kinds have not settled yet; the value is one of them.
    Gate(Subject),
    /// Deletes hold back the resource.
    DeletesFirst {
        /// Number of deletes that have to end first.
        count: usize,
        /// Deletes that run, up to a limit.
        running: Vec<Subject>,
    },
    /// Renames hold back the resource.
    RenamesFirst {
        /// Number of renames that have to end first.
        count: usize,
        /// Renames that run, up to a limit.
        running: Vec<Subject>,
    },
    /// The controller's concurrency limit is reached: this many.
    ControllerFull(usize),
    /// The kind's concurrency limit is reached: this many.
    KindFull(usize),
    /// The concurrency limit of this pool is reached.
    PoolFull(Arc<str>),
    /// An invocation for this resource, below, has not returned.
    RunsBelow(Subject),
    /// An invocation for this resource, which began under one of the same names, has not returned.
    NameInUse(Subject),
    /// Nothing: the resource is about to start, or to settle.
    Next,
}

/// Explanation of why a resource is not running now.
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
    /// Resource that is explained.
    pub subject: Subject,
    /// Present stage of the resource: settled, pending or running.
    #[serde(rename = "standing")]
    pub stage: Stage,
    /// Reason why the resource is pending or running; none if it is settled.
    pub reason: Option<Arc<Reason>>,
    /// Unsettled ancestor that blocks the resource; none if it is blocked by itself.
    pub waits_for: Option<Subject>,
    /// Blocker of that ancestor, or of the resource itself.
    pub because: Blocker,
    /// Root causes, if a ref failed; at most 16.
    pub blocked_by: Vec<Subject>,
    /// Time of the next run, as the last run returned it; none if none is planned.
    pub next_reconcile: Option<Timestamp>,
    /// Number of failures in a row.
    pub attempts: u32,
    /// Effective retry policy: the resource's own or its kind's.
    pub retry: RetryPolicy,
}

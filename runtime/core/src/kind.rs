//! What is registered of a kind, and the limits of the whole.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Kind;

/// Whether a kind's resources are asked for when the controller starts.
///
/// ```
/// use watershed_core::{AtStart, KindOptions};
///
/// let mut kind = KindOptions::new("report");
/// assert_eq!(kind.at_start, AtStart::AskAlways);
/// kind.at_start = AtStart::AskIfUnsettled; // What is up to date is left alone.
/// # assert_ne!(kind, KindOptions::new("report"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AtStart {
    /// All of them.
    #[default]
    AskAlways,
    /// Not those whose stored last run succeeded and saw the present spec version, refresh counters, kind
    /// versions and refs.
    AskIfUnsettled,
}

/// Whether a finished parent alone is a reason to run.
///
/// ```
/// use watershed_core::{KindOptions, Parents};
///
/// let mut kind = KindOptions::new("report");
/// assert_eq!(kind.parents, Parents::Completed);
/// kind.parents = Parents::Changed; // A parent that found nothing to do is no reason to run.
/// # assert_ne!(kind, KindOptions::new("report"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Parents {
    /// It is, also if nothing changed.
    #[default]
    Completed,
    /// Only if some ref's target, its state version, or whether it has failed differs from what the last
    /// completed run saw.
    Changed,
}

/// What becomes of a running invocation when a timed request comes for an ancestor.
///
/// ```
/// use std::time::Duration;
/// use watershed_core::{KindOptions, OnTimedAncestor};
///
/// let mut kind = KindOptions::new("model");
/// assert_eq!(kind.on_timed_ancestor, OnTimedAncestor::Cancel);
/// kind.on_timed_ancestor = OnTimedAncestor::Finish(Duration::from_secs(3600)); // Long work.
/// # assert_ne!(kind, KindOptions::new("model"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnTimedAncestor {
    /// It is cancelled.
    #[default]
    Cancel,
    /// It may go on for so long, and runs again afterwards.
    Finish(Duration),
}

/// How nudges are debounced: the first counts at once, then at most one per interval.
///
/// ```
/// use std::time::Duration;
/// use watershed_core::Nudging;
///
/// let lazy = Nudging { interval: Duration::from_secs(10), ..Nudging::default() };
/// assert_eq!(lazy.longest_wait, Duration::from_secs(5));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nudging {
    /// A nudge within this time of the last accepted one waits until nudges pause for as long.
    pub interval: Duration,
    /// The longest that a nudge waits for such a pause.
    pub longest_wait: Duration,
}

impl Default for Nudging {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            longest_wait: Duration::from_secs(5),
        }
    }
}

/// Whether a transient error is tried again.
///
/// ```
/// use std::time::Duration;
/// use watershed_core::{KindOptions, RetryPolicy};
///
/// let mut kind = KindOptions::new("page");
/// assert_eq!(kind.retry, RetryPolicy::Never);
/// kind.retry = RetryPolicy::Backoff {
///     base: Duration::from_secs(1),
///     cap: Duration::from_secs(60),
///     attempts: 5,
///     reset_after: Duration::from_secs(600),
/// };
/// # assert_ne!(kind, KindOptions::new("page"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RetryPolicy {
    /// Not by itself.
    #[default]
    Never,
    /// After the n-th failure in a row it waits `min(base * 2^(n-1), cap)`.
    Backoff {
        /// The first wait.
        base: Duration,
        /// The longest wait.
        cap: Duration,
        /// So many failures in a row are the last: no further retry is set, though any request still runs it.
        attempts: u32,
        /// Staying successful for so long forgets the failures.
        reset_after: Duration,
    },
}

/// Whether a resource is asked for when one that it owns has used up its attempts.
///
/// ```
/// use watershed_core::{KindOptions, OnExhausted};
///
/// let mut group = KindOptions::new("group");
/// assert_eq!(group.on_exhausted, OnExhausted::Nothing);
/// group.on_exhausted = OnExhausted::AskOwner; // It decides what becomes of the rest.
/// # assert_ne!(group, KindOptions::new("group"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnExhausted {
    /// It is not.
    #[default]
    Nothing,
    /// It is, so that it can decide what becomes of the rest.
    AskOwner,
}

/// A limit that several kinds share: a connector's, for instance.
///
/// ```
/// use watershed_core::{KindOptions, Pool};
///
/// let warehouse = Pool { name: "warehouse".into(), limit: 4, exclusive: false };
/// let (mut table, mut view) = (KindOptions::new("table"), KindOptions::new("view"));
/// table.pool = Some(warehouse.clone());
/// view.pool = Some(warehouse); // Both together start at most four at once.
/// assert_eq!(table.pool, view.pool);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pool {
    /// What it is called; kinds that say the same name share it, and the smallest of their limits holds.
    pub name: Arc<str>,
    /// Most invocations in it at once.
    pub limit: usize,
    /// Whether an abandoned invocation keeps its place until it returns: what it holds can't be had twice.
    pub exclusive: bool,
}

/// A kind as registered by the embedder.
///
/// ```
/// use std::time::Duration;
/// use watershed_core::{KindOptions, Parents};
///
/// let report = KindOptions {
///     parents: Parents::Changed,
///     concurrency: Some(2),
///     deadline: Some(Duration::from_secs(300)),
///     ..KindOptions::new("report")
/// };
/// assert_eq!(report.kind.as_str(), "report");
/// assert_eq!(report.resync, None);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KindOptions {
    /// What it is called.
    pub kind: Kind,
    /// Version of its spec message.
    pub spec_format: u32,
    /// Version of its state message.
    pub state_format: u32,
    /// Its resources settle once before any other regular invocation starts.
    pub first: bool,
    /// Whether its resources are asked for at start.
    pub at_start: AtStart,
    /// Whether a finished parent alone is a reason to run.
    pub parents: Parents,
    /// What a timed request for an ancestor does to its running invocations.
    pub on_timed_ancestor: OnTimedAncestor,
    /// Most invocations of this kind at once; none for no limit of its own.
    pub concurrency: Option<usize>,
    /// The pool whose places its invocations take as well.
    pub pool: Option<Pool>,
    /// How nudges are debounced.
    pub nudging: Nudging,
    /// How long timed requests alone may keep its resources waiting; then those of their ancestors are put off.
    pub timed_patience: Duration,
    /// How long one unfinished delete or rename may hold others back.
    pub hold_limit: Duration,
    /// Whether transient errors are tried again, unless a resource has a policy of its own.
    pub retry: RetryPolicy,
    /// Whether its resources are asked for when what they own has used up its attempts.
    pub on_exhausted: OnExhausted,
    /// How long one invocation may take; then it is cancelled and has failed. None for no such bound.
    pub deadline: Option<Duration>,
    /// How long an invocation may take to return after its cancel; then it is abandoned.
    pub cancel_deadline: Duration,
    /// How long after a completed reconcile the next one is asked for at the latest: drift is found that late.
    pub resync: Option<Duration>,
}

impl KindOptions {
    /// A kind with every option at its default.
    pub fn new(kind: impl Into<Kind>) -> Self {
        Self {
            kind: kind.into(),
            spec_format: 1,
            state_format: 1,
            first: false,
            at_start: AtStart::default(),
            parents: Parents::default(),
            on_timed_ancestor: OnTimedAncestor::default(),
            concurrency: None,
            pool: None,
            nudging: Nudging::default(),
            timed_patience: Duration::from_secs(30),
            hold_limit: Duration::from_secs(60),
            retry: RetryPolicy::default(),
            on_exhausted: OnExhausted::default(),
            deadline: None,
            cancel_deadline: Duration::from_secs(600),
            resync: None,
        }
    }
}

/// Bounds of one controller.
///
/// ```
/// use watershed_core::Limits;
///
/// let small = Limits { concurrency: 2, ..Limits::default() };
/// assert!(small.backlog > small.concurrency);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Most invocations at once, cancelled ones that have not returned included.
    pub concurrency: usize,
    /// Most rows and answers that may wait for the store before [`accepts_calls`](crate::Core::accepts_calls)
    /// turns false: enough to fill a transaction, little enough to bound memory and the wait behind it.
    pub backlog: usize,
    /// How long a failing commit is tried again before the controller stops.
    pub commit_patience: Duration,
    /// How long deletes and renames together hold regular work back at a stretch.
    pub hold_stretch: Duration,
    /// What is ready and has waited for so long for a place is raised by one class, so that nothing starves.
    pub class_patience: Duration,
    /// How old what is known of starved resources may be when a timed request comes (C17).
    pub progress_slack: Duration,
    /// Spreads the waits before retries over their second half, each controller by its own number; none under
    /// test, where waits are exact.
    pub jitter: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrency: 64,
            backlog: 10_000,
            commit_patience: Duration::from_secs(30),
            hold_stretch: Duration::from_secs(60),
            class_patience: Duration::from_secs(30),
            progress_slack: Duration::from_secs(1),
            jitter: None,
        }
    }
}

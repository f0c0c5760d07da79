//! Options of a kind, and the limits of the whole controller.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Kind;

/// Tells whether a kind's resources are requested when the controller starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AtStart {
    /// Requests all resources of the kind.
    #[default]
    AskAlways,
    /// Requests all except those whose stored last run succeeded, left them ready, and saw the present spec version,
    /// refresh counters, message versions and refs.
    AskIfUnsettled,
}

/// Tells whether a finished parent is a sufficient reason to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Parents {
    /// A finished parent is sufficient, even if nothing changed.
    #[default]
    Completed,
    /// A ref must have changed since the last completed run: its target, the target's state version, or whether it
    /// failed.
    Changed,
}

/// Treatment of a running invocation when an ancestor gets a timed request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnTimedAncestor {
    /// The ancestor waits for the invocation.
    #[default]
    Wait,
    /// The invocation is cancelled, and runs again after the ancestor.
    Cancel,
}

/// Debouncing of nudges: the first counts at once, then at most one per interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nudging {
    /// Time after an accepted nudge during which further ones wait for a pause of this length.
    pub interval: Duration,
    /// Longest time that a nudge waits for such a pause.
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

/// Policy for whether and when a transient error is retried.
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
    /// No automatic retry.
    #[default]
    Never,
    /// Waits `min(base * 2^(n-1), cap)` after the n-th failure. A success resets the attempts, and the length of the
    /// waits only if it lasts for `reset_after`.
    Backoff {
        /// Wait after the first failure.
        base: Duration,
        /// Upper limit of the wait.
        cap: Duration,
        /// Maximum number of failures in a row. After that there is no retry, but a request still runs the resource.
        attempts: u32,
        /// Time without failure that makes waits short again. Attempts are reset by the first success.
        reset_after: Duration,
    },
}

/// Tells whether a resource is requested after events of the resources that it owns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum OnOwned {
    /// The owner is never requested.
    #[default]
    Nothing,
    /// The owner is requested when an owned resource has used up its attempts.
    Exhausted,
    /// The owner is requested also when an owned resource first completes, completes with another state version, error
    /// or readiness than before, or leaves the catalog.
    Changed,
}

/// A concurrency limit that several kinds share, for example because they use one connector.
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
    /// Name of the pool. Kinds with the same name share it, and the smallest of their limits applies.
    pub name: Arc<str>,
    /// Maximum number of invocations in the pool at a time.
    pub limit: usize,
    /// True if an abandoned invocation keeps its place until it returns, because its resource can't be used twice.
    pub exclusive: bool,
}

/// Options of a kind, as the embedder registers it.
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
    /// Name of the kind, as in project files.
    pub kind: Kind,
    /// Version of the spec message.
    pub spec_format: u32,
    /// Version of the state message.
    pub state_format: u32,
    /// True if resources of the kind must settle once before any other regular invocation starts.
    pub first: bool,
    /// Resources that are requested at a start.
    pub at_start: AtStart,
    /// Tells whether a finished parent is a sufficient reason to run.
    pub parents: Parents,
    /// Treatment of running invocations when an ancestor gets a timed request.
    pub on_timed_ancestor: OnTimedAncestor,
    /// Maximum number of invocations of this kind at a time; none for no limit of its own.
    pub concurrency: Option<usize>,
    /// Pool against whose limit invocations of the kind also count; none for no pool.
    pub pool: Option<Pool>,
    /// Intervals at which nudges of one resource are accepted.
    pub nudging: Nudging,
    /// Least time between the start of a run and its requeue; earlier times, even past ones, are moved to it.
    pub requeue_interval: Duration,
    /// Longest time that timed requests alone may keep a resource waiting; then timed requests of its ancestors are
    /// deferred.
    pub timed_patience: Duration,
    /// Retry policy for transient errors, unless a resource has its own.
    pub retry: RetryPolicy,
    /// Events of owned resources after which their owner is requested.
    pub on_owned: OnOwned,
    /// Maximum duration of an invocation, after which it is cancelled and has failed; none for no bound.
    pub deadline: Option<Duration>,
    /// Time for an invocation to return after its cancel, before it is abandoned.
    pub cancel_deadline: Duration,
    /// Longest time from a completed reconcile to the next, to detect drift; none for no resync. At least
    /// [`requeue_interval`](Self::requeue_interval) and a millisecond.
    pub resync: Option<Duration>,
    /// True if invocations may block their threads, see [`blocking`](Self::blocking).
    pub blocking: bool,
    /// True for a kind without a reconciler here: its resources can be created, don't run, and show as unsupported. The
    /// other options are ignored, and it may be registered repeatedly.
    pub passive: bool,
}

impl KindOptions {
    /// Creates options with every default.
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
            // A run that returns a time in the past would otherwise run again at once, and for ever.
            requeue_interval: Duration::from_millis(100),
            timed_patience: Duration::from_secs(30),
            retry: RetryPolicy::default(),
            on_owned: OnOwned::default(),
            deadline: None,
            // Long enough for a statement that can't be stopped half-way, short enough for a person who waits.
            cancel_deadline: Duration::from_secs(600),
            resync: None,
            blocking: false,
            passive: false,
        }
    }

    /// Runs each invocation on a thread of the runtime's pool for blocking work, within
    /// [`concurrency`](Self::concurrency) and [`Limits::concurrency`].
    ///
    /// For reconcilers that call synchronous drivers or compute for more than some 100 microseconds without an await.
    /// Without it such a reconciler keeps a thread of the runtime from everything else that would run there.
    #[must_use]
    pub fn blocking(mut self) -> Self {
        self.blocking = true;
        self
    }
}

/// Bounds of one controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum number of invocations at a time, including cancelled ones that have not returned.
    pub concurrency: usize,
    /// Maximum number of rows and answers waiting for the store before [`accepts_calls`](crate::Core::accepts_calls)
    /// turns false: enough to fill a transaction, few enough to bound memory and latency.
    pub backlog: usize,
    /// Time for which a failing commit is retried before the controller stops.
    pub commit_patience: Duration,
    /// Longest time that a drain of deletes and renames holds back regular work.
    pub drain_limit: Duration,
    /// Waiting time after which a ready resource is promoted by one priority, again for each further interval, so that
    /// nothing starves.
    pub promote_after: Duration,
    /// Greatest age of the known set of starved resources when a timed request comes.
    pub starvation_slack: Duration,
    /// Seed that spreads retries over the second half of their waits, different for each controller. With none the host
    /// draws one, unless its clock is simulated: then waits are exact.
    pub jitter: Option<u64>,
    /// True if resources of kinds that are not registered here may be created; they show as unsupported.
    pub unregistered_kinds: bool,
}

impl Limits {
    /// Sets the maximum number of invocations at a time; see [`concurrency`](Self::concurrency).
    #[must_use]
    pub fn concurrency(mut self, most: usize) -> Self {
        self.concurrency = most;
        self
    }

    /// Sets the maximum number of rows and answers waiting for the store; see [`backlog`](Self::backlog).
    #[must_use]
    pub fn backlog(mut self, most: usize) -> Self {
        self.backlog = most;
        self
    }

    /// Sets the time for which a failing commit is retried; see [`commit_patience`](Self::commit_patience).
    #[must_use]
    pub fn commit_patience(mut self, patience: Duration) -> Self {
        self.commit_patience = patience;
        self
    }

    /// Sets the longest time that a drain lasts; see [`drain_limit`](Self::drain_limit).
    #[must_use]
    pub fn drain_limit(mut self, limit: Duration) -> Self {
        self.drain_limit = limit;
        self
    }

    /// Sets the waiting time before a promotion; see [`promote_after`](Self::promote_after).
    #[must_use]
    pub fn promote_after(mut self, wait: Duration) -> Self {
        self.promote_after = wait;
        self
    }

    /// Sets the greatest age of the set of starved resources; see [`starvation_slack`](Self::starvation_slack).
    #[must_use]
    pub fn starvation_slack(mut self, slack: Duration) -> Self {
        self.starvation_slack = slack;
        self
    }

    /// Sets the seed that spreads retries; see [`jitter`](Self::jitter).
    #[must_use]
    pub fn jitter(mut self, number: u64) -> Self {
        self.jitter = Some(number);
        self
    }

    /// Allows resources of kinds that are not registered here; see [`unregistered_kinds`](Self::unregistered_kinds).
    #[must_use]
    pub fn unregistered_kinds(mut self) -> Self {
        self.unregistered_kinds = true;
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrency: 64,
            backlog: 10_000,
            commit_patience: Duration::from_secs(30),
            // Most deletes take seconds. One that hangs stops regular work for this long, and only once.
            drain_limit: Duration::from_secs(60),
            promote_after: Duration::from_secs(60),
            starvation_slack: Duration::from_secs(1),
            jitter: None,
            unregistered_kinds: false,
        }
    }
}

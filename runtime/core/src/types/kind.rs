//! The options of a kind, and the limits of the whole.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Kind;

/// Tells whether a kind's resources are requested when the controller starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AtStart {
    /// All of them.
    #[default]
    AskAlways,
    /// Not those whose stored last run succeeded, left them ready, and saw the present spec version, refresh counters,
    /// kind versions and refs.
    AskIfUnsettled,
}

/// Tells whether a finished parent alone is a reason to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Parents {
    /// It is, also if nothing changed.
    #[default]
    Completed,
    /// Only if some ref's target, its state version, or whether it has failed differs from what the last
    /// completed run saw.
    Changed,
}

/// The treatment of a running invocation when a timed request comes for an ancestor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnTimedAncestor {
    /// The ancestor waits for it.
    #[default]
    Wait,
    /// It is cancelled, and runs again after the ancestor.
    Cancel,
}

/// The debouncing of nudges: the first counts at once, then at most one per interval.
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

/// Tells whether a transient error is tried again.
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
    /// After the n-th failure it waits `min(base * 2^(n-1), cap)`; a success ends the row, and the waits after it are as long
    /// as if it had not, unless it has lasted for `reset_after`.
    Backoff {
        /// The first wait.
        base: Duration,
        /// The longest wait.
        cap: Duration,
        /// Most failures in a row. After that no retry is scheduled; a request still runs the resource.
        attempts: u32,
        /// Staying successful for so long makes waits short again. Attempts are whole again with the first success.
        reset_after: Duration,
    },
}

/// Tells whether a resource is requested when something happens to what it owns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum OnOwned {
    /// It is not.
    #[default]
    Nothing,
    /// It is when one of them has used up its attempts.
    Exhausted,
    /// It is then, and also when one of them first completes, completes with another state version, error or readiness
    /// than the last time, or leaves the catalog.
    Changed,
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
    /// Its name; kinds that give the same name share it, and the smallest of their limits holds.
    pub name: Arc<str>,
    /// Most invocations in it at once.
    pub limit: usize,
    /// True if an abandoned invocation keeps its place until it returns: what it holds can't be had twice.
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
    /// Its name.
    pub kind: Kind,
    /// Version of its spec message.
    pub spec_format: u32,
    /// Version of its state message.
    pub state_format: u32,
    /// Its resources settle once before any other regular invocation starts.
    pub first: bool,
    /// The resources of it that are requested at a start.
    pub at_start: AtStart,
    /// The weight of a finished parent: whether that alone is a reason to run.
    pub parents: Parents,
    /// The treatment of its running invocations when a timed request comes for an ancestor.
    pub on_timed_ancestor: OnTimedAncestor,
    /// Most invocations of this kind at once; none for no limit of its own.
    pub concurrency: Option<usize>,
    /// The pool whose limit its invocations count against as well.
    pub pool: Option<Pool>,
    /// The debouncing of nudges.
    pub nudging: Nudging,
    /// The least time between the start of a run and its requeue time; earlier ones, past ones too, count as this.
    pub requeue_interval: Duration,
    /// The time that timed requests alone may keep its resources waiting; then those of their ancestors are deferred.
    pub timed_patience: Duration,
    /// The retries of transient errors, unless a resource has a policy of its own.
    pub retry: RetryPolicy,
    /// The events of what its resources own for which they are requested.
    pub on_owned: OnOwned,
    /// The time that one invocation may take; then it is cancelled and has failed. None for no such bound.
    pub deadline: Option<Duration>,
    /// The time that an invocation may take to return after its cancel; then it is abandoned.
    pub cancel_deadline: Duration,
    /// The longest time between a completed reconcile and the next one: drift is found that late. One below
    /// [`requeue_interval`](Self::requeue_interval), or below a millisecond, counts as that.
    pub resync: Option<Duration>,
    /// Set if the host runs its invocations where they may block their threads, see [`blocking`](Self::blocking).
    pub blocking: bool,
    /// Set for a kind without a reconciler here: its resources can be created, are not run and stand as unsupported. Its
    /// other options count for nothing, and it may be registered more than once.
    pub passive: bool,
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

    /// The same, with each invocation on a thread of its own from the runtime's pool for blocking work, at most as many
    /// at once as [`concurrency`](Self::concurrency) and [`Limits::concurrency`] allow.
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
    /// Most invocations at once, cancelled ones that have not returned included.
    pub concurrency: usize,
    /// Most rows and answers that may wait for the store before [`accepts_calls`](crate::Core::accepts_calls)
    /// turns false: enough to fill a transaction, little enough to bound memory and the wait behind it.
    pub backlog: usize,
    /// The time for which a failing commit is tried again before the controller stops.
    pub commit_patience: Duration,
    /// The time that a drain of deletes and renames holds regular work back.
    pub drain_limit: Duration,
    /// A ready resource is promoted by one priority each time that it has waited this long for a place, so that nothing
    /// starves.
    pub promote_after: Duration,
    /// The greatest age of the known set of starved resources when a timed request comes.
    pub starvation_slack: Duration,
    /// Spreads the waits before retries over their second half, each controller by its own number. With none waits are
    /// exact; the host then draws a number, unless its clock is simulated.
    pub jitter: Option<u64>,
    /// True if resources of kinds that are not registered here may be created: they are listed as unsupported.
    pub unregistered_kinds: bool,
}

impl Limits {
    /// The same with another [`concurrency`](Self::concurrency).
    #[must_use]
    pub fn concurrency(mut self, most: usize) -> Self {
        self.concurrency = most;
        self
    }

    /// The same with another [`backlog`](Self::backlog).
    #[must_use]
    pub fn backlog(mut self, most: usize) -> Self {
        self.backlog = most;
        self
    }

    /// The same with another [`commit_patience`](Self::commit_patience).
    #[must_use]
    pub fn commit_patience(mut self, patience: Duration) -> Self {
        self.commit_patience = patience;
        self
    }

    /// The same with another [`drain_limit`](Self::drain_limit).
    #[must_use]
    pub fn drain_limit(mut self, limit: Duration) -> Self {
        self.drain_limit = limit;
        self
    }

    /// The same with another [`promote_after`](Self::promote_after).
    #[must_use]
    pub fn promote_after(mut self, wait: Duration) -> Self {
        self.promote_after = wait;
        self
    }

    /// The same with another [`starvation_slack`](Self::starvation_slack).
    #[must_use]
    pub fn starvation_slack(mut self, slack: Duration) -> Self {
        self.starvation_slack = slack;
        self
    }

    /// The same with [`jitter`](Self::jitter) by this number.
    #[must_use]
    pub fn jitter(mut self, number: u64) -> Self {
        self.jitter = Some(number);
        self
    }

    /// The same, and [`unregistered_kinds`](Self::unregistered_kinds) are taken.
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

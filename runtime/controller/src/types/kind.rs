//! The options of a kind, as an embedder registers it.

use std::time::Duration;

use watershed_core::{AtStart, Kind, Nudging, OnOwned, OnTimedAncestor, Parents, Pool, RetryPolicy};

/// The retries of a kind that says nothing: after 1 s, doubled with each failure up to 5 min, ten attempts in a row. After
/// ten minutes of success waits begin with 1 s again. A controller on a real clock spreads the waits (jitter).
pub const DEFAULT_RETRY: RetryPolicy = RetryPolicy::Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(300),
    attempts: 10,
    reset_after: Duration::from_secs(600),
};

/// The options of a kind, for [`Builder::kind`](crate::Builder::kind): its name, and what differs from the defaults.
///
/// The formats of its messages come from the reconciler's types, see [`Message::FORMAT`](crate::Message::FORMAT).
///
/// ```
/// use std::time::Duration;
/// use watershed_controller::KindOptions;
/// use watershed_controller::kind::Parents;
///
/// let report = KindOptions::new("report")
///     .parents(Parents::Changed)
///     .concurrency(2)
///     .deadline(Duration::from_secs(300));
/// assert_eq!(report.kind().as_str(), "report");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindOptions(pub(crate) watershed_core::KindOptions);

impl KindOptions {
    /// A kind with every option at its default.
    pub fn new(kind: impl Into<Kind>) -> Self {
        let mut options = watershed_core::KindOptions::new(kind);
        options.retry = DEFAULT_RETRY;
        Self(options)
    }

    /// Its name.
    pub fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// Sets whether transient errors are tried again, and how; [`DEFAULT_RETRY`] unless set. A resource may have a policy
    /// of its own ([`NewResource::retry`](watershed_core::NewResource::retry)).
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.0.retry = policy;
        self
    }

    /// Sets the longest time between a completed reconcile and the next one: drift is found that late. None unless set.
    /// One below the [`requeue_interval`](Self::requeue_interval) counts as that.
    #[must_use]
    pub fn resync(mut self, interval: Duration) -> Self {
        self.0.resync = Some(interval);
        self
    }

    /// Sets the most invocations of this kind at once. Without it there is only the limit of the controller.
    #[must_use]
    pub fn concurrency(mut self, most: usize) -> Self {
        self.0.concurrency = Some(most);
        self
    }

    /// Sets the pool whose places its invocations take as well.
    #[must_use]
    pub fn pool(mut self, pool: Pool) -> Self {
        self.0.pool = Some(pool);
        self
    }

    /// Runs each invocation on a thread of its own from the runtime's pool for blocking work, at most as many at once as
    /// [`concurrency`](Self::concurrency) and [`Limits::concurrency`](watershed_core::Limits::concurrency) allow.
    ///
    /// For reconcilers that call synchronous drivers or compute for more than some 100 microseconds without an await.
    /// Without it such a reconciler keeps a thread of the runtime from everything else that would run there.
    #[must_use]
    pub fn blocking(mut self) -> Self {
        self.0.blocking = true;
        self
    }

    /// Sets the time that one invocation may take; then it is cancelled and has failed. No bound unless set.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.0.deadline = Some(deadline);
        self
    }

    /// Sets the time that an invocation may take to return after its cancel, after which it is abandoned; 10 min unless
    /// set.
    #[must_use]
    pub fn cancel_deadline(mut self, deadline: Duration) -> Self {
        self.0.cancel_deadline = deadline;
        self
    }

    /// Has its resources settle once before any other regular invocation starts.
    #[must_use]
    pub fn first(mut self) -> Self {
        self.0.first = true;
        self
    }

    /// Sets whether its resources are asked for when the controller starts; always unless set.
    #[must_use]
    pub fn at_start(mut self, at_start: AtStart) -> Self {
        self.0.at_start = at_start;
        self
    }

    /// Sets whether a finished parent alone is a reason to run; it is unless set.
    #[must_use]
    pub fn parents(mut self, parents: Parents) -> Self {
        self.0.parents = parents;
        self
    }

    /// Sets what becomes of its running invocations when a timed request comes for an ancestor; the ancestor waits unless
    /// set.
    #[must_use]
    pub fn on_timed_ancestor(mut self, treatment: OnTimedAncestor) -> Self {
        self.0.on_timed_ancestor = treatment;
        self
    }

    /// Sets whether its resources are asked for when something happens to what they own; they are not unless set.
    #[must_use]
    pub fn on_owned(mut self, on_owned: OnOwned) -> Self {
        self.0.on_owned = on_owned;
        self
    }

    /// Sets the debouncing of nudges; at most one per second unless set.
    #[must_use]
    pub fn nudging(mut self, nudging: Nudging) -> Self {
        self.0.nudging = nudging;
        self
    }

    /// Sets the least time between the start of a run and its requeue time; 100 ms unless set. Earlier ones, past ones
    /// too, count as this.
    #[must_use]
    pub fn requeue_interval(mut self, least: Duration) -> Self {
        self.0.requeue_interval = least;
        self
    }

    /// Sets the time that timed requests alone may keep its resources waiting; 30 s unless set. Then those of their
    /// ancestors are deferred.
    #[must_use]
    pub fn timed_patience(mut self, patience: Duration) -> Self {
        self.0.timed_patience = patience;
        self
    }
}

impl From<&str> for KindOptions {
    fn from(kind: &str) -> Self {
        Self::new(kind)
    }
}

/// The options of a kind as the core has them, all of them set.
impl From<watershed_core::KindOptions> for KindOptions {
    fn from(options: watershed_core::KindOptions) -> Self {
        Self(options)
    }
}

impl From<KindOptions> for watershed_core::KindOptions {
    fn from(options: KindOptions) -> Self {
        options.0
    }
}

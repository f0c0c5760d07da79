//! Options of a kind, as an embedder registers it.

use std::time::Duration;

use watershed_core::{AtStart, Kind, Nudging, OnOwned, OnTimedAncestor, Parents, Pool, RetryPolicy};

/// Default retry policy of a kind: after 1 s, doubled with each failure up to 5 min, ten attempts in a row. After ten
/// minutes of success waits begin with 1 s again. A controller on a real clock spreads the waits (jitter).
pub const DEFAULT_RETRY: RetryPolicy = RetryPolicy::Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(300),
    attempts: 10,
    reset_after: Duration::from_secs(600),
};

/// Options of a kind, for [`Builder::kind`](crate::Builder::kind): the name, and all that differs from the defaults.
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
    /// Creates options with every default.
    pub fn new(kind: impl Into<Kind>) -> Self {
        let mut options = watershed_core::KindOptions::new(kind);
        options.retry = DEFAULT_RETRY;
        Self(options)
    }

    /// Returns the kind that the options are for.
    pub fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// Sets the retry policy for transient errors; [`DEFAULT_RETRY`] unless set. A resource may have a policy of its
    /// own ([`NewResource::retry`](watershed_core::NewResource::retry)).
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.0.retry = policy;
        self
    }

    /// Sets the longest time from a completed reconcile to the next, to detect drift; no resync unless set. At least
    /// the [`requeue_interval`](Self::requeue_interval).
    #[must_use]
    pub fn resync(mut self, interval: Duration) -> Self {
        self.0.resync = Some(interval);
        self
    }

    /// Sets the maximum number of invocations of this kind at a time. Without it only the controller's limit applies.
    #[must_use]
    pub fn concurrency(mut self, most: usize) -> Self {
        self.0.concurrency = Some(most);
        self
    }

    /// Sets a pool whose limit the invocations also count against.
    #[must_use]
    pub fn pool(mut self, pool: Pool) -> Self {
        self.0.pool = Some(pool);
        self
    }

    /// Runs each invocation on a thread of the runtime's pool for blocking work, within
    /// [`concurrency`](Self::concurrency) and [`Limits::concurrency`](watershed_core::Limits::concurrency).
    ///
    /// For reconcilers that call synchronous drivers or compute for more than some 100 microseconds without an await.
    /// Without it such a reconciler keeps a thread of the runtime from everything else that would run there.
    #[must_use]
    pub fn blocking(mut self) -> Self {
        self.0.blocking = true;
        self
    }

    /// Sets the maximum duration of an invocation, after which it is cancelled and has failed. No bound unless set.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.0.deadline = Some(deadline);
        self
    }

    /// Sets the time for an invocation to return after its cancel, before it is abandoned; 10 min unless set.
    #[must_use]
    pub fn cancel_deadline(mut self, deadline: Duration) -> Self {
        self.0.cancel_deadline = deadline;
        self
    }

    /// Makes the kind's resources settle once before any other regular invocation starts.
    #[must_use]
    pub fn first(mut self) -> Self {
        self.0.first = true;
        self
    }

    /// Sets whether the kind's resources are requested at a start; always unless set.
    #[must_use]
    pub fn at_start(mut self, at_start: AtStart) -> Self {
        self.0.at_start = at_start;
        self
    }

    /// Sets whether a finished parent is a sufficient reason to run; it is unless set.
    #[must_use]
    pub fn parents(mut self, parents: Parents) -> Self {
        self.0.parents = parents;
        self
    }

    /// Sets the treatment of running invocations when an ancestor gets a timed request; the ancestor waits unless set.
    #[must_use]
    pub fn on_timed_ancestor(mut self, treatment: OnTimedAncestor) -> Self {
        self.0.on_timed_ancestor = treatment;
        self
    }

    /// Sets the events of owned resources after which an owner of this kind is requested; none unless set.
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

    /// Sets the least time between the start of a run and its requeue; 100 ms unless set. Earlier times, even past
    /// ones, are moved to it.
    #[must_use]
    pub fn requeue_interval(mut self, least: Duration) -> Self {
        self.0.requeue_interval = least;
        self
    }

    /// Sets the longest time that timed requests alone may keep a resource waiting; 30 s unless set. Then timed
    /// requests of its ancestors are deferred.
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

/// Converts the core's options of a kind, keeping every value.
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

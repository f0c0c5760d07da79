//! Times of failures (the next retry, the end of long backoffs), resyncs and deadlines.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use crate::graph::Graph;
use crate::graph::resource::Failure;
use crate::timers::backoff::backoff;
use crate::timers::{LEAST_WAIT, Timer, Timers};
use crate::types::index::Slot;
use crate::{Error, ErrorKind, InvocationId, Mono, RetryPolicy, Row};

/// Error code of an invocation that took too long.
pub(crate) const DEADLINE_CODE: &str = "deadline";

/// Calculator of the times at which failed resources are retried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retries {
    /// Seed that spreads the waits; none under test.
    jitter: Option<u64>,
}

impl Retries {
    pub(crate) fn new(jitter: Option<u64>) -> Self {
        Self { jitter }
    }

    /// Plans the retry after a completed reconcile, in place of an earlier one. Returns true if the attempts are used
    /// up.
    pub(crate) fn plan(
        &self,
        graph: &mut Graph,
        timers: &mut Timers,
        now: Mono,
        (slot, error): (Slot, Option<&Error>),
    ) -> bool {
        clear(graph, timers, slot);
        // A permanent error would be the same the next time.
        let Some(error) = error.filter(|error| error.kind == ErrorKind::Transient) else {
            return false;
        };
        graph[slot].set_failure(Some(Failure::new(now, error.retry_after)));
        self.set(graph, timers, now, slot)
    }

    /// Sets the retry timer of the present failure by its policy. Returns true if the attempts are used up.
    pub(crate) fn set(&self, graph: &Graph, timers: &mut Timers, now: Mono, slot: Slot) -> bool {
        let policy = graph.retry_policy(slot);
        let (
            Some(failure),
            RetryPolicy::Backoff {
                base, cap, attempts, ..
            },
        ) = (graph[slot].failure(), policy)
        else {
            return false;
        };
        if graph[slot].row().attempts >= attempts {
            return true;
        }
        let spread = self.spread(graph[slot].row(), backoff(base, cap, graph[slot].backed_off()));
        let wait = failure.retry_after().unwrap_or(spread);
        // A policy that came later may put it into the past.
        let at = failure.at().after(wait).max(now);
        timers.set(Timer::Retry(slot), at);
        false
    }

    /// Spreads a wait over its second half; under test the wait is unchanged.
    fn spread(&self, row: &Row, wait: Duration) -> Duration {
        let Some(seed) = self.jitter else {
            return wait;
        };
        // Resources that failed together, as when a database was away, would come back together. Hashed and not drawn,
        // for equal inputs give equal effects.
        let mut hasher = DefaultHasher::new();
        (seed, row.uid, row.attempts).hash(&mut hasher);
        let part = u32::try_from(hasher.finish() % 1_000).unwrap_or(0);
        wait / 2 + wait / 2_000 * part
    }
}

/// Returns the number of failures in a row after a reconcile. The backoff may outlast a success.
pub(crate) fn attempts_after(
    graph: &mut Graph,
    timers: &mut Timers,
    now: Mono,
    (slot, failed): (Slot, bool),
) -> u32 {
    if !failed {
        remember_waits(graph, timers, now, slot);
        return 0;
    }
    timers.clear(Timer::Forgive(slot));
    let resource = &mut graph[slot];
    resource.set_backed_off(resource.backed_off().saturating_add(1));
    resource.row().attempts.saturating_add(1)
}

/// Keeps the length of the backoff after a success, for as long as the policy says.
pub(crate) fn remember_waits(graph: &mut Graph, timers: &mut Timers, now: Mono, slot: Slot) {
    let failures = graph[slot].backed_off();
    match graph.retry_policy(slot) {
        RetryPolicy::Backoff { reset_after, .. } if failures > 0 && !reset_after.is_zero() => {
            graph[slot].set_backed_off(failures);
            // Counted from the first success: a resource that runs often would else never be forgiven.
            if timers.due(Timer::Forgive(slot)).is_none() {
                timers.set(Timer::Forgive(slot), now.after(reset_after));
            }
        }
        _ => graph[slot].set_backed_off(0),
    }
}

fn clear(graph: &mut Graph, timers: &mut Timers, slot: Slot) {
    timers.clear(Timer::Retry(slot));
    graph[slot].set_failure(None);
}

/// Sets the next resync after a completed reconcile.
pub(crate) fn plan_resync(graph: &Graph, timers: &mut Timers, now: Mono, slot: Slot) {
    let Some(options) = graph.options(slot) else {
        return;
    };
    if let Some(interval) = options.resync {
        // Nearer than its runs may follow one another, looks would leave time for nothing else.
        let wait = interval.max(options.requeue_interval).max(LEAST_WAIT);
        timers.set(Timer::Resync(slot), now.after(wait));
    }
}

/// Sets the deadline of an invocation that starts now.
pub(crate) fn set_deadline(
    graph: &Graph,
    timers: &mut Timers,
    now: Mono,
    (slot, invocation): (Slot, InvocationId),
) {
    if let Some(deadline) = graph.options(slot).and_then(|options| options.deadline) {
        timers.set(Timer::Deadline(invocation), now.after(deadline));
    }
}

/// Returns the error of an invocation that exceeded its deadline.
pub(crate) fn deadline_error(graph: &Graph, slot: Slot) -> Error {
    let deadline = graph.options(slot).and_then(|options| options.deadline);
    let seconds = deadline.unwrap_or_default().as_secs_f64();
    let mut error = Error::transient(DEADLINE_CODE, format!("it did not finish within {seconds} s"));
    error.hint = Some(Arc::from("its kind bounds how long one invocation may take"));
    error
}

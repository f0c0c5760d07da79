//! Failures: when a reconcile is tried again, when its failures are forgotten, and what else runs by the clock.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use super::Core;
use crate::graph::lifecycle::Event;
use crate::graph::resource::{Cancelled, Failure};
use crate::schedule::verdict::rest;
use crate::timers::Timer;
use crate::timers::backoff::backoff;
use crate::types::index::Slot;
use crate::{Cause, Error, ErrorKind, InvocationId, Reason, RetryPolicy, Settled, Why};

/// The code of the error of an invocation that took too long.
pub(crate) const DEADLINE_CODE: &str = "deadline";

impl Core {
    /// Returns how many failures in a row are to be remembered after a reconcile, and until when if it succeeded.
    pub(super) fn attempts_after(&mut self, slot: Slot, failed: bool) -> u32 {
        let attempts = self.graph[slot].row.attempts;
        if failed {
            self.timers.clear(Timer::Forgive(slot));
            return attempts.saturating_add(1);
        }
        match self.graph.retry_policy(slot) {
            RetryPolicy::Backoff { reset_after, .. } if attempts > 0 && !reset_after.is_zero() => {
                if self.timers.due(Timer::Forgive(slot)).is_none() {
                    self.timers
                        .set(Timer::Forgive(slot), self.now.mono.after(reset_after));
                }
                attempts
            }
            _ => 0,
        }
    }

    /// It has stayed successful for long enough.
    pub(super) fn forgive(&mut self, slot: Slot) {
        self.write(slot, |row| row.attempts = 0);
    }

    /// A reconcile has completed: what was to be tried again no longer is, unless this failure asks for it. Gives
    /// back whether the attempts are used up.
    pub(super) fn plan_retry(&mut self, slot: Slot, error: Option<&Error>) -> bool {
        self.clear_retry(slot);
        let Some(error) = error.filter(|error| error.kind == ErrorKind::Transient) else {
            return false;
        };
        self.graph[slot].extra_mut().failure = Some(Failure {
            at: self.now.mono,
            retry_after: error.retry_after,
        });
        self.set_retry(slot)
    }

    /// Sets when the failure that stands is tried again, if its policy has it so. Gives back whether the attempts are
    /// used up.
    fn set_retry(&mut self, slot: Slot) -> bool {
        let policy = self.graph.retry_policy(slot);
        let (
            Some(failure),
            RetryPolicy::Backoff {
                base, cap, attempts, ..
            },
        ) = (self.graph[slot].extra().failure, policy)
        else {
            return false;
        };
        let failures = self.graph[slot].row.attempts;
        if failures >= attempts {
            return true;
        }
        let wait = backoff(base, cap, failures);
        let wait = failure.retry_after.unwrap_or_else(|| self.spread(slot, wait));
        let at = failure.at.after(wait).max(self.now.mono);
        self.timers.set(Timer::Retry(slot), at);
        false
    }

    /// The resource has another policy: it holds also for the failure that stands, whose wait is counted from when it
    /// failed. Asks for nothing by itself.
    pub(super) fn follow_new_policy(&mut self, slot: Slot) {
        if !self.graph[slot].is_live() {
            return;
        }
        let was_set = self.timers.clear(Timer::Retry(slot));
        let exhausted = self.set_retry(slot);
        self.follow_new_reset(slot);
        let (settles_as, resource) = (rest(&self.graph, &self.timers, slot), &self.graph[slot]);
        if let Some(before @ (Settled::Failed | Settled::Retrying)) = resource.settled()
            && *before != settles_as
            && !resource.has_op()
        {
            self.on(slot, Event::Settled(settles_as));
        }
        if exhausted && was_set {
            self.ask_owner(slot);
        }
    }

    /// What is to be forgotten for its success is so by the new policy, from now on.
    fn follow_new_reset(&mut self, slot: Slot) {
        if self.timers.clear(Timer::Forgive(slot)) {
            let attempts = self.attempts_after(slot, false);
            if attempts != self.graph[slot].row.attempts {
                self.write(slot, |row| row.attempts = attempts);
            }
        }
    }

    /// The same wait every time under test; else somewhere in its second half.
    fn spread(&self, slot: Slot, wait: Duration) -> Duration {
        let Some(seed) = self.limits.jitter else {
            return wait;
        };
        let mut hasher = DefaultHasher::new();
        (seed, self.graph[slot].row.uid, self.graph[slot].row.attempts).hash(&mut hasher);
        let part = u32::try_from(hasher.finish() % 1_000).unwrap_or(0);
        wait / 2 + wait / 2_000 * part
    }

    fn clear_retry(&mut self, slot: Slot) {
        self.timers.clear(Timer::Retry(slot));
        if let Some(extra) = &mut self.graph[slot].extra {
            extra.failure = None;
        }
    }

    /// A failed reconcile is tried again. One that runs already tries again by that.
    pub(super) fn retry_reconcile(&mut self, slot: Slot) {
        let runs = self.graph[slot]
            .run()
            .is_some_and(|run| run.cancelled == Cancelled::No);
        if runs || !self.is_serving() {
            self.graph[slot].extra_mut().failure = None;
            return;
        }
        if self.defer(slot, Timer::Retry(slot)) {
            return;
        }
        self.graph[slot].extra_mut().failure = None;
        let reason = self.graph.reason_to_retry(slot);
        self.ask(slot, &reason);
    }

    /// `retry(name)`: what has failed is tried now, its failures forgotten.
    pub(super) fn retry_by_hand(&mut self, slot: Slot, cause: Cause) {
        let resource = &self.graph[slot];
        if resource.has_op() {
            return self.retry_op(slot);
        }
        if resource.is_live() && resource.row.error.is_some() {
            self.forget_attempts(slot);
            self.ask(slot, &Arc::new(Reason::because(Why::Retry, cause)));
        }
    }

    /// Edits and explicit requests forget how often it has failed.
    pub(super) fn forget_attempts(&mut self, slot: Slot) {
        if self.graph[slot].row.attempts > 0 {
            self.timers.clear(Timer::Forgive(slot));
            self.write(slot, |row| row.attempts = 0);
        }
    }

    /// The owner of what has used up its attempts decides what becomes of the rest.
    pub(super) fn ask_owner(&mut self, slot: Slot) {
        if let Some(owner) = self.graph.owner_to_ask(slot) {
            let before = self.graph[slot]
                .row
                .last_run
                .as_ref()
                .map(|last| last.reason.clone());
            let reason = Reason::because(Why::Recovered, self.graph.cause_of(slot)).after(before);
            self.ask(owner, &Arc::new(reason));
        }
    }

    /// A completed reconcile puts the next look for drift off.
    pub(super) fn plan_resync(&mut self, slot: Slot) {
        if let Some(interval) = self.graph.options(slot).and_then(|options| options.resync) {
            self.timers
                .set(Timer::Resync(slot), self.now.mono.after(interval));
        }
    }

    /// It is time to look for drift.
    pub(super) fn resync(&mut self, slot: Slot) {
        if !self.is_serving() || self.defer(slot, Timer::Resync(slot)) {
            return;
        }
        self.plan_resync(slot);
        self.ask(slot, &Arc::new(Reason::bare(Why::Resync)));
    }

    /// Bounds how long an invocation that starts now may take.
    pub(super) fn set_deadline(&mut self, slot: Slot, invocation: InvocationId) {
        if let Some(deadline) = self.graph.options(slot).and_then(|options| options.deadline) {
            self.timers
                .set(Timer::Deadline(invocation), self.now.mono.after(deadline));
        }
    }

    pub(super) fn deadline_is_over(&mut self, invocation: InvocationId) {
        let Some(slot) = self.graph.run(invocation) else {
            return;
        };
        if self.graph[slot]
            .run()
            .is_some_and(|run| run.cancelled == Cancelled::No)
        {
            self.cancel_run(slot, Cancelled::ByDeadline);
        }
    }

    pub(super) fn deadline_error(&self, slot: Slot) -> Error {
        let deadline = self.graph.options(slot).and_then(|options| options.deadline);
        let seconds = deadline.unwrap_or_default().as_secs_f64();
        let mut error = Error::transient(DEADLINE_CODE, format!("it did not finish within {seconds} s"));
        error.hint = Some(Arc::from("its kind bounds how long one invocation may take"));
        error
    }
}

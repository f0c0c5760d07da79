//! Retries after failures, and other timed work.

use std::sync::Arc;

use super::Core;
use crate::graph::lifecycle::Event;
use crate::graph::owners::News;
use crate::graph::resource::Cancelled;
use crate::schedule::decision::rest;
use crate::schedule::retries::{plan_resync, remember_waits};
use crate::timers::Timer;
use crate::types::index::Slot;
use crate::{InvocationId, Reason, Settled, Trigger};

impl Core {
    /// Applies a changed retry policy to the present failure, counting the wait from when it happened. Requests nothing
    /// by itself.
    pub(super) fn follow_new_policy(&mut self, slot: Slot) {
        if !self.graph[slot].is_live() {
            return;
        }
        // The wait is computed anew from the time of the failure, so an edited policy neither shortens nor prolongs
        // it twice.
        let was_set = self.timers.clear(Timer::Retry(slot));
        let retries = self.retries;
        let exhausted = retries.set(&self.graph, &mut self.timers, self.now.mono, slot);
        if self.timers.clear(Timer::Forgive(slot)) {
            remember_waits(&mut self.graph, &mut self.timers, self.now.mono, slot);
        }
        let (settles_as, resource) = (rest(&self.graph, &self.timers, slot), &self.graph[slot]);
        if let Some(before @ (Settled::Failed | Settled::Retrying)) = resource.settled()
            && *before != settles_as
            && !resource.has_op()
        {
            self.on(slot, Event::Settled(settles_as));
        }
        // Only the transition is news: with the old policy there was an attempt left, and with the new one there is
        // none.
        if exhausted && was_set {
            self.request_owner(slot, News::Exhausted);
        }
    }

    /// Retries a failed reconcile. A running one already counts as the retry.
    pub(super) fn retry_reconcile(&mut self, slot: Slot) {
        let runs = self.graph[slot]
            .run()
            .is_some_and(|run| run.cancelled() == Cancelled::No);
        // A run in progress is the retry; a controller that is shutting down starts none.
        if runs || !self.is_serving() {
            self.graph[slot].set_failure(None);
            return;
        }
        if self.defer(slot, Timer::Retry(slot)) {
            return;
        }
        self.graph[slot].set_failure(None);
        let reason = self.graph.reason_to_retry(slot);
        self.request(slot, &reason);
    }

    /// Retries a failed resource now for a caller. For a failed reconcile the count of failures is reset.
    pub(super) fn retry_by_hand(&mut self, slot: Slot, reason: Reason) {
        let resource = &self.graph[slot];
        if resource.has_op() {
            return self.retry_op(slot);
        }
        if resource.is_live() && resource.row().error.is_some() {
            self.forget_attempts(slot);
            let failed = self.graph[slot].row().last_run.as_ref().map(|run| &run.reason);
            self.request(slot, &Arc::new(reason.retrying(failed)));
        }
    }

    /// Resets the count of failures, after an edit, a refresh or a retry by hand.
    pub(super) fn forget_attempts(&mut self, slot: Slot) {
        self.timers.clear(Timer::Forgive(slot));
        self.graph[slot].set_backed_off(0);
        if self.graph[slot].row().attempts > 0 {
            self.write(slot, |row| row.attempts = 0);
        }
    }

    /// Requests the owner of a resource after an event of that resource, if the owner's kind asks for it.
    pub(super) fn request_owner(&mut self, slot: Slot, news: News) {
        if let Some(owner) = self.graph.owner_to_request(slot, news) {
            let reason = self.reason_for_owner(slot);
            self.request(owner, &reason);
        }
    }

    /// Returns the reason to run the owner of this resource.
    pub(super) fn reason_for_owner(&self, slot: Slot) -> Arc<Reason> {
        let last = self.graph[slot].row().last_run.as_ref();
        let before = last.map(|last| last.reason.clone());
        Arc::new(Reason::because(Trigger::Recovered, self.graph.cause_of(slot)).after(before))
    }

    /// Requests a resource whose resync interval has passed.
    pub(super) fn resync(&mut self, slot: Slot) {
        if !self.is_serving() || self.defer(slot, Timer::Resync(slot)) {
            return;
        }
        // Before the request: a run that is released or cancelled would set no further one.
        plan_resync(&self.graph, &mut self.timers, self.now.mono, slot);
        self.request(slot, &Arc::new(Reason::bare(Trigger::Resync)));
    }

    pub(super) fn deadline_is_over(&mut self, invocation: InvocationId) {
        let Some(slot) = self.graph.run(invocation) else {
            return;
        };
        if self.graph[slot]
            .run()
            .is_some_and(|run| run.cancelled() == Cancelled::No)
        {
            self.cancel_run(slot, Cancelled::ByDeadline);
        }
    }
}

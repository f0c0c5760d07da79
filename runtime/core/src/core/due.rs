//! Timers that fall due: requeues, nudges, and the dispatch of all timers.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Core;
use crate::schedule::starvation::DEFERRED_FOR;
use crate::timers::{Due, Requeue, Timer};
use crate::types::index::Slot;
use crate::{Effect, Reason, Trigger};

impl Core {
    /// Handles all due timers.
    pub(super) fn run_timers(&mut self) {
        while let Some(due) = self.timers.take(self.now) {
            match due {
                Due::Requeue(slot) => self.requeue_is_due(slot),
                Due::Timer(timer) => self.timer_is_due(timer),
            }
        }
        // Once an input: a delete that takes the place of another leaves the drain and its limit as they are.
        self.barrier
            .end_drain_if_over(&self.graph, &mut self.timers, self.now.mono);
    }

    fn timer_is_due(&mut self, timer: Timer) {
        match timer {
            Timer::DrainLimit => self.barrier.release_drain(&mut self.graph),
            Timer::OpRetry(slot) => self.op_retry_is_due(slot),
            Timer::Nudge(slot) => self.nudge(slot),
            Timer::Retry(slot) => self.retry_reconcile(slot),
            Timer::Forgive(slot) => self.graph[slot].set_backed_off(0),
            Timer::Resync(slot) => self.resync(slot),
            Timer::Requeue(slot) => self.requeue_is_due(slot),
            Timer::Deadline(invocation) => self.deadline_is_over(invocation),
            Timer::Abandon(invocation) => self.abandon(invocation),
            Timer::Promote => self.scheduler.promote_waiting(&mut self.graph, self.now.mono),
            Timer::CommitRetry => self.journal.retry_commit(&mut self.out),
            Timer::Grace => self.grace_is_over(),
            Timer::LastCommit => self.last_commit_is_overdue(),
        }
    }

    /// Updates the host's timer if the earliest due time has changed.
    pub(super) fn set_host_timer(&mut self) {
        if let Some(next) = self.timers.for_host(self.now) {
            self.out.push(Effect::Timer(next));
        }
    }

    /// Requests a resource whose requeue time is due, and clears that time, but keeps it during a shutdown.
    fn requeue_is_due(&mut self, slot: Slot) {
        if !self.is_serving() || !self.graph.get(slot).is_some_and(|it| it.is_live()) {
            return;
        }
        if self.starvation.defers(&mut self.graph, self.now.mono, slot) {
            let later = Requeue::after(DEFERRED_FOR, self.now.wall);
            return self.timers.set_requeue(slot, self.now, later);
        }
        self.request(slot, &Arc::new(Reason::bare(Trigger::Retrigger)));
    }

    /// Stores the remaining requeue time if a release without a run leaves a used one in the row.
    pub(super) fn store_requeue(&mut self, slot: Slot) {
        let stored = self.graph[slot].row().next_reconcile;
        if stored.is_none() {
            return;
        }
        let next = self.timers.requeue(slot);
        if stored != next {
            self.write(slot, |row| row.next_reconcile = next);
        }
    }

    /// Clears all timers of a resource.
    pub(super) fn clear_times(&mut self, slot: Slot) {
        self.timers.clear_all(slot);
        self.graph[slot].set_failure(None);
        self.graph[slot].set_backed_off(0);
    }

    /// Nudges every resource whose requeue, retry or resync is due within its kind's nudging interval. The cost grows
    /// with the number of timers due within the longest of these intervals.
    pub(super) fn nudge_what_is_due_soon(&mut self) {
        let longest = self.graph.kinds().longest_nudging_interval();
        let soon = self.timers.soon(self.now, longest).filter(|(slot, wait)| {
            let options = self.graph.options(*slot);
            self.graph[*slot].is_live() && options.is_some_and(|it| *wait <= it.nudging.interval)
        });
        // Collected first, for a nudge changes the table; and once each, whatever else of it is due.
        let soon: BTreeSet<Slot> = soon.map(|(slot, _)| slot).collect();
        for slot in soon {
            self.nudge(slot);
        }
    }

    /// Requests a resource for a nudge that the host has debounced.
    pub(super) fn nudge(&mut self, slot: Slot) {
        if !self.graph.get(slot).is_some_and(|it| it.is_live()) || self.defer(slot, Timer::Nudge(slot)) {
            return;
        }
        self.timers.clear(Timer::Nudge(slot));
        self.request(slot, &Arc::new(Reason::bare(Trigger::Nudge)));
    }
}

//! Primitive operations on several components: request, cancel, settle, write, answer.

use std::sync::Arc;

use super::Core;
use crate::graph::lifecycle::Event;
use crate::graph::resource::{Cancelled, Running};
use crate::graph::settling::Stops;
use crate::schedule::barrier::rearm;
use crate::timers::Timer;
use crate::types::index::{NameId, Slot};
use crate::{
    Answer, CallId, Cause, Error, InvocationId, Reason, Repeats, Row, RunOutcome, RunResult, Settled,
    Trigger, Uid,
};

/// Result of a run, with the earlier runs that share its history entry.
type Ended = (RunResult, Option<Repeats>);

impl Core {
    /// Requests a live resource directly. A request that cancels also retries a failed rename; an edit or refresh also
    /// resets the count of failures.
    pub(super) fn request(&mut self, slot: Slot, reason: &Arc<Reason>) {
        if reason.trigger.cancels() {
            rearm(&mut self.graph, &mut self.timers, slot);
        }
        if reason.trigger.forgets_failures() {
            self.forget_attempts(slot);
        }
        let mut stops = Stops::new(&mut self.timers, &mut self.out, self.now);
        self.graph.request(slot, reason, &mut stops);
    }

    /// Cancels an invocation; its result will be dropped.
    pub(super) fn cancel_run(&mut self, slot: Slot, by: Cancelled) {
        let mut stops = Stops::new(&mut self.timers, &mut self.out, self.now);
        self.graph.cancel_run(slot, by, &mut stops);
    }

    /// Moves a resource to its next stage; returns the invocation that this ends.
    #[inline]
    pub(super) fn on(&mut self, slot: Slot, event: Event) -> Option<Box<Running>> {
        self.graph.on(slot, event, self.now.mono)
    }

    pub(super) fn set_pending(&mut self, slot: Slot, reason: Arc<Reason>) {
        self.graph.set_pending(slot, reason, self.now.mono);
    }

    pub(super) fn set_pending_again(&mut self, slot: Slot, reason: Arc<Reason>) {
        self.graph.set_pending_again(slot, reason, self.now.mono);
    }

    /// Settles a resource, or the whole cycle that it is on, and informs its children and waiting callers.
    pub(super) fn settle(&mut self, slot: Slot, why: &Settled) {
        let scc_root = self.graph.settle(slot, why, self.now.mono);
        let mut index = 0;
        while let Some(member) = self.graph.member(scc_root, index) {
            index += 1;
            self.store_requeue(member);
            self.on_settled(member);
        }
    }

    /// Updates waiting callers and the gate after a resource has settled or left the catalog.
    pub(super) fn on_settled(&mut self, slot: Slot) {
        self.scheduler.leave_gate(&mut self.graph, slot);
        self.waiters.answer_settled(&self.graph, &mut self.journal, slot);
    }

    /// Changes the row of a resource. Readers keep their version.
    pub(super) fn write(&mut self, slot: Slot, change: impl FnOnce(&mut Row)) {
        self.journal.write(&mut self.graph, self.now.wall, slot, change);
    }

    /// Stores the last run of a resource in its row, with the runs that share its history entry.
    pub(super) fn write_last_run(&mut self, slot: Slot, run: &Running, ended: Ended) {
        let ended = (run, ended.0, ended.1);
        let wait = self.timers.wait(slot);
        self.journal
            .write_last_run(&mut self.graph, self.now.wall, slot, ended, wait);
    }

    /// Adds a history entry, unless the run found nothing to do. Returns the runs that the entry stands for, if the
    /// next run may join them.
    pub(super) fn record(
        &mut self,
        slot: Slot,
        run: &Running,
        result: RunResult,
        error: Option<Arc<Error>>,
    ) -> Option<Repeats> {
        self.journal
            .record(self.graph[slot].row(), self.now.wall, run, (result, error))
    }

    /// Answers a call once all changes so far are durable.
    pub(super) fn answer(&mut self, call: CallId, answer: Answer) {
        self.journal.answer(call, answer);
    }

    /// Answers the callers that waited since before this invocation started.
    pub(super) fn answer_outcome(&mut self, slot: Slot, invocation: InvocationId, outcome: RunOutcome) {
        self.waiters
            .answer_outcome(&mut self.journal, slot, invocation, outcome);
    }

    /// Opens the handle of an accepted request.
    pub(super) fn open_handle(&mut self, call: CallId, slot: Slot) {
        let since = self.scheduler.next_invocation();
        self.waiters
            .open(&mut self.graph, &mut self.journal, (call, since), slot);
    }

    /// Opens the handle of an applied batch.
    pub(super) fn open_batch(&mut self, call: CallId, uids: &[Uid]) {
        let next = self.scheduler.next_invocation();
        self.waiters
            .open_batch(&mut self.graph, &mut self.journal, (call, next), uids);
    }

    pub(super) fn begin_op(&mut self, slot: Slot) {
        self.barrier
            .begin_op(&mut self.graph, &mut self.timers, self.now.mono, slot);
    }

    pub(super) fn end_op(&mut self, slot: Slot) {
        self.barrier.end_op(&mut self.graph, &mut self.timers, slot);
    }

    pub(super) fn stop_counting(&mut self, slot: Slot) {
        self.barrier.stop_counting(&mut self.graph, slot);
    }

    /// Defers a timed request if starved resources require it (C17); returns whether it is deferred.
    pub(super) fn defer(&mut self, slot: Slot, timer: Timer) -> bool {
        self.starvation
            .defer(&mut self.graph, &mut self.timers, self.now.mono, (slot, timer))
    }

    /// Updates the claims of a resource to its rename intent, and requests what waited for a released name.
    pub(super) fn claim_former_names(&mut self, slot: Slot) {
        for name in self.graph.claim_former_names(slot) {
            self.give_up(name, slot);
        }
    }

    /// Removes a resource's claim on a name, and evaluates the resource that waits for that name.
    pub(super) fn give_up(&mut self, name: NameId, slot: Slot) {
        if let Some((live, cause)) = self.graph.give_up(name, slot) {
            self.wake_for_name(live, cause);
        }
    }

    /// Requests the resource that waits for its name, if no other holds that name any more.
    pub(super) fn wake_for_name(&mut self, live: Slot, cause: Cause) {
        // Several may claim one name. As long as another one does, waking it would only settle it again.
        let waits = matches!(self.graph[live].settled(), Some(Settled::WaitingForName { .. }));
        if waits && self.graph.held_name(live).is_none() {
            self.request(live, &Arc::new(Reason::because(Trigger::Recovered, cause)));
        } else {
            self.graph.enqueue(live);
        }
    }

    /// Requests every resource that waited for a name released during the batch.
    pub(super) fn wake_for_freed_names(&mut self) {
        for (live, cause) in self.graph.take_freed() {
            // The name is free by an edit that a crash could still take back.
            self.graph[live].hold_until(self.journal.revision());
            self.wake_for_name(live, cause);
        }
    }
}

//! The operations of which all others are made: request, cancel, settle, write, answer. Each takes several components.

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

/// The result of a run, and the runs that its entry of history stands for.
type Ended = (RunResult, Option<Repeats>);

impl Core {
    /// Requests a live resource by a request of its own. One that cancels also has a failed rename tried at once; one that
    /// wants something else than before forgets how often it has failed.
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

    /// Tells an invocation to stop; what it returns is dropped.
    pub(super) fn cancel_run(&mut self, slot: Slot, by: Cancelled) {
        let mut stops = Stops::new(&mut self.timers, &mut self.out, self.now);
        self.graph.cancel_run(slot, by, &mut stops);
    }

    /// Moves a resource to its next stage; returns the invocation that is over by that.
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

    /// Settles one resource, or all of the cycle that it is on, and tells those below and those who wait.
    pub(super) fn settle(&mut self, slot: Slot, why: &Settled) {
        let scc_root = self.graph.settle(slot, why, self.now.mono);
        let mut index = 0;
        while let Some(member) = self.graph.member(scc_root, index) {
            index += 1;
            self.store_requeue(member);
            self.on_settled(member);
        }
    }

    /// Does what follows for waits and the gate when a resource has settled, or has gone.
    pub(super) fn on_settled(&mut self, slot: Slot) {
        self.scheduler.leave_gate(&mut self.graph, slot);
        self.waiters.answer_settled(&self.graph, &mut self.journal, slot);
    }

    /// Changes the row of a resource; readers keep the one that they have.
    pub(super) fn write(&mut self, slot: Slot, change: impl FnOnce(&mut Row)) {
        self.journal.write(&mut self.graph, self.now.wall, slot, change);
    }

    /// Writes into its row how a resource's last run ended, and which runs its entry of history stands for.
    pub(super) fn write_last_run(&mut self, slot: Slot, run: &Running, ended: Ended) {
        let ended = (run, ended.0, ended.1);
        let wait = self.timers.wait(slot);
        self.journal
            .write_last_run(&mut self.graph, self.now.wall, slot, ended, wait);
    }

    /// Adds a row of history, unless the run found nothing to do. Returns which runs it stands for, if a next one may join
    /// them.
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

    /// Answers a call once all that is changed by now is durable.
    pub(super) fn answer(&mut self, call: CallId, answer: Answer) {
        self.journal.answer(call, answer);
    }

    /// An invocation completed: callers from before its start have an outcome.
    pub(super) fn answer_outcome(&mut self, slot: Slot, invocation: InvocationId, outcome: RunOutcome) {
        self.waiters
            .answer_outcome(&mut self.journal, slot, invocation, outcome);
    }

    /// Makes the handle of a request that has just been taken up.
    pub(super) fn open_handle(&mut self, call: CallId, slot: Slot) {
        let since = self.scheduler.next_invocation();
        self.waiters
            .open(&mut self.graph, &mut self.journal, (call, since), slot);
    }

    /// Makes the handle of a batch that has just been carried out.
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

    /// Sets the timer of a timed request anew if the request is to be deferred (C17); returns whether it is.
    pub(super) fn defer(&mut self, slot: Slot, timer: Timer) -> bool {
        self.starvation
            .defer(&mut self.graph, &mut self.timers, self.now.mono, (slot, timer))
    }

    /// Makes the claims of a resource fit its rename mark, and wakes what waited for a name that it gave up.
    pub(super) fn claim_former_names(&mut self, slot: Slot) {
        for name in self.graph.claim_former_names(slot) {
            self.give_up(name, slot);
        }
    }

    /// Takes a resource out of the claimants of a name, and has the one that waits for that considered.
    pub(super) fn give_up(&mut self, name: NameId, slot: Slot) {
        if let Some((live, cause)) = self.graph.give_up(name, slot) {
            self.wake_for_name(live, cause);
        }
    }

    /// Requests the resource that waits for its name, if nothing holds that any more.
    pub(super) fn wake_for_name(&mut self, live: Slot, cause: Cause) {
        // Several may claim one name. As long as another one does, waking it would only settle it again.
        let waits = matches!(self.graph[live].settled(), Some(Settled::WaitingForName { .. }));
        if waits && self.graph.held_name(live).is_none() {
            self.request(live, &Arc::new(Reason::because(Trigger::Recovered, cause)));
        } else {
            self.graph.enqueue(live);
        }
    }

    /// The batch is whole: whatever waits for a name that was given up meanwhile is requested.
    pub(super) fn wake_for_freed_names(&mut self) {
        for (live, cause) in self.graph.take_freed() {
            // The name is free by an edit that a crash could still take back.
            self.graph[live].hold_until(self.journal.revision());
            self.wake_for_name(live, cause);
        }
    }
}

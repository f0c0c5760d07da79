//! Abandoned invocations (C10), which did not return after their cancel: they are reported, block other work, and are
//! accepted if they return.
//!
//! Nothing waits for an abandoned invocation any more: its resource goes on beside it and settles, and so does whatever
//! only it keeps out. It still has its names and its number.

use std::sync::Arc;

use super::Core;
use crate::graph::lifecycle::Event;
use crate::graph::resource::{Life, Pending, Running};
use crate::types::index::Slot;
use crate::{Cause, InvocationId, Reason, RunResult, Settled, Trigger};

impl Core {
    /// Abandons an invocation that has not returned in time after its cancel.
    pub(super) fn abandon(&mut self, invocation: InvocationId) {
        // Once it stops, what has not returned is named anyway.
        let known = self.graph.run(invocation).filter(|_| self.is_serving());
        let Some(slot) = known else { return };
        let Some(run) = self.graph[slot].run() else { return };
        let reason = run.reason_again();
        let (under, since, answers) = (run.under().clone(), run.waited_since(), run.is_answer());
        let busy = run.is_busy() && self.graph[slot].is_live();
        let is_gone = self.graph[slot].life() == Life::Gone;
        let mut pending = Pending::new(reason, self.now.mono);
        pending.set_since(since);
        // In one step: something that stays unsettled has never settled in between.
        self.on(slot, Event::Abandoned((!is_gone).then_some(pending)));
        if busy {
            self.graph.uncount_running(slot);
        }
        self.timers.clear_run(invocation);
        let kind = self.graph[slot].kind();
        self.scheduler.concurrency_limits_mut().abandon(kind);
        self.graph[slot].owe(answers);
        if is_gone {
            let why = self.graph.kept_out(slot).unwrap_or(Settled::Idle);
            self.on(slot, Event::Settled(why));
        } else {
            // Its delete or rename can't go on before the return, so it must not hold back the rest.
            self.stop_counting(slot);
            self.graph.enqueue(slot);
        }
        for name in under.iter() {
            for other in self.graph.claimants(name) {
                self.stop_counting(other);
                self.graph.enqueue(other);
            }
        }
    }

    /// Handles the late return of an abandoned invocation: drops its result, requests what it blocked.
    pub(super) fn returned_after_all(&mut self, slot: Slot, run: &Running) {
        let repeats = self.record(slot, run, RunResult::Cancelled, None);
        if self.graph[slot].life() != Life::Gone {
            self.write(slot, |row| row.runs_total += 1);
            self.write_last_run(slot, run, (RunResult::Cancelled, repeats));
            self.recover(slot, slot);
        }
        for name in run.under().iter() {
            for other in self.graph.claimants(name) {
                if other != slot {
                    self.recover(other, slot);
                }
            }
        }
    }

    fn recover(&mut self, slot: Slot, from: Slot) {
        let row = self.graph[from].row();
        let cause = Cause::Resource {
            uid: row.uid,
            key: row.key(),
        };
        let reason = Arc::new(Reason::because(Trigger::Recovered, cause));
        let waits = matches!(self.graph[slot].settled(), Some(Settled::Abandoned { .. }));
        match self.graph[slot].life() {
            Life::Live if waits || slot == from => self.request(slot, &reason),
            Life::Deleted if waits => self.set_pending(slot, reason),
            _ => self.graph.enqueue(slot),
        }
    }
}

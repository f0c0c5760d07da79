//! Invocations that do not return after their cancel (C10): reported, kept out, and taken up again if they do.
//!
//! Nothing waits for an abandoned invocation any more: its resource goes on beside it and settles, and so does whatever
//! only it keeps out. It still has its names and its number.

use std::sync::Arc;

use crate::batch::plan::Step;
use crate::core::Core;
use crate::resource::lifecycle::Event;
use crate::resource::{Life, Pending, Running, Slot};
use crate::timers::Timer;
use crate::{Cause, InvocationId, Reason, RunResult, Settled, Why};

impl Core {
    /// How many invocations have not returned and are not given up on.
    pub(crate) fn active(&self) -> usize {
        self.runs.len() - self.abandoned
    }

    /// From its cancel on an invocation has so long to return.
    pub(crate) fn set_patience(&mut self, slot: Slot) {
        let wait = self.options(slot).map(|options| options.cancel_deadline);
        let at = self.now.mono.after(wait.unwrap_or_default());
        if let Some(timer) = self.slots[slot].run().map(|run| Timer::Abandon(run.invocation))
            && self.timers.due(timer).is_none()
        {
            self.timers.set(timer, at);
        }
    }

    /// It has had its time.
    pub(crate) fn abandon(&mut self, invocation: InvocationId) {
        // Once it stops, what has not returned is named anyway.
        let known = self.runs.get(&invocation).copied().filter(|_| self.is_serving());
        let Some(slot) = known else { return };
        let Some(run) = self.slots[slot].run() else { return };
        let reason = run.again.clone().unwrap_or_else(|| run.reason.clone());
        let (under, since, answers) = (run.under.clone(), run.waited_since, run.answers);
        let busy = run.busy && self.slots[slot].is_live();
        let is_gone = self.slots[slot].life == Life::Gone;
        let mut pending = Pending::new(reason, self.now.mono);
        pending.since = since;
        // In one step: something that stays unsettled has never settled in between.
        self.on(slot, Event::Abandoned((!is_gone).then_some(pending)));
        if busy {
            self.uncount_running(slot);
        }
        self.timers.clear_run(invocation);
        let kind = self.slots[slot].kind;
        self.kinds.abandon(kind);
        self.abandoned += 1;
        self.slots[slot].own |= answers;
        if is_gone {
            let why = self.kept_out(slot).unwrap_or(Settled::Idle);
            self.on(slot, Event::Settled(why));
        } else {
            self.stop_counting(slot);
            self.enqueue(slot);
        }
        for name in under.iter() {
            for other in self.claimants(name) {
                self.stop_counting(other);
                self.enqueue(other);
            }
        }
    }

    /// Whoever has, or still has to do with, a name.
    pub(crate) fn claimants(&self, name: crate::resource::NameId) -> Vec<Slot> {
        let entry = &self.names[name];
        entry.others.iter().copied().chain(entry.live).collect()
    }

    /// Whether an abandoned invocation keeps this resource from being invoked, by itself or by its names (C1).
    pub(crate) fn kept_out(&self, slot: Slot) -> Option<Settled> {
        if self.abandoned == 0 {
            return None;
        }
        let by = |holder: Slot, run: &Running| Settled::Abandoned {
            invocation: run.invocation,
            holder: self.slots[holder].row.uid,
            key: self.slots[holder].row.key(),
        };
        if let Some(run) = self.slots[slot].lifecycle.abandoned() {
            return Some(by(slot, run));
        }
        self.slots[slot].names().find_map(|name| {
            let holders = self.claimants(name).into_iter();
            holders.filter(|holder| *holder != slot).find_map(|holder| {
                match self.slots[holder].lifecycle.abandoned() {
                    Some(run) if run.under.contains(name) => Some(by(holder, run)),
                    _ => None,
                }
            })
        })
    }

    /// What a batch may have marked, if abandoned invocations could keep it out.
    pub(crate) fn marked_by(&self, steps: &[Step]) -> Vec<Slot> {
        let slot = |step: &Step| match step {
            Step::Change { slot, .. } | Step::Delete { slot, .. } => Some(*slot),
            Step::Create(_) => None,
        };
        let steps = steps.iter().filter(|_| self.abandoned > 0);
        steps.filter_map(slot).collect()
    }

    /// Deletes and renames that can't run hold nobody back. Known only once every name of the batch is bound.
    pub(crate) fn free_what_is_kept_out(&mut self, marked: &[Slot]) {
        for &slot in marked {
            let counts = self.slots.get(slot).is_some_and(|it| it.op_counts());
            if counts && self.kept_out(slot).is_some() {
                self.stop_counting(slot);
            }
        }
    }

    /// A parent that is kept out, or stands below one that is.
    pub(crate) fn below_abandoned(&self, slot: Slot) -> Option<Settled> {
        if self.abandoned == 0 {
            return None;
        }
        self.parents(slot)
            .find_map(|parent| match self.slots[parent].settled() {
                Some(why @ Settled::Abandoned { .. }) => Some(why.clone()),
                _ => None,
            })
    }

    /// An abandoned invocation has returned after all: whatever it said is dropped, and all that it kept out is
    /// asked for.
    pub(crate) fn returned_after_all(&mut self, slot: Slot, run: &Running) {
        self.abandoned -= 1;
        self.record(slot, run, RunResult::Cancelled, None);
        if self.slots[slot].life != Life::Gone {
            self.write(slot, |row| row.runs_total += 1);
            self.write_last_run(slot, run, RunResult::Cancelled);
            self.recover(slot, slot);
        }
        for name in run.under.iter() {
            for other in self.claimants(name) {
                if other != slot {
                    self.recover(other, slot);
                }
            }
        }
    }

    fn recover(&mut self, slot: Slot, from: Slot) {
        let row = &self.slots[from].row;
        let cause = Cause::Resource {
            uid: row.uid,
            key: row.key(),
        };
        let reason = Arc::new(Reason::because(Why::Recovered, cause));
        let waits = matches!(self.slots[slot].settled(), Some(Settled::Abandoned { .. }));
        match self.slots[slot].life {
            Life::Live if waits || slot == from => self.ask(slot, &reason),
            Life::Deleted if waits => self.set_pending(slot, reason),
            _ => self.enqueue(slot),
        }
    }

    /// Whether the resource's own invocation of this number may still write its state (C8).
    pub(crate) fn may_write_state(&self, slot: Slot, invocation: InvocationId) -> bool {
        let run = self.slots[slot].run();
        run.is_some_and(|run| run.invocation == invocation)
    }
}

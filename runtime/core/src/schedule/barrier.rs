//! Deletes first, then renames, then the rest (the contract's C6): the barrier that holds regular work back, and the one
//! limit that bounds it.
//!
//! A *drain* begins with the first delete or rename that counts. It ends when none counts any more, or at
//! [`Limits::drain_limit`](crate::Limits::drain_limit): what is unfinished then counts no longer, and what begins later
//! holds nobody back before the regular work that was pending at that moment has started or settled.

use std::collections::HashSet;

use crate::Phase;
use crate::core::Core;
use crate::resource::{Op, Resource, Slot};
use crate::schedule::marks::DeleteOrder;
use crate::timers::Timer;

/// Whether deletes and renames hold regular work back.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
enum Drain {
    /// Nothing counts.
    #[default]
    None,
    /// Something counts, and regular work waits.
    Running,
    /// The drain was over its limit: these were pending then, and start before the next drain begins.
    Released { first: HashSet<Slot> },
}

/// Unfinished deletes and renames that count.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Barrier {
    deletes: usize,
    renames: usize,
    drain: Drain,
    /// Which deletes wait for which.
    pub(crate) delete_order: DeleteOrder,
}

impl Barrier {
    /// Whether something that counts keeps this phase from starting.
    pub(crate) fn blocks(&self, phase: Phase) -> bool {
        let drains = matches!(self.drain, Drain::Running);
        match phase {
            Phase::Delete => false,
            Phase::Rename => drains && self.deletes > 0,
            Phase::Reconcile => drains && self.deletes + self.renames > 0,
        }
    }

    fn is_released(&self) -> bool {
        matches!(self.drain, Drain::Released { .. })
    }

    /// How many deletes and renames count.
    pub(crate) fn counting(&self) -> (usize, usize) {
        (self.deletes, self.renames)
    }

    /// A resource has started, settled or gone.
    pub(crate) fn no_longer_pending(&mut self, slot: Slot) {
        if let Drain::Released { first } = &mut self.drain {
            first.remove(&slot);
        }
    }
}

impl Core {
    pub(crate) fn phase_may_start(&self, phase: Phase, first_kind: bool) -> bool {
        let gated = phase == Phase::Reconcile && !first_kind && !self.gate.is_empty();
        !gated && !self.barrier.blocks(phase)
    }

    /// Whether the delete or rename of this resource holds regular work back at present.
    pub(crate) fn op_holds(&self, slot: Slot) -> bool {
        self.slots[slot].op_counts() && !self.barrier.is_released()
    }

    /// A delete or rename was asked for; one that was under way begins anew.
    pub(crate) fn begin_op(&mut self, slot: Slot) {
        self.end_op(slot);
        if !self.can_run(slot) {
            return;
        }
        self.slots[slot].op = Op::Due { counts: true };
        *self.counter(slot) += 1;
        if let Drain::None = self.barrier.drain {
            self.begin_drain();
        }
    }

    fn counter(&mut self, slot: Slot) -> &mut usize {
        if self.slots[slot].row.marks.is_deleted() {
            &mut self.barrier.deletes
        } else {
            &mut self.barrier.renames
        }
    }

    fn begin_drain(&mut self) {
        self.barrier.drain = Drain::Running;
        let limit = self.now.mono.after(self.limits.drain_limit);
        self.timers.set(Timer::DrainLimit, limit);
    }

    /// A delete or rename no longer holds others back; it is still to be done.
    pub(crate) fn stop_counting(&mut self, slot: Slot) {
        if !self.slots[slot].op_counts() {
            return;
        }
        *self.counter(slot) -= 1;
        self.slots[slot].op = Op::Due { counts: false };
        self.make_busy(slot);
        self.release_delete_waits(slot);
    }

    /// A rename that runs and no longer holds regular work back by the barrier holds its ancestors back as any other
    /// invocation does.
    fn make_busy(&mut self, slot: Slot) {
        let resource = &mut self.slots[slot];
        let live = resource.is_live();
        let Some(run) = resource.run_mut() else { return };
        if live && run.phase == Phase::Rename && !std::mem::replace(&mut run.busy, true) {
            self.count_running(slot);
        }
    }

    /// The delete or rename is done, or no longer wanted.
    pub(crate) fn end_op(&mut self, slot: Slot) {
        match self.slots[slot].op {
            Op::None => return,
            Op::Due { counts: true } => self.stop_counting(slot),
            Op::Due { counts: false } => {}
            Op::Failed => {
                self.timers.clear(Timer::OpRetry(slot));
            }
        }
        self.slots[slot].op = Op::None;
    }

    /// The delete or rename failed: it is tried again later, and holds nobody back.
    pub(crate) fn fail_op(&mut self, slot: Slot) {
        self.end_op(slot);
        let wait = crate::schedule::marks::op_backoff(self.slots[slot].row.attempts);
        self.slots[slot].op = Op::Failed;
        self.timers.set(Timer::OpRetry(slot), self.now.mono.after(wait));
        self.release_delete_waits(slot);
    }

    /// A failed delete or rename is due again, without counting.
    pub(crate) fn rearm(&mut self, slot: Slot) {
        if self.slots[slot].op == Op::Failed {
            self.timers.clear(Timer::OpRetry(slot));
            self.slots[slot].op = Op::Due { counts: false };
        }
    }

    /// The drain is over its limit: what counts goes on without holding anybody back, and what is pending starts before
    /// the next drain.
    pub(crate) fn release_drain(&mut self) {
        let is_regular =
            |it: &Resource| it.is_live() && !matches!(it.op, Op::Due { .. }) && it.pending().is_some();
        let pending = self.slots.iter().filter(|(_, it)| is_regular(it));
        let first = pending.map(|(slot, _)| slot).collect();
        let counting = self.slots.iter().filter(|(_, it)| it.op_counts());
        let counting: Vec<Slot> = counting.map(|(slot, _)| slot).collect();
        self.barrier.drain = Drain::Released { first };
        for slot in counting {
            self.stop_counting(slot);
        }
    }

    /// Ends the drain once nothing counts any more, but not when one edit takes the place of another; and a release once
    /// all that was pending then has started or settled.
    pub(crate) fn end_drain_if_over(&mut self) {
        let counts = self.barrier.counting() != (0, 0);
        let over = match &self.barrier.drain {
            Drain::None => false,
            Drain::Running => !counts,
            Drain::Released { first } => first.is_empty(),
        };
        if !over {
            return;
        }
        self.timers.clear(Timer::DrainLimit);
        self.barrier.drain = Drain::None;
        if counts {
            self.begin_drain();
        }
    }
}

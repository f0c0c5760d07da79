//! Deletes first, then renames, then the rest (C6): who holds whom back, and for how long.

use std::collections::HashSet;

use crate::core::Core;
use crate::marks::DeleteOrder;
use crate::resource::{Op, Slot, Stage};
use crate::timeline::Alarm;
use crate::{Mono, Phase};

/// How long deletes and renames have held regular work back.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
enum Stretch {
    /// Nothing counts.
    #[default]
    None,
    /// Something has counted since the stretch began; it ends then.
    Holding { until: Mono },
    /// The stretch was over: these were pending then, and may start before anything counts again.
    Lifted { first: HashSet<Slot> },
}

/// Unfinished deletes and renames that count.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Holds {
    deletes: usize,
    renames: usize,
    stretch: Stretch,
    /// Which deletes wait for which.
    pub(crate) delete_order: DeleteOrder,
}

impl Holds {
    /// Whether something that counts keeps this phase from starting.
    pub(crate) fn block(&self, phase: Phase) -> bool {
        match phase {
            Phase::Delete => false,
            Phase::Rename => self.deletes > 0,
            Phase::Reconcile => {
                self.deletes + self.renames > 0 && !matches!(self.stretch, Stretch::Lifted { .. })
            }
        }
    }

    fn is_lifted(&self) -> bool {
        matches!(self.stretch, Stretch::Lifted { .. })
    }

    /// How many deletes and renames count.
    pub(crate) fn counting(&self) -> (usize, usize) {
        (self.deletes, self.renames)
    }

    /// A resource has started, settled or gone.
    pub(crate) fn no_longer_pending(&mut self, slot: Slot) {
        if let Stretch::Lifted { first } = &mut self.stretch {
            first.remove(&slot);
        }
    }
}

impl Core {
    pub(crate) fn phase_may_start(&self, phase: Phase, first_kind: bool) -> bool {
        let gated = phase == Phase::Reconcile && !first_kind && !self.gate.is_empty();
        !gated && !self.holds.block(phase)
    }

    /// Whether the delete or rename of this resource holds regular work back at present.
    pub(crate) fn op_holds(&self, slot: Slot) -> bool {
        self.slots[slot].op_counts() && !self.holds.is_lifted()
    }

    /// A delete or rename was asked for. One that counted already starts counting anew.
    pub(crate) fn begin_op(&mut self, slot: Slot) {
        self.end_op(slot);
        if !self.can_run(slot) {
            return;
        }
        let since = self.now.mono;
        let limit = self
            .options(slot)
            .map(|options| options.hold_limit)
            .unwrap_or_default();
        self.slots[slot].op = Op::Due { since, counts: true };
        *self.counter(slot) += 1;
        self.timeline.set(since.after(limit), Alarm::HoldLimit(slot));
        if let Stretch::None = self.holds.stretch {
            self.begin_stretch();
        }
    }

    fn counter(&mut self, slot: Slot) -> &mut usize {
        if self.slots[slot].row.marks.is_deleted() {
            &mut self.holds.deletes
        } else {
            &mut self.holds.renames
        }
    }

    fn begin_stretch(&mut self) {
        let until = self.now.mono.after(self.limits.hold_stretch);
        self.holds.stretch = Stretch::Holding { until };
        self.timeline.set(until, Alarm::Stretch);
    }

    /// A delete or rename no longer holds others back; it is still to be done.
    pub(crate) fn stop_counting(&mut self, slot: Slot) {
        let Op::Due { since, counts: true } = self.slots[slot].op else {
            return;
        };
        let limit = self
            .options(slot)
            .map(|options| options.hold_limit)
            .unwrap_or_default();
        self.timeline.clear(since.after(limit), Alarm::HoldLimit(slot));
        *self.counter(slot) -= 1;
        self.slots[slot].op = Op::Due { since, counts: false };
        self.make_busy(slot);
        self.release_delete_waits(slot);
    }

    /// A rename that runs and no longer holds regular work back holds its ancestors back (C3).
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
            Op::Due { counts: true, .. } => self.stop_counting(slot),
            Op::Due { counts: false, .. } => {}
            Op::Failed { retry_at } => self.timeline.clear(retry_at, Alarm::OpRetry(slot)),
        }
        self.slots[slot].op = Op::None;
    }

    /// The delete or rename failed: it is tried again later, and holds nobody back.
    pub(crate) fn fail_op(&mut self, slot: Slot) {
        self.end_op(slot);
        let retry_at = self
            .now
            .mono
            .after(crate::marks::op_backoff(self.slots[slot].row.attempts));
        self.slots[slot].op = Op::Failed { retry_at };
        self.timeline.set(retry_at, Alarm::OpRetry(slot));
        self.release_delete_waits(slot);
    }

    /// A failed delete or rename is due again, without counting.
    pub(crate) fn rearm(&mut self, slot: Slot) {
        if let Op::Failed { retry_at } = self.slots[slot].op {
            self.timeline.clear(retry_at, Alarm::OpRetry(slot));
            self.slots[slot].op = Op::Due {
                since: self.now.mono,
                counts: false,
            };
        }
    }

    /// The stretch is over: what is pending may start before anything counts again.
    pub(crate) fn lift(&mut self) {
        let pending = |(slot, resource): (Slot, &crate::resource::Resource)| {
            let regular = resource.is_live() && !matches!(resource.op, Op::Due { .. });
            (regular && matches!(resource.stage, Stage::Pending(_))).then_some(slot)
        };
        let first = self.slots.iter().filter_map(pending).collect();
        self.holds.stretch = Stretch::Lifted { first };
        let running: Vec<Slot> = self.runs.values().copied().collect();
        for slot in running {
            self.make_busy(slot);
        }
    }

    /// Ends the stretch once nothing counts any more, but not when one edit takes the place of another. Once all
    /// that were pending when it was lifted have started or settled, deletes and renames count again.
    pub(crate) fn end_stretch_if_over(&mut self) {
        if self.holds.counting() == (0, 0) {
            if let Stretch::Holding { until } = self.holds.stretch {
                self.timeline.clear(until, Alarm::Stretch);
            }
            self.holds.stretch = Stretch::None;
        }
        let over = matches!(&self.holds.stretch, Stretch::Lifted { first } if first.is_empty());
        if over {
            self.begin_stretch();
        }
    }
}

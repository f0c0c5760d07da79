//! What is held back, and by what.

use std::collections::{BTreeSet, HashMap};

use super::Findings;
use crate::Settled;
use crate::core::Core;
use crate::resource::{Life, Op, Slot};

impl Core {
    /// Marks are worked at, what counts is counted once, and the order of deletes is as remembered.
    pub(super) fn check_deletes_then_renames(&self, findings: &mut Findings) {
        let counting = |life| {
            let counts = self.slots.iter();
            counts.filter(|(_, it)| it.life == life && it.op_counts()).count()
        };
        let expected = (counting(Life::Deleted), counting(Life::Live));
        let counted = self.barrier.counting();
        findings.ensure(counted == expected, || {
            format!("{counted:?} deletes and renames count, not {expected:?}")
        });
        let mut waits: HashMap<Slot, u32> = HashMap::new();
        for (target, uid) in self.barrier.delete_order.values().flatten() {
            if self.slots.get(*target).is_some_and(|it| it.row.uid == *uid) {
                *waits.entry(*target).or_default() += 1;
            }
        }
        for (slot, resource) in self.slots.iter() {
            let expected = waits.get(&slot).copied().unwrap_or(0);
            findings.ensure_of(self, slot, resource.extra().delete_waits == expected, || {
                format!(
                    "waits for {} deletes, not {expected}",
                    resource.extra().delete_waits
                )
            });
            self.check_mark(slot, findings);
        }
    }

    fn check_mark(&self, slot: Slot, findings: &mut Findings) {
        let resource = &self.slots[slot];
        if resource.life == Life::Gone {
            return;
        }
        let marked = resource.row.marks.is_deleted() || resource.row.marks.is_renamed();
        findings.ensure_of(self, slot, marked || !resource.has_op(), || {
            format!("has nothing to do, and {:?}", resource.op)
        });
        let forgotten = marked && self.can_run(slot) && !resource.has_op();
        findings.ensure_of(self, slot, !forgotten, || "forgot its mark".into());
        if let Some(why) = resource.settled() {
            let waits = matches!(resource.op, Op::Due { .. }) && !matches!(why, Settled::Abandoned { .. });
            findings.ensure_of(self, slot, !waits, || {
                format!("has settled, {why:?}, with its delete or rename to be done")
            });
            // Its holder may have deleted itself, and not returned: then C1 keeps the name.
            let held = !matches!(why, Settled::WaitingForName { .. })
                || self.held_name(slot).is_some()
                || self.user_of_its_names(slot).is_some()
                || self.kept_out(slot).is_some();
            findings.ensure_of(self, slot, held, || "waits for a name that is free".into());
        }
    }

    /// Only paused resources settle as such, and only they remember what asked meanwhile.
    pub(super) fn check_paused_stays(&self, findings: &mut Findings) {
        for (slot, resource) in self.slots.iter().filter(|(_, it)| it.is_live()) {
            let says = resource.settled() == Some(&Settled::Paused) || resource.extra().missed;
            findings.ensure_of(self, slot, !says || resource.row.paused, || {
                "is held by a pause that is over".into()
            });
        }
    }

    /// The gate is those of `first` kinds that have not settled yet.
    pub(super) fn check_startup_barrier(&self, findings: &mut Findings) {
        let gates = self.slots.iter().filter(|(_, it)| it.gates);
        let gates: BTreeSet<Slot> = gates.map(|(slot, _)| slot).collect();
        findings.ensure(gates == self.gate, || {
            format!("{} resources are the gate, not {}", self.gate.len(), gates.len())
        });
        for slot in gates {
            let first = self.options(slot).is_some_and(|options| options.first);
            let unsettled = self.slots[slot].is_live() && self.slots[slot].is_unsettled();
            findings.ensure_of(self, slot, first && unsettled, || {
                "is the gate and nothing will open it".into()
            });
        }
    }
}

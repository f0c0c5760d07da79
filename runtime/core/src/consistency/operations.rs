//! Checks of deletes and renames, and of the work that they hold back.

use std::collections::{BTreeSet, HashMap};

use super::Findings;
use super::Parts;
use crate::Settled;
use crate::graph::resource::{Life, Op};
use crate::types::index::Slot;

impl Parts<'_> {
    /// Checks that unfinished deletes and renames are not forgotten, that the barrier counts them correctly, and that
    /// deletes wait in order.
    pub(super) fn check_deletes_then_renames(&self, findings: &mut Findings) {
        let counting = |life| {
            let counts = self.graph.iter();
            counts
                .filter(|(_, it)| it.life() == life && it.op_counts())
                .count()
        };
        let expected = (counting(Life::Deleted), counting(Life::Live));
        let counted = self.barrier.counting();
        findings.ensure(counted == expected, || {
            format!("{counted:?} deletes and renames count, not {expected:?}")
        });
        let mut waits: HashMap<Slot, u32> = HashMap::new();
        for (target, uid) in self.barrier.delete_order().waiting() {
            if self.graph.get(target).is_some_and(|it| it.row().uid == uid) {
                *waits.entry(target).or_default() += 1;
            }
        }
        for (slot, resource) in self.graph.iter() {
            let expected = waits.get(&slot).copied().unwrap_or(0);
            findings.ensure_of(self.graph, slot, resource.delete_waits() == expected, || {
                format!("waits for {} deletes, not {expected}", resource.delete_waits())
            });
            self.check_intent(slot, findings);
        }
    }

    fn check_intent(&self, slot: Slot, findings: &mut Findings) {
        let resource = &self.graph[slot];
        if resource.life() == Life::Gone {
            return;
        }
        let marked = resource.row().intents.is_deleted() || resource.row().intents.is_renamed();
        findings.ensure_of(self.graph, slot, marked || !resource.has_op(), || {
            format!("has nothing to do, and {:?}", resource.op())
        });
        let forgotten = marked && self.graph.can_run(slot) && !resource.has_op();
        findings.ensure_of(self.graph, slot, !forgotten, || "forgot its intent".into());
        if let Some(why) = resource.settled() {
            let waits = matches!(resource.op(), Op::Due { .. }) && !matches!(why, Settled::Abandoned { .. });
            findings.ensure_of(self.graph, slot, !waits, || {
                format!("has settled, {why:?}, with its delete or rename to be done")
            });
            // Its holder may have deleted itself, and not returned: then C1 keeps the name.
            let held = !matches!(why, Settled::WaitingForName { .. })
                || self.graph.held_name(slot).is_some()
                || self.graph.user_of_its_names(slot).is_some()
                || self.graph.kept_out(slot).is_some();
            findings.ensure_of(self.graph, slot, held, || "waits for a name that is free".into());
        }
    }

    /// Checks that only paused resources settle as paused or remember a missed request.
    pub(super) fn check_paused_stays(&self, findings: &mut Findings) {
        for (slot, resource) in self.graph.iter().filter(|(_, it)| it.is_live()) {
            let says = resource.settled() == Some(&Settled::Paused) || resource.is_missed();
            findings.ensure_of(self.graph, slot, !says || resource.row().paused, || {
                "is held by a pause that is over".into()
            });
        }
    }

    /// Checks that the gate holds exactly the resources of `first` kinds that have not settled yet.
    pub(super) fn check_startup_barrier(&self, findings: &mut Findings) {
        let gates = self.graph.iter().filter(|(_, it)| it.is_gate());
        let gates: BTreeSet<Slot> = gates.map(|(slot, _)| slot).collect();
        findings.ensure(gates == *self.scheduler.gate(), || {
            format!(
                "{} resources are the gate, not {}",
                self.scheduler.gate().len(),
                gates.len()
            )
        });
        for slot in gates {
            let first = self.graph.options(slot).is_some_and(|options| options.first);
            let unsettled = self.graph[slot].is_live() && self.graph[slot].is_unsettled();
            findings.ensure_of(self.graph, slot, first && unsettled, || {
                "is the gate and nothing will open it".into()
            });
        }
    }
}

//! Checks that pending resources wait for an event that will come, and that callers wait only for unsettled ones.

use super::Findings;
use super::Parts;
use crate::graph::resource::{Life, Op};
use crate::schedule::decision::{Decider, Decision};
use crate::types::index::Slot;

impl Parts<'_> {
    /// Checks that every pending resource waits for an event after which it is evaluated again.
    pub(super) fn check_no_lost_wake_ups(&self, findings: &mut Findings) {
        for slot in self.graph.agenda() {
            let listed = self.graph.get(*slot).is_none_or(|it| it.is_queued());
            findings.ensure(listed, || format!("{slot:?} is in the queue unknowingly"));
        }
        // Once it no longer serves, nothing is considered; while the queue is not empty, it will be.
        if !self.serves || !self.graph.agenda().is_empty() {
            return;
        }
        for (slot, resource) in self.graph.iter() {
            findings.ensure_of(self.graph, slot, !resource.is_queued(), || {
                "is listed as queued and is not".into()
            });
            if resource.pending().is_some() {
                self.check_pending(slot, findings);
            }
        }
        // An invocation, a commit or the return of an abandoned one can each wake what waits. Without any of them nothing
        // will.
        let at_rest = self.graph.active() == 0
            && self.journal.awaiting().is_empty()
            && !self.scheduler.concurrency_limits().is_exclusively_full();
        let pending = self.graph.iter().filter(|(_, it)| at_rest && it.is_unsettled());
        for (slot, resource) in pending {
            findings.ensure_of(self.graph, slot, false, || {
                format!("waits for nothing: {:?}", resource.at())
            });
        }
    }

    fn check_pending(&self, slot: Slot, findings: &mut Findings) {
        match Decider::new(self.graph, self.timers, self.journal.durable()).of(slot) {
            Decision::Release(why) => findings.ensure_of(self.graph, slot, false, || {
                format!("should have settled, {why:?}")
            }),
            Decision::AwaitCommit(revision) => {
                // An earlier one does as well: it is considered then, and finds that it has to wait on. On a cycle
                // any member has the first one considered.
                let members = (0..).map_while(|index| self.graph.member(self.graph.scc_root(slot), index));
                let members: Vec<Slot> = members.chain([slot]).collect();
                let mut awaiting = self
                    .journal
                    .awaiting()
                    .range(..=revision)
                    .flat_map(|(_, slots)| slots);
                // One that waits for a place, for a name or for an invocation below is considered after that.
                let later = self.graph[slot].ready().is_some()
                    || self.graph.user_of_its_names(slot).is_some()
                    || self.awaits_something(slot);
                let listed = later || awaiting.any(|slot| members.contains(slot));
                findings.ensure_of(self.graph, slot, listed, || {
                    format!("waits for revision {revision}, and is not told when that is durable")
                });
            }
            Decision::Wait => findings.ensure_of(self.graph, slot, self.awaits_something(slot), || {
                "waits for nothing that is known".into()
            }),
            // The check of limits looks at what may start; the first member of a cycle answers for the others.
            Decision::Start(_) | Decision::LeaveTo(_) => {}
        }
    }

    fn awaits_something(&self, slot: Slot) -> bool {
        let resource = &self.graph[slot];
        if !resource.is_live() {
            return resource.delete_waits() > 0;
        }
        let scc_root = &self.graph[self.graph.scc_root(slot)];
        let mut members = (0..).map_while(|index| self.graph.member(self.graph.scc_root(slot), index));
        let moves = members.any(|member| {
            let member = &self.graph[member];
            member.is_running() || matches!(member.op(), Op::Due { .. })
        });
        scc_root.unsettled_parents() > 0
            || scc_root.busy_children() > 0
            || (resource.cycle().is_some() && moves)
    }

    /// Checks that every unsettled resource is counted, hidden or not, and that callers wait only for unsettled ones.
    pub(super) fn check_waiters_are_answered(&self, findings: &mut Findings) {
        let unsettled = self.graph.iter().filter(|(_, it)| it.is_unsettled()).count();
        findings.ensure(unsettled == self.graph.unsettled(), || {
            format!(
                "{} resources are counted unsettled, not {unsettled}",
                self.graph.unsettled()
            )
        });
        if !self.serves {
            return;
        }
        findings.ensure(unsettled > 0 || !self.waiters.awaits_idle(), || {
            "everything has settled, and whoever waits for that was not told".into()
        });
        for slot in self.waiters.awaited() {
            let unsettled = self.graph.get(slot).is_some_and(|it| it.is_unsettled());
            findings.ensure(unsettled, || format!("{slot:?} is waited for and has settled"));
        }
        for slot in self.waiters.awaited_to_go() {
            let stays = self
                .graph
                .get(slot)
                .is_some_and(|it| it.is_unsettled() || it.life() == Life::Deleted);
            findings.ensure(stays, || format!("{slot:?} is waited for and has gone"));
        }
        findings.ensure(self.waiters.groups_add_up(), || {
            "a handle waits for more or fewer resources than it counts".into()
        });
    }
}

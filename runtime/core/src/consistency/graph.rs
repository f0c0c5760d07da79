//! Checks of the graph, its counters and its cycles.

use std::collections::{HashMap, HashSet};

use super::Findings;
use super::Parts;
use crate::Phase;
use crate::graph::components::components;
use crate::graph::cycles::CYCLE_CODE;
use crate::graph::resource::{Cancelled, Resource};
use crate::types::index::{Slot, index_u32};
use crate::types::reason::Cancels;

impl Parts<'_> {
    /// Checks the counts of unsettled parents, busy children and running invocations.
    pub(super) fn check_ancestors_first(&self, findings: &mut Findings) {
        let mut unsettled_parents = vec![0; self.graph.bound()];
        let mut busy_children = vec![0; self.graph.bound()];
        let mut running = vec![0; self.graph.bound()];
        for (slot, resource) in self.graph.iter().filter(|(_, resource)| resource.is_live()) {
            let below = self.graph.scc_root(slot);
            for parent in self.graph.parents(slot) {
                let above = self.graph.scc_root(parent);
                if above != below && self.graph[parent].is_unsettled() {
                    unsettled_parents[below.index()] += 1;
                    busy_children[above.index()] += u32::from(self.graph.is_busy(below));
                }
            }
            running[below.index()] += u32::from(resource.run().is_some_and(|run| run.is_busy()));
            // Only set within a walk. Left behind, it would hide the resource from the counts of its ancestors.
            findings.ensure_of(self.graph, slot, !resource.is_summing(), || {
                "is left summing".into()
            });
        }
        for (slot, resource) in self.graph.iter() {
            let counts = (
                resource.unsettled_parents(),
                resource.busy_children(),
                resource.running(),
            );
            let index = slot.index();
            let expected = (unsettled_parents[index], busy_children[index], running[index]);
            findings.ensure_of(self.graph, slot, counts == expected, || {
                format!("counts {counts:?} unsettled parents, busy children and runs, not {expected:?}")
            });
            // With a rerun noted, it runs on what is out of date for now and makes that good afterwards.
            let starts_early = resource
                .run()
                .filter(|run| run.phase() == Phase::Reconcile && run.cancelled() == Cancelled::No)
                .is_some_and(|run| {
                    run.rerun().is_none() && unsettled_parents[self.graph.scc_root(slot).index()] > 0
                });
            findings.ensure_of(self.graph, slot, !starts_early, || {
                "runs below an unsettled resource and will not run again".into()
            });
        }
    }

    /// Checks that everything below an unsettled resource is unsettled.
    pub(super) fn check_pending_below(&self, findings: &mut Findings) {
        let unsettled =
            |(_, it): &(Slot, &crate::graph::resource::Resource)| it.is_live() && it.is_unsettled();
        for (slot, resource) in self.graph.iter().filter(unsettled) {
            for child in self.graph.children(slot) {
                findings.ensure_of(self.graph, child, self.graph[child].is_unsettled(), || {
                    format!("is settled below \"{}\"", resource.row().key())
                });
            }
        }
        self.check_swept(findings);
    }

    /// Checks that no regular invocation goes on below a resource whose request cancels them all.
    fn check_swept(&self, findings: &mut Findings) {
        let is_swept = |(slot, it): (Slot, &Resource)| {
            let pending = it.pending().filter(|_| it.is_live())?;
            (pending.swept() == Cancels::All).then_some(slot)
        };
        let mut open: Vec<Slot> = self.graph.iter().filter_map(is_swept).collect();
        let mut seen = HashSet::new();
        while let Some(slot) = open.pop() {
            for child in self.graph.children(slot).filter(|child| seen.insert(*child)) {
                let run = self.graph[child].run();
                let goes_on = run
                    .is_some_and(|run| run.phase() == Phase::Reconcile && run.cancelled() == Cancelled::No);
                findings.ensure_of(self.graph, child, !goes_on, || {
                    "goes on below a resource whose request cancels it".into()
                });
                open.push(child);
            }
        }
    }

    /// Checks that the members of each cycle are exactly one strongly connected component.
    pub(super) fn check_no_run_on_cycles(&self, findings: &mut Findings) {
        let nodes: Vec<Slot> = self.graph.iter().map(|(slot, _)| slot).collect();
        let index_of = |slot: Slot| nodes.binary_search(&slot).map(index_u32).ok();
        let children: Vec<Vec<u32>> = nodes
            .iter()
            .map(|slot| self.graph.children(*slot).filter_map(index_of).collect())
            .collect();
        let component = components(&children);
        let mut sizes = HashMap::new();
        for number in &component {
            *sizes.entry(*number).or_insert(0_usize) += 1;
        }
        let cycles: HashSet<usize> = nodes
            .iter()
            .filter_map(|slot| Some(self.graph[*slot].cycle()?.index()))
            .collect();
        findings.ensure(cycles.len() == self.graph.cycles().count(), || {
            format!(
                "{} cycles are known, not {}",
                self.graph.cycles().count(),
                cycles.len()
            )
        });
        for (index, slot) in nodes.iter().enumerate() {
            let size = sizes[&component[index]];
            let on_cycle = size > 1 || children[index].contains(&index_u32(index));
            let known = self.graph[*slot].cycle().is_some();
            findings.ensure_of(self.graph, *slot, known == on_cycle, || {
                format!("is on a cycle: {on_cycle}, known: {known}")
            });
            if known {
                self.check_member(*slot, size, findings);
            }
        }
    }

    /// Checks that a member of a cycle settles with the others, is not invoked, and carries the error that describes
    /// the cycle.
    fn check_member(&self, slot: Slot, size: usize, findings: &mut Findings) {
        let resource = &self.graph[slot];
        let Some(cycle) = resource.cycle() else { return };
        let members = self.graph.cycles().members(cycle);
        let whole = members.len() == size && members.contains(&slot);
        findings.ensure_of(self.graph, slot, whole, || {
            format!("is on a cycle of {size} with {} members", members.len())
        });
        let together = members
            .iter()
            .all(|it| self.graph[*it].is_unsettled() == resource.is_unsettled());
        findings.ensure_of(self.graph, slot, together, || "is on a cycle that is torn".into());
        let runs = resource
            .run()
            .is_some_and(|run| run.phase() == Phase::Reconcile && run.cancelled() == Cancelled::No);
        findings.ensure_of(self.graph, slot, !runs, || "is on a cycle and runs".into());
        let error = resource.row().error.as_ref();
        let says = error.is_some_and(|error| &*error.code == CYCLE_CODE) || resource.unreadable().is_some();
        findings.ensure_of(self.graph, slot, says, || {
            "is on a cycle and does not say so".into()
        });
    }

    /// Checks that deleted resources are not part of the graph, and that every edge between live ones is counted.
    pub(super) fn check_edges_agree(&self, findings: &mut Findings) {
        for (slot, resource) in self.graph.iter() {
            let left = resource.is_live() || resource.links().is_empty();
            findings.ensure_of(self.graph, slot, left, || "is deleted and has links".into());
            for (index, link) in resource.links().iter().enumerate() {
                let edge = link.is_edge() && self.graph.live(link.name()).is_some();
                findings.ensure_of(self.graph, slot, link.is_counted() == edge, || {
                    format!(
                        "has an edge by ref {index}: {edge}, counted: {}",
                        link.is_counted()
                    )
                });
            }
        }
    }
}

//! Order of deletes: each waits for the deletes of everything that refers to its resource or is owned by it (the
//! contract's C6).

use std::collections::{BTreeSet, HashMap};

use crate::Uid;
use crate::graph::Graph;
use crate::graph::components::components;
use crate::graph::resource::Life;
use crate::types::index::{Slot, index_u32};

/// Deletes that wait for the delete of each resource; by slot and uid, because slots may be reused.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct DeleteOrder(HashMap<Slot, Vec<(Slot, Uid)>>);

impl DeleteOrder {
    /// Lists every waiting delete, with the uid of its resource.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (Slot, Uid)> + '_ {
        self.0.values().flatten().copied()
    }

    /// Lists the deletes that wait for the delete of `slot`.
    #[cfg(test)]
    pub(crate) fn waiting_for(&self, slot: Slot) -> impl Iterator<Item = Slot> + '_ {
        let waiting = self.0.get(&slot).into_iter().flatten();
        waiting.map(|(target, _)| *target)
    }

    /// Adds deletes, each of which makes the deletes of its refs and owner wait. A wait that would close a circle is
    /// left out.
    pub(super) fn add(&mut self, graph: &mut Graph, deleted: &[(Slot, Vec<Slot>)]) {
        let index_of: HashMap<Slot, u32> = deleted
            .iter()
            .enumerate()
            .map(|(index, (slot, _))| (*slot, index_u32(index)))
            .collect();
        let edges: Vec<Vec<u32>> = deleted
            .iter()
            .map(|(_, targets)| {
                targets
                    .iter()
                    .filter_map(|target| index_of.get(target).copied())
                    .collect()
            })
            .collect();
        // Two deletes that wait for each other would never run, so edges inside a circle count for nothing.
        let component = components(&edges);
        let mut of_old = Vec::new();
        for (index, (slot, targets)) in deleted.iter().enumerate() {
            let in_circle = |target: &Slot| {
                let other = index_of.get(target);
                other.is_some_and(|other| component[*other as usize] == component[index])
            };
            // Once each: several refs to one resource are one wait, which ends once.
            let targets: BTreeSet<Slot> = targets.iter().copied().collect();
            for target in targets
                .into_iter()
                .filter(|target| target != slot && !in_circle(target))
            {
                if graph[target].life() == Life::Deleted {
                    of_old.push((*slot, target));
                } else {
                    self.delay(graph, *slot, target);
                }
            }
        }
        for (slot, target) in of_old {
            // Deletes of earlier batches have their order already. An edge that would close a circle with it is left out.
            if !self.delays(target, slot) {
                self.delay(graph, slot, target);
            }
        }
    }

    /// Makes the delete of `target`, now or later, wait for the delete of `slot`.
    fn delay(&mut self, graph: &mut Graph, slot: Slot, target: Slot) {
        graph[target].wait_for_delete();
        let uid = graph[target].row().uid;
        self.0.entry(slot).or_default().push((target, uid));
    }

    /// Returns true if the delete of `last` already waits for the delete of `first`, directly or through others.
    fn delays(&self, first: Slot, last: Slot) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![first]);
        while let Some(slot) = open.pop() {
            if slot == last {
                return true;
            }
            if seen.insert(slot) {
                let waiting = self.0.get(&slot).into_iter().flatten();
                open.extend(waiting.map(|(target, _)| *target));
            }
        }
        false
    }

    /// Lets the deletes go on that waited for the delete of `slot`.
    pub(super) fn release(&mut self, graph: &mut Graph, slot: Slot) {
        for (target, uid) in self.0.remove(&slot).unwrap_or_default() {
            let waiting = graph.get_mut(target).filter(|resource| resource.row().uid == uid);
            if let Some(resource) = waiting {
                resource.end_wait_for_delete();
                graph.enqueue(target);
            }
        }
    }
}

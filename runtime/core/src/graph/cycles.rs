//! Cycles of the graph (C7), found once per batch in one pass over everything that the changed edges reach.
//!
//! A batch first *dissolves* the cycles that it touches, changes the structure, and then *regroups* whatever
//! is a cycle now. Counts stay exact in between because only counted edges are in them, and a member's edges
//! are taken out while its node changes.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use super::Graph;
use super::components::components;
use crate::types::index::{CycleId, Slot, index_u32};
use crate::{Error, Key};
use rustc_hash::FxBuildHasher;

/// Error code of the members of a cycle.
pub(crate) const CYCLE_CODE: &str = "cycle";

/// Maximum number of paths described per strongly connected component; further members get the first one's error.
/// Bounds the cost of error texts.
const SPELLED_MAX: usize = 16;

/// Maximum number of members named in one error. A long cycle is elided in the middle, so that the errors of all
/// members need space in proportion to their number.
const NAMED_MAX: usize = 16;

/// Known cycles of the graph.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Cycles {
    members: Vec<Vec<Slot>>,
    free: Vec<CycleId>,
}

impl Cycles {
    pub(crate) fn members(&self, cycle: CycleId) -> &[Slot] {
        &self.members[cycle.index()]
    }

    pub(crate) fn first(&self, cycle: CycleId) -> Slot {
        self.members[cycle.index()][0]
    }

    pub(crate) fn add(&mut self, members: Vec<Slot>) -> CycleId {
        match self.free.pop() {
            Some(cycle) => {
                self.members[cycle.index()] = members;
                cycle
            }
            None => {
                self.members.push(members);
                CycleId::new(index_u32(self.members.len() - 1))
            }
        }
    }

    fn remove(&mut self, cycle: CycleId) {
        self.free.push(cycle);
        self.members[cycle.index()] = Vec::new();
    }

    #[cfg(test)]
    pub(crate) fn members_mut(&mut self, cycle: CycleId) -> &mut Vec<Slot> {
        &mut self.members[cycle.index()]
    }

    /// Returns the number of cycles in the graph now.
    pub(crate) fn count(&self) -> usize {
        self.members.len() - self.free.len()
    }
}

/// Result of a search for cycles.
#[derive(Debug, Default)]
pub(crate) struct CycleChanges {
    /// Members of a new or changed cycle.
    pub(super) regrouped: Vec<Slot>,
    /// Resources that are now on a cycle and were on none before.
    pub(super) entered: Vec<Slot>,
    /// Resources that are no longer on a cycle.
    pub(super) left: Vec<Slot>,
}

impl Graph {
    /// Dissolves a cycle, so that each member is a node of its own again; returns the members.
    pub(crate) fn dissolve(&mut self, cycle: CycleId) -> Vec<Slot> {
        // Counts stand with nodes, so every edge of a member is taken out before the node changes and put in again after
        // it.
        let members = self.cycles.members(cycle).to_vec();
        for &member in &members {
            self.uncount_edges_of(member);
        }
        self.cycles.remove(cycle);
        let first = members[0];
        // The first member held the count of the whole cycle. Each has its own again.
        self.slots[first].running = 0;
        for &member in &members {
            self.slots[member].cycle = None;
            self.slots[member].running = u32::from(self.slots[member].run().is_some_and(|run| run.busy));
        }
        for &member in &members {
            self.count_edges_of(member);
        }
        members
    }

    fn group(&mut self, members: Vec<Slot>) {
        for &member in &members {
            self.uncount_edges_of(member);
        }
        let cycle = self.cycles.add(members.clone());
        let mut running = 0;
        for &member in &members {
            running += std::mem::take(&mut self.slots[member].running);
            self.slots[member].cycle = Some(cycle);
        }
        self.slots[members[0]].running = running;
        for &member in &members {
            self.count_edges_of(member);
        }
    }

    fn uncount_edges_of(&mut self, slot: Slot) {
        for index in 0..self.slots[slot].links.len() {
            self.uncount_edge(slot, index);
        }
        let name = self.slots[slot].name;
        // Refs are to names: only the live resource of its name has children.
        if self.names[name].live == Some(slot) {
            for index in 0..self.names[name].referrers.len() {
                let referrer = self.names[name].referrers[index];
                self.uncount_edge(referrer.slot, referrer.index as usize);
            }
        }
    }

    fn count_edges_of(&mut self, slot: Slot) {
        for index in 0..self.slots[slot].links.len() {
            self.count_edge(slot, index);
        }
        let name = self.slots[slot].name;
        if self.names[name].live == Some(slot) {
            for index in 0..self.names[name].referrers.len() {
                let referrer = self.names[name].referrers[index];
                self.count_edge(referrer.slot, referrer.index as usize);
            }
        }
    }

    /// Finds every cycle that can be reached from the seeds. `dissolved` were on a cycle before the batch.
    pub(crate) fn find_cycles(&mut self, seeds: &[Slot], dissolved: &BTreeSet<Slot>) -> CycleChanges {
        let (nodes, children) = self.reach(seeds);
        let component = components(&children);
        let mut sizes = vec![0_u32; component.len()];
        for number in &component {
            sizes[*number as usize] += 1;
        }
        // Ordered, for errors are written in this order, and equal inputs have equal effects.
        let mut knots: std::collections::BTreeMap<u32, Vec<Slot>> = std::collections::BTreeMap::new();
        for (index, slot) in nodes.iter().enumerate() {
            // A component of one is a cycle only by a ref to itself.
            let on_itself = children[index].contains(&index_u32(index));
            if sizes[component[index] as usize] > 1 || on_itself {
                knots.entry(component[index]).or_default().push(*slot);
            }
        }
        let mut changes = CycleChanges::default();
        let mut still_on = BTreeSet::new();
        for mut members in knots.into_values() {
            members.sort_unstable();
            still_on.extend(members.iter().copied());
            // The same cycle as before. Its members keep their error, and nobody is requested for it.
            if self.is_grouped(&members) {
                continue;
            }
            // Those that were on a cycle before this batch are requested by nobody: they had settled with an error, and
            // still do.
            let is_fresh = |slot: &Slot| self.slots[*slot].cycle.is_none() && !dissolved.contains(slot);
            let fresh: Vec<Slot> = members.iter().copied().filter(is_fresh).collect();
            let cycles: Vec<_> = members
                .iter()
                .filter_map(|member| self.slots[*member].cycle)
                .collect();
            for cycle in cycles {
                if !self.cycles.members(cycle).is_empty() {
                    self.dissolve(cycle);
                }
            }
            changes.entered.extend(fresh);
            self.group(members.clone());
            changes.regrouped.extend(members);
        }
        changes.left = dissolved
            .iter()
            .copied()
            .filter(|slot| !still_on.contains(slot))
            .collect();
        changes
    }

    fn is_grouped(&self, members: &[Slot]) -> bool {
        let cycle = members.first().and_then(|first| self.slots[*first].cycle);
        cycle.is_some_and(|cycle| self.cycles.members(cycle) == members)
    }

    /// Returns the seeds and all their descendants, with the edges as indexes into that list.
    fn reach(&mut self, seeds: &[Slot]) -> (Vec<Slot>, Vec<Vec<u32>>) {
        let mut index_of: HashMap<Slot, u32, FxBuildHasher> = HashMap::default();
        let mut nodes: Vec<Slot> = Vec::new();
        let mut children: Vec<Vec<u32>> = Vec::new();
        let visit = |slot: Slot, nodes: &mut Vec<Slot>, index_of: &mut HashMap<Slot, u32, FxBuildHasher>| {
            *index_of.entry(slot).or_insert_with(|| {
                nodes.push(slot);
                index_u32(nodes.len() - 1)
            })
        };
        // Most new resources read others and are read by none yet. Leaving them out saves a walk for each.
        for seed in seeds.iter().filter(|seed| self.may_be_on_a_cycle(**seed)) {
            visit(*seed, &mut nodes, &mut index_of);
        }
        let mut edges = 0;
        while children.len() < nodes.len() {
            let below: Vec<u32> = self
                .children(nodes[children.len()])
                .map(|child| visit(child, &mut nodes, &mut index_of))
                .collect();
            edges += below.len() as u64;
            children.push(below);
        }
        self.visits.nodes += nodes.len() as u64;
        self.visits.edges += edges;
        (nodes, children)
    }

    /// Returns true if the resource has both parents and children. Every new cycle goes through a seed.
    fn may_be_on_a_cycle(&self, slot: Slot) -> bool {
        let found = self.slots.get(slot);
        let reads = found.is_some_and(|found| found.is_live() && !found.links.is_empty());
        reads && self.children(slot).next().is_some()
    }

    /// Returns the error of each member of a cycle, which describes a path from it back to itself.
    pub(crate) fn spell(&self, cycle: CycleId) -> Vec<(Slot, Arc<Error>)> {
        let members = self.cycles.members(cycle);
        let mut uncovered: BTreeSet<(Key, Slot)> = members
            .iter()
            .map(|slot| (self.slots[*slot].row.key(), *slot))
            .collect();
        let mut spelled: Vec<(Slot, Arc<Error>)> = Vec::with_capacity(members.len());
        // One shortest way round need not go through every member of a knot, and each member shows one that it is on.
        for _ in 0..SPELLED_MAX {
            let Some((_, from)) = uncovered.first().cloned() else {
                break;
            };
            let way = self.way_round(from);
            let error = Arc::new(self.cycle_error(&way));
            for slot in way {
                if uncovered.remove(&(self.slots[slot].row.key(), slot)) {
                    spelled.push((slot, error.clone()));
                }
            }
        }
        if let Some(first) = spelled.first().map(|(_, error)| error.clone()) {
            spelled.extend(uncovered.into_iter().map(|(_, slot)| (slot, first.clone())));
        }
        spelled
    }

    /// Returns a shortest path over refs from a member of a cycle back to itself.
    fn way_round(&self, from: Slot) -> Vec<Slot> {
        let cycle = self.slots[from].cycle;
        let mut reached_from: HashMap<Slot, Slot, FxBuildHasher> = HashMap::default();
        let mut queue = VecDeque::from([from]);
        // Breadth first, so the first way back is a shortest one; in the order of refs, so it is the same one each time.
        while let Some(slot) = queue.pop_front() {
            for parent in self
                .parents(slot)
                .filter(|parent| self.slots[*parent].cycle == cycle)
            {
                if parent == from {
                    let mut way = vec![slot];
                    while let Some(before) = way.last().and_then(|last| reached_from.get(last)) {
                        way.push(*before);
                    }
                    way.reverse();
                    return way;
                }
                if let std::collections::hash_map::Entry::Vacant(entry) = reached_from.entry(parent) {
                    entry.insert(slot);
                    queue.push_back(parent);
                }
            }
        }
        vec![from]
    }

    fn cycle_error(&self, way: &[Slot]) -> Error {
        let named = |slot: &Slot| format!("\"{}\"", self.slots[*slot].row.key());
        let mut steps: Vec<String> = if way.len() <= NAMED_MAX {
            way.iter().map(named).collect()
        } else {
            let (head, tail) = (&way[..NAMED_MAX / 2], &way[way.len() - NAMED_MAX / 2..]);
            let between = format!("... {} more ...", way.len() - NAMED_MAX);
            let tail = tail.iter().map(named);
            head.iter().map(named).chain([between]).chain(tail).collect()
        };
        steps.extend(way.first().map(named));
        let text = steps.join(" -> ");
        let mut error = Error::permanent(CYCLE_CODE, format!("on a cycle: {text}"));
        error.hint = Some(Arc::from(
            "an arrow points from a resource to one that it reads; remove one of them",
        ));
        error
    }
}

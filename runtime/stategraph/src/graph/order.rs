//! The order in which items of an intended graph can be created, and the cycles that prevent this.
//!
//! An item has a higher rank than all that it depends on. Found in time linear in items and edges, but
//! for alternatives that lead back to their item: each round that leaves some of them out looks once
//! more at the items that are still on a cycle.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Graph, Slot};
use crate::links::Links;
use crate::reference::Ref;

/// Ranks and cycles of a graph.
#[derive(Debug, Clone, Default)]
pub(crate) struct Order {
    ranks: Vec<u32>,
    /// One cycle for each strongly connected component, each in order.
    cycles: Vec<Vec<Ref>>,
    /// Items on a cycle, and items that depend on one.
    stuck: BTreeSet<Slot>,
    /// Alternatives that lead back to their item, and so are ignored: the item's slot, and the position among its
    /// targets.
    left_out: BTreeSet<(Slot, usize)>,
}

impl Order {
    /// Computes the order of a whole graph.
    pub(crate) fn from_graph<V>(graph: &Graph<V>) -> Self {
        let mut order = Self::default();
        if let Some(ranks) = ranks_as_inserted(graph) {
            order.ranks = ranks;
            return order;
        }
        order.ranks = vec![0; graph.slots().len()];
        let (mut sorted, mut knots) = order.links(graph, |_| true).components();
        while !knots.is_empty() && order.leave_out(graph, &knots) {
            let tangled: BTreeSet<Slot> = knots.concat().into_iter().collect();
            (_, knots) = order.links(graph, |slot| tangled.contains(&slot)).components();
        }
        if !order.left_out.is_empty() {
            (sorted, _) = order.links(graph, |_| true).components();
        }
        order.rank(graph, &sorted);
        order.cycles = knots.iter().map(|knot| order.cycle_in(graph, knot)).collect();
        order.cycles.sort();
        order.stop(graph, &knots);
        order
    }

    pub(crate) fn rank_of(&self, slot: Slot) -> u32 {
        self.ranks.get(slot as usize).copied().unwrap_or(0)
    }

    pub(crate) fn cycles(&self) -> &[Vec<Ref>] {
        &self.cycles
    }

    pub(crate) fn is_stuck(&self, slot: Slot) -> bool {
        !self.stuck.is_empty() && self.stuck.contains(&slot)
    }

    /// Returns true if no alternative is ignored.
    pub(crate) fn is_whole(&self) -> bool {
        self.left_out.is_empty()
    }

    pub(crate) fn is_left_out(&self, slot: Slot, position: usize) -> bool {
        !self.left_out.is_empty() && self.left_out.contains(&(slot, position))
    }

    /// Returns the edges between selected slots.
    fn links<V>(&self, graph: &Graph<V>, wanted: impl Fn(Slot) -> bool) -> Links {
        let mut links = Links::default();
        for slot in graph.slots() {
            if wanted(slot) {
                let edges = graph.edges(slot).enumerate();
                let kept =
                    edges.filter(|&(position, target)| wanted(target) && !self.is_left_out(slot, position));
                links.add(kept.map(|(_, target)| target));
            } else {
                links.add(std::iter::empty());
            }
        }
        links
    }

    /// Ignores alternatives inside a strongly connected component if others lead out of it; returns false if there are
    /// none.
    fn leave_out<V>(&mut self, graph: &Graph<V>, knots: &[Vec<Slot>]) -> bool {
        let before = self.left_out.len();
        for knot in knots {
            let inside: BTreeSet<Slot> = knot.iter().copied().collect();
            for &slot in knot {
                for alternatives in self.alternatives(graph, slot) {
                    let (back, out): (Vec<_>, Vec<_>) = alternatives
                        .into_iter()
                        .partition(|(_, target)| inside.contains(target));
                    if !out.is_empty() {
                        self.left_out
                            .extend(back.into_iter().map(|(position, _)| (slot, position)));
                    }
                }
            }
        }
        self.left_out.len() > before
    }

    /// Returns the alternatives of each dependency with several targets, without the ignored ones.
    fn alternatives<V>(&self, graph: &Graph<V>, slot: Slot) -> Vec<Vec<(usize, Slot)>> {
        let Some(item) = graph.item(slot) else {
            return Vec::new();
        };
        let mut groups: BTreeMap<usize, Vec<(usize, Slot)>> = BTreeMap::new();
        for ((position, (need, _)), target) in item.spec.targets().enumerate().zip(graph.edges(slot)) {
            if item.spec.needs[need].width() > 1 && !self.left_out.contains(&(slot, position)) {
                groups.entry(need).or_default().push((position, target));
            }
        }
        groups.into_values().collect()
    }

    /// Ranks each item above the highest of its targets; `sorted` has targets first.
    fn rank<V>(&mut self, graph: &Graph<V>, sorted: &[Slot]) {
        for &slot in sorted {
            let targets = graph
                .edges(slot)
                .enumerate()
                .filter(|&(position, _)| !self.is_left_out(slot, position));
            let highest = targets.map(|(_, target)| self.rank_of(target)).max();
            self.ranks[slot as usize] = highest.map_or(0, |rank| rank + 1);
        }
    }

    /// Returns a shortest cycle through the first item of a strongly connected component.
    fn cycle_in<V>(&self, graph: &Graph<V>, knot: &[Slot]) -> Vec<Ref> {
        let inside: BTreeSet<Slot> = knot.iter().copied().collect();
        let Some(&start) = knot.iter().min_by_key(|&&slot| graph.reference(slot)) else {
            return Vec::new();
        };
        let mut came_from: BTreeMap<Slot, Slot> = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(slot) = queue.pop_front() {
            for (position, target) in graph.edges(slot).enumerate() {
                if self.is_left_out(slot, position) || !inside.contains(&target) {
                    continue;
                }
                if target == start {
                    return walk_back(&came_from, slot)
                        .iter()
                        .map(|&slot| graph.reference(slot).clone())
                        .collect();
                }
                if let std::collections::btree_map::Entry::Vacant(entry) = came_from.entry(target) {
                    entry.insert(slot);
                    queue.push_back(target);
                }
            }
        }
        vec![graph.reference(start).clone()]
    }

    /// Marks as stuck the members of strongly connected components, and all items that can't do without them.
    fn stop<V>(&mut self, graph: &Graph<V>, knots: &[Vec<Slot>]) {
        let mut queue: Vec<Slot> = knots.concat();
        self.stuck.extend(&queue);
        while let Some(slot) = queue.pop() {
            for &dependent in graph.dependents_of(slot) {
                if !self.stuck.contains(&dependent) && self.is_stopped_by_stuck(graph, dependent) {
                    self.stuck.insert(dependent);
                    queue.push(dependent);
                }
            }
        }
    }

    fn is_stopped_by_stuck<V>(&self, graph: &Graph<V>, slot: Slot) -> bool {
        let Some(item) = graph.item(slot) else {
            return false;
        };
        let mut open: BTreeMap<usize, bool> = BTreeMap::new();
        for ((position, (need, _)), target) in item.spec.targets().enumerate().zip(graph.edges(slot)) {
            if !item.spec.needs[need].is_order_only() && !self.is_left_out(slot, position) {
                *open.entry(need).or_default() |= !self.stuck.contains(&target);
            }
        }
        open.values().any(|open| !open)
    }
}

/// Returns the ranks of a graph whose items were inserted after their targets, as is usual; none for other graphs. One
/// pass suffices, and there is no cycle.
fn ranks_as_inserted<V>(graph: &Graph<V>) -> Option<Vec<u32>> {
    let mut ranks: Vec<u32> = Vec::with_capacity(graph.slots().len());
    for slot in graph.slots() {
        let mut rank = 0;
        for target in graph.edges(slot) {
            rank = rank.max(ranks.get(target as usize)? + 1);
        }
        ranks.push(rank);
    }
    Some(ranks)
}

fn walk_back(came_from: &BTreeMap<Slot, Slot>, last: Slot) -> Vec<Slot> {
    let mut path = vec![last];
    let mut at = last;
    while let Some(&before) = came_from.get(&at) {
        path.push(before);
        at = before;
    }
    path.reverse();
    path
}

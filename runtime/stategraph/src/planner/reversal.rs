//! Prevention of cycles in the current graph when an edge is reversed and one of its ends fails (S10).
//!
//! An item comes up after all that it depends on is over, so that every edge that could close a cycle with
//! its new ones is gone by then, unless an item on the way failed or was held back and keeps what it had.
//! Only below such leftovers it has to be looked for; when a part is converged, all that is outside is one.

use std::collections::HashSet;

use super::Planner;
use super::gates::Footing;
use super::job::{Id, Job};
use crate::graph::Slot;
use crate::item::Spec;
use crate::value::Value;

impl<V: Value> Planner<'_, V> {
    /// Returns true if the new dependencies of an item would lead back to it in the current graph.
    pub(super) fn closes_cycle(&mut self, id: Id, intent: &Spec<V>, footing: &Footing) -> bool {
        let node = self.node(id);
        let (slot, job) = (node.slot, node.job);
        let is_there = matches!(job, Job::Modify | Job::Relink | Job::Replace);
        // An item that moves first does not wait for its target, which may still have what it is to drop.
        let may_be_old = self.intent.extent.is_part() || !self.course.moves.is_empty();
        // Most calls end here. A search through the graph for each edge that changes would cost its square.
        if !is_there || !(may_be_old || self.is_below_leftover(slot)) {
            return false;
        }
        let new = self.relied_slots(intent, footing);
        let Some(on_the_way) = self.way(&new, slot) else {
            // What it relies on from now on is below the same leftover.
            self.mark_below_leftover(new);
            return false;
        };
        let members = on_the_way.into_iter().filter_map(|slot| self.course.known(slot));
        let closing: Vec<(Id, Id)> = members.map(|member| (member, id)).collect();
        self.course.closing.extend(closing);
        true
    }

    /// Returns the slots that an item with this footing would rely on.
    fn relied_slots(&self, intent: &Spec<V>, footing: &Footing) -> Vec<Slot> {
        let needs = intent.needs.iter().enumerate();
        let relied = needs
            .filter(|(_, need)| !need.is_order_only())
            .filter_map(|(at, need)| {
                let mut chosen = footing.relied.iter().filter(|(position, _)| *position == at);
                let chosen = chosen.next().map(|(_, target)| target);
                self.current.slot(chosen.or_else(|| need.targets().next())?)
            });
        relied.collect()
    }

    fn is_below_leftover(&mut self, slot: Slot) -> bool {
        let leftovers = std::mem::take(&mut self.course.leftovers);
        let slots = leftovers.into_iter().map(|id| self.node(id).slot).collect();
        self.mark_below_leftover(slots);
        self.course.below_leftovers.contains(&slot)
    }

    /// Marks all slots below leftovers, each once.
    fn mark_below_leftover(&mut self, mut queue: Vec<Slot>) {
        while let Some(slot) = queue.pop() {
            if self.course.below_leftovers.insert(slot) {
                self.spend(1);
                self.push_relied(slot, &mut queue);
            }
        }
    }

    /// Returns the slots visited on the way to a slot; none if it can't be reached.
    fn way(&mut self, from: &[Slot], to: Slot) -> Option<HashSet<Slot>> {
        let mut queue = from.to_vec();
        let mut seen = HashSet::new();
        while let Some(slot) = queue.pop() {
            if slot == to {
                return Some(seen);
            }
            if seen.insert(slot) {
                self.spend(1);
                self.push_relied(slot, &mut queue);
            }
        }
        None
    }

    /// Adds the slots that an item, or its replacement, relies on.
    fn push_relied(&self, slot: Slot, queue: &mut Vec<Slot>) {
        let alias = self.alias_of(self.current.reference(slot));
        let alias = alias.and_then(|alias| self.current.slot(&alias.reference));
        for slot in std::iter::once(slot).chain(alias) {
            let Some(item) = self.current.item(slot) else {
                continue;
            };
            let edges = item.spec.targets().zip(self.current.edges(slot));
            queue.extend(edges.filter_map(|((at, target), edge)| {
                let relies = !item.spec.needs[at].is_order_only() && self.relies(item, at, target);
                relies.then_some(edge)
            }));
        }
    }
}

//! Ties of items to their targets in the current graph: which targets they rely on.

use super::Planner;
use super::job::{Id, Job, Stage};
use crate::graph::Slot;
use crate::item::{Item, Operation, State};
use crate::predicate::Predicate;
use crate::reference::Ref;
use crate::value::Value;

/// Kind of an item's dependency on a target in the current graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tie {
    /// The item relies on the target.
    Relies,
    /// The item could do without the target, because it relies on another alternative.
    Alternative,
    /// The dependency only orders operations.
    Order,
}

impl<V: Value> Planner<'_, V> {
    /// Returns the strongest tie of an item, or of its replacement, to a target in the current graph; none without one.
    pub(super) fn tie(&self, id: Id, target: Id) -> Option<Tie> {
        self.ties(id, target).into_iter().flatten().min()
    }

    /// Returns the ties of an item and of its replacement to a target in the current graph.
    pub(super) fn ties(&self, id: Id, target: Id) -> [Option<Tie>; 2] {
        let (slot, target) = (self.node(id).slot, self.node(target).slot);
        let alias = self
            .alias_of(self.ref_of(id))
            .and_then(|alias| self.current.slot(&alias.reference));
        [Some(slot), alias].map(|slot| self.tie_of(slot?, target))
    }

    pub(super) fn tie_of(&self, slot: Slot, target: Slot) -> Option<Tie> {
        let item = self.current.item(slot)?;
        let edges = item
            .spec
            .targets()
            .zip(self.current.edges(slot))
            .filter(|(_, edge)| *edge == target);
        let ties = edges.map(|((at, reference), _)| {
            let need = &item.spec.needs[at];
            match self.relies(item, at, reference) {
                _ if need.is_order_only() => Tie::Order,
                true => Tie::Relies,
                false => Tie::Alternative,
            }
        });
        ties.min()
    }

    /// Returns true if an item relies on this target of a dependency: no other one will do.
    pub(super) fn relies(&self, item: &Item<V>, at: usize, target: &Ref) -> bool {
        let need = &item.spec.needs[at];
        let others = need.targets().filter(|&other| other != target);
        let mut slots = others.filter_map(|other| self.current.slot(other));
        !slots.any(|other| self.holds_now(other, need.predicate()) && self.stays(other, need.predicate()))
    }

    /// Returns true if a target that holds continues to hold throughout the call.
    fn stays(&self, target: Slot, predicate: Option<&Predicate>) -> bool {
        let known = self.course.known(target);
        known.is_none_or(|target| !self.is_to_go(target) && self.will_hold(target, predicate))
    }

    /// Returns true if an existing item is still to be deleted in this call; false once it was deleted or the delete
    /// failed.
    fn is_to_go(&self, id: Id) -> bool {
        let node = self.node(id);
        let is_behind = node.job == Job::Remake && matches!(node.down.stage, Stage::Done | Stage::Failed);
        node.job.is_interrupted() && !is_behind
    }

    /// Returns true if an item counts for the deletes of its targets: it exists, or an operation on it is under way.
    pub(super) fn stands(&self, id: Id) -> bool {
        let item = self
            .current
            .item(self.node(id).slot)
            .into_iter()
            .chain(self.alias_of(self.ref_of(id)));
        item.into_iter()
            .any(|item| item.state != State::Failed(Operation::Create) && !item.is_unmade())
    }
}

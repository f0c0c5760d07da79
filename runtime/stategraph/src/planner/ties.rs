//! Ties of items to their targets in the current graph: which of them others rely on.

use super::Planner;
use super::job::{Id, Job, Stage};
use crate::graph::Slot;
use crate::item::{Item, Operation, State};
use crate::predicate::Predicate;
use crate::reference::Ref;
use crate::value::Value;

/// The way in which an item of the current graph depends on a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tie {
    /// It relies on it.
    Relies,
    /// It could do without: it relies on another of several.
    Alternative,
    /// It only follows its order.
    Order,
}

impl<V: Value> Planner<'_, V> {
    /// Returns how an item, or its replacement, depends on a target in the current graph, if it does: the
    /// strongest of its ties.
    pub(super) fn tie(&self, id: Id, target: Id) -> Option<Tie> {
        self.ties(id, target).into_iter().flatten().min()
    }

    /// Returns how an item, and how its replacement, depends on a target in the current graph.
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

    /// Returns true if an item relies on this target of one of its dependencies: no other one will do.
    pub(super) fn relies(&self, item: &Item<V>, at: usize, target: &Ref) -> bool {
        let need = &item.spec.needs[at];
        let others = need.targets().filter(|&other| other != target);
        let mut slots = others.filter_map(|other| self.current.slot(other));
        !slots.any(|other| self.holds_now(other, need.predicate()) && self.stays(other, need.predicate()))
    }

    /// Returns true if a target that holds goes on to hold, through all that the call does.
    fn stays(&self, target: Slot, predicate: Option<&Predicate>) -> bool {
        let known = self.course.known(target);
        known.is_none_or(|target| !self.is_to_go(target) && self.will_hold(target, predicate))
    }

    /// Returns true if an item that is there is still to be deleted in this call. One that was remade is not, nor one
    /// that could not be deleted.
    fn is_to_go(&self, id: Id) -> bool {
        let node = self.node(id);
        let is_behind = node.job == Job::Remake && matches!(node.down.stage, Stage::Done | Stage::Failed);
        node.job.is_interrupted() && !is_behind
    }

    /// Returns true if an item counts for deletes below it: it is there, or an operation on it is under way.
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

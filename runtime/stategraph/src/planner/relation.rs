//! Separation of related operations (S8).
//!
//! Most related tasks wait for each other anyway. Where they may not, a task starts only if its item
//! neither depends on one with an operation under way nor the other way round, through the edges of
//! the current and the intended graph. What an operation is related to is found once, when first asked.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use super::Planner;
use super::job::{Id, Job, Part, TaskId, Verdict};
use super::slots::{IdSet, SlotHasher};
use crate::graph::Slot;
use crate::item::{Item, Operation};
use crate::operations::{Ending, OperationId};
use crate::reference::Ref;
use crate::value::Value;

/// Transitive targets and dependents of the item of each running operation.
pub(super) type Relations = BTreeMap<OperationId, IdSet>;

/// Direction along edges.
#[derive(Clone, Copy)]
enum Towards {
    Targets,
    Dependents,
}

type Edges = HashMap<Id, Vec<Id>, BuildHasherDefault<SlotHasher>>;

/// Dependencies that a modify of an earlier call is giving to items, which may already rely on them.
#[derive(Default)]
pub(super) struct Coming {
    targets: Edges,
    dependents: Edges,
}

impl<V: Value> Planner<'_, V> {
    pub(super) fn is_related_to_running(&mut self, task: TaskId) -> bool {
        if self.operations.is_empty() || !(self.course.is_mixed || self.course.has_jumped) {
            return false;
        }
        let running: Vec<OperationId> = self.operations.iter().map(|(id, _)| id).collect();
        running
            .into_iter()
            .any(|id| self.may_be_unordered(task, id) && self.is_related(task.node, id))
    }

    /// Returns the operations of earlier calls that hold back related items.
    pub(super) fn keeping_back(&self) -> Vec<OperationId> {
        let under_way = self.operations.iter();
        let holding = under_way.filter(|(_, running)| running.ending != Ending::Abandoned);
        holding.map(|(id, _)| id).collect()
    }

    /// Records the dependencies that running operations of earlier calls are giving to items.
    pub(super) fn note_coming(&mut self) {
        self.coming = Coming::default();
        for id in self.keeping_back() {
            let running = self.operations.get(id);
            let Some(running) = running.filter(|running| running.operation == Operation::Modify) else {
                continue;
            };
            let reference = running.reference.clone();
            let targets = running.intent.iter().flat_map(|intent| {
                let hard = intent
                    .targets()
                    .filter(|(at, _)| !intent.needs[*at].is_order_only());
                hard.map(|(_, target)| target.clone()).collect::<Vec<_>>()
            });
            let targets: Vec<_> = targets.collect();
            let slot = self.current.pin(&reference);
            let from = self.node_at(slot);
            self.spend(targets.len());
            for target in targets {
                let slot = self.current.pin(&target);
                let to = self.node_at(slot);
                self.coming.targets.entry(from).or_default().push(to);
                self.coming.dependents.entry(to).or_default().push(from);
            }
        }
    }

    /// Returns true if a task and a running operation may be unordered. Two deletes, or two creates and modifies,
    /// normally are ordered by their waits.
    fn may_be_unordered(&self, task: TaskId, id: OperationId) -> bool {
        if self
            .operations
            .get(id)
            .is_none_or(|running| running.ending == Ending::Abandoned)
        {
            return false;
        }
        let soft = self.course.is_soft || self.course.has_jumped;
        let other = self.tasks.get(&id);
        // The dependents of one that is replaced stay, so that what is above them was not waited for.
        let is_replaced = |task: &TaskId| task.part == Part::Down && self.node(task.node).job == Job::Replace;
        soft || task.part == Part::Finish
            || is_replaced(&task)
            || other.is_none_or(|other| other.part != task.part || is_replaced(other))
    }

    /// Lists the items that a modify of an earlier call is making dependent on `target`.
    pub(super) fn about_to_need(&self, target: &Ref) -> impl Iterator<Item = &Ref> {
        let target = self.current.slot(target).and_then(|slot| self.course.known(slot));
        let coming = target.and_then(|target| self.coming.dependents.get(&target));
        coming.into_iter().flatten().map(|&id| self.ref_of(id))
    }

    pub(super) fn is_related(&mut self, node: Id, id: OperationId) -> bool {
        // Found once for each operation: asked anew for each task that is ready, a long operation would cost the graph
        // each time (S14).
        if !self.relations.contains_key(&id) {
            let Some(reference) = self.operations.get(id).map(|running| running.reference.base()) else {
                return false;
            };
            let slot = self.current.pin(&reference);
            let running = self.node_at(slot);
            let mut related = self.reach(running, Towards::Targets);
            related.extend(self.reach(running, Towards::Dependents));
            self.relations.insert(id, related);
        }
        self.relations
            .get(&id)
            .is_some_and(|related| related.contains(&node))
    }

    /// Returns all items that can be reached in one direction, including the start.
    fn reach(&mut self, from: Id, towards: Towards) -> IdSet {
        let mut seen = IdSet::default();
        seen.insert(from);
        let mut queue = vec![from];
        while let Some(id) = queue.pop() {
            self.spend(1);
            for next in self.neighbours(id, towards) {
                if seen.insert(next) {
                    queue.push(next);
                }
            }
        }
        seen
    }

    /// Returns the direct targets or dependents of an item, without `order_only` dependencies.
    fn neighbours(&mut self, id: Id, towards: Towards) -> Vec<Id> {
        match towards {
            Towards::Targets => self.hard_targets(id),
            Towards::Dependents => {
                let mut above = self.current_dependents(id);
                above.extend(self.intended_dependents(id));
                above.extend(self.coming.dependents.get(&id).into_iter().flatten());
                above.retain(|&one| self.hard_targets(one).contains(&id));
                above
            }
        }
    }

    fn hard_targets(&mut self, id: Id) -> Vec<Id> {
        self.resolve_needs(id);
        let slot = self.node(id).slot;
        let mut targets: Vec<Id> = Vec::new();
        if let Some(item) = self.current.item(slot) {
            let edges: Vec<_> = self.current.edges(slot).collect();
            let ties = item
                .spec
                .targets()
                .map(|(at, _)| item.spec.needs[at].is_order_only());
            let hard: Vec<_> = ties
                .zip(edges)
                .filter(|(order_only, _)| !order_only)
                .map(|(_, slot)| slot)
                .collect();
            targets.extend(
                hard.into_iter()
                    .map(|slot| self.node_at(slot))
                    .collect::<Vec<_>>(),
            );
        }
        targets.extend(self.coming.targets.get(&id).into_iter().flatten());
        let node = self.node(id);
        if let Some(intent) = &node.intent {
            let needs = intent.targets().zip(self.course.need(id));
            targets.extend(
                needs
                    .filter(|((at, _), _)| !intent.needs[*at].is_order_only())
                    .map(|(_, &target)| target),
            );
        }
        targets
    }

    /// Returns true if related tasks may be left unordered by their waits.
    pub(super) fn is_mixed(&self) -> bool {
        let course = &self.course;
        let (mut downs, mut ups, mut finishes) = (false, false, false);
        for &id in &course.active {
            let job = self.node(id).job;
            (downs, ups, finishes) = (
                downs | job.has_down(),
                ups | job.has_up(),
                finishes | job.has_finish(),
            );
        }
        !self.operations.is_empty() || (downs && ups) || finishes
    }

    /// Returns true if even tasks of the same kind may be unordered: some items have alternatives, move first, or
    /// change their dependencies.
    pub(super) fn is_soft(&self) -> bool {
        self.course.has_alternatives || !self.course.moves.is_empty() || self.changes_needs()
    }

    /// Returns true if the dependencies of any item in the call change or are optional, even if the item itself is left
    /// alone: others may be related through it.
    fn changes_needs(&self) -> bool {
        self.course.nodes.iter().any(|node| {
            let Some(item) = self.current.item(node.slot).filter(|item| !item.is_external()) else {
                return false;
            };
            match &node.intent {
                Some(intent) if !Arc::ptr_eq(&item.spec, intent) && item.spec.needs != intent.needs => {
                    return true;
                }
                Some(_) if matches!(node.verdict, Verdict::Out(_)) => return true,
                None if !node.job.has_down() => return true,
                _ => {}
            }
            !self.current.is_plain(node.slot) && self.has_loose_ends(node.slot, item)
                || (node.job.has_down() && self.has_loose_ends(node.slot, item))
        })
    }

    /// Returns true if an item has targets that it does without.
    fn has_loose_ends(&self, slot: Slot, item: &Item<V>) -> bool {
        item.spec.needs.iter().any(|need| need.width() > 1)
            || self
                .current
                .edges(slot)
                .any(|target| self.current.item(target).is_none())
    }
}

//! Prospects of recreations: nothing is deleted for one that can't be completed (S4).
//!
//! Before anything runs, jobs are planned as if all recreations went on. Then each is looked at: one that something holds
//! up which stays above its item is not begun, nor is what was planned for its sake; the jobs are planned anew without
//! it, until nothing more is held up. Something stays if it is left alone, failed and is on hold, or waits for an
//! operation of an earlier call. While a course runs, what fails or is stopped keeps what is left of such a recreation
//! from being taken down as well.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::Planner;
use super::job::{Id, Job, Part, Stage, Verdict};
use super::slots::{IdSet, SlotHasher};
use super::ties::Tie;
use crate::item::{Operation, State};
use crate::operations::OperationId;
use crate::reason::Reason;
use crate::value::Value;

/// Obstacle to an item's recreation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    /// A dependent stays, as far as can be told. The item keeps its state, and others may rely on it.
    Stays,
    /// The item's own delete failed and is not due, if it ever is.
    Rests,
    /// A dependent's delete failed for good. The item stays, unless the dependent turns out not to be recreated at all.
    RestsAbove,
    /// A dependent waits for a background operation or a retry, and is deleted after that.
    Waits,
}

/// Items of a course that are not recreated in it, with the reasons.
#[derive(Default)]
pub(super) struct Prospects {
    obstacles: HashMap<Id, Obstacle, BuildHasherDefault<SlotHasher>>,
    /// Items for which no replacement is begun.
    unreplaceable: IdSet,
    /// Jobs forced on items by obstacles, in place of the intended ones.
    fixed: HashMap<Id, Job, BuildHasherDefault<SlotHasher>>,
    /// Items for which the question of a recreate failed.
    unasked: IdSet,
    /// Items that stay because something failed or was stopped since the course was laid.
    doomed: IdSet,
    /// True if some item is to be recreated.
    are_open: bool,
}

impl Prospects {
    /// Returns the job that obstacles or a failed question force on an item; none if the job is free.
    pub(super) fn fixed(&self, id: Id) -> Option<Job> {
        let unasked = self.unasked.contains(&id).then_some(Job::Hold);
        unasked.or_else(|| self.fixed.get(&id).copied())
    }

    /// Records that the question of a recreate failed for an item.
    pub(super) fn note_unasked(&mut self, id: Id) {
        self.unasked.insert(id);
    }

    /// Returns the job that an item gets instead of `job`; none if `job` can be carried out.
    pub(super) fn refuse(&mut self, id: Id, job: Job) -> Option<Job> {
        let obstacle = self.obstacles.get(&id).copied();
        let instead = match (job, obstacle) {
            (Job::Replace, _) if self.unreplaceable.contains(&id) => Job::Hold,
            (Job::Replace, Some(Obstacle::Rests)) => Job::Hold,
            (_, Some(obstacle)) if job.is_interrupted() => match obstacle {
                Obstacle::Stays | Obstacle::Rests | Obstacle::RestsAbove => Job::Hold,
                Obstacle::Waits => Job::Defer,
            },
            _ => return None,
        };
        self.fixed.insert(id, instead);
        Some(instead)
    }

    /// Returns true if an item that was to be recreated stays, as far as can be told.
    pub(super) fn stays(&self, id: Id) -> bool {
        let obstacle = self.obstacles.get(&id);
        matches!(obstacle, Some(Obstacle::Stays | Obstacle::RestsAbove)) && self.fixed.contains_key(&id)
    }

    fn rests(&self, id: Id) -> bool {
        self.obstacles.get(&id) == Some(&Obstacle::Rests)
    }

    /// Records items that stay, and drops all findings made without knowing that; returns false if there are none.
    fn keep(&mut self, ids: Vec<Id>) -> bool {
        if ids.is_empty() {
            return false;
        }
        self.obstacles.retain(|_, obstacle| *obstacle == Obstacle::Stays);
        self.obstacles
            .extend(ids.into_iter().map(|id| (id, Obstacle::Stays)));
        self.fixed.clear();
        true
    }

    fn note(&mut self, ids: Vec<Id>, obstacle: Obstacle) -> bool {
        let before = self.obstacles.len();
        for id in ids {
            self.obstacles.entry(id).or_insert(obstacle);
            // What rests does so whatever becomes of that for whose sake it was to go.
            if obstacle == Obstacle::Rests {
                self.fixed.insert(id, Job::Hold);
            }
        }
        self.obstacles.len() > before
    }
}

impl<V: Value> Planner<'_, V> {
    /// Plans all jobs so that nothing is deleted for a recreation that can't be completed.
    pub(super) fn foresee(&mut self) {
        loop {
            let fixed = self.course.prospects.fixed.len();
            self.raise_all();
            if self.course.prospects.fixed.len() == fixed && !self.hold_up() {
                break;
            }
            self.assign_anew();
        }
    }

    /// Finds the obstacles to recreations. Returns true if any were added, after which jobs must be planned again.
    pub(super) fn hold_up(&mut self) -> bool {
        let ids = 0..self.course.nodes.len() as Id;
        let is_open = |id: &Id| self.is_recreated(*id) || self.node(*id).job == Job::Replace;
        let open: Vec<Id> = ids.filter(is_open).collect();
        if open.is_empty() {
            return false;
        }
        self.spend(self.course.nodes.len());
        let unreplaceable: Vec<Id> = open
            .iter()
            .copied()
            .filter(|&id| self.is_unreplaceable(id))
            .collect();
        let before = self.course.prospects.unreplaceable.len();
        self.course.prospects.unreplaceable.extend(unreplaceable);
        let fixed = self.course.prospects.fixed.len();
        let kept = if self.anything_stays() {
            self.kept_in_place(Self::stays_above)
        } else {
            Vec::new()
        };
        if self.course.prospects.keep(kept) || self.course.prospects.unreplaceable.len() > before {
            self.course.prospects.fixed.clear();
            return true;
        }
        let resting = open.into_iter().filter(|&id| self.rests(id)).collect();
        if self.course.prospects.note(resting, Obstacle::Rests) {
            return true;
        }
        let below = if self.course.prospects.fixed.is_empty() {
            Vec::new()
        } else {
            self.kept_in_place(|planner, dependent, _| planner.rests_for_good(dependent))
        };
        self.course.prospects.note(below, Obstacle::RestsAbove)
            || self.defer_waiting()
            || self.course.prospects.fixed.len() > fixed
    }

    /// Resets all jobs to those after the survey, except for fixed ones.
    pub(super) fn assign_anew(&mut self) {
        self.course.moves.clear();
        self.course.is_held_back = true;
        self.spend(self.course.nodes.len());
        for id in 0..self.course.nodes.len() as Id {
            self.assign(id);
        }
    }

    /// Returns true if an item is to be deleted and created.
    fn is_recreated(&self, id: Id) -> bool {
        let node = self.node(id);
        node.job == Job::Remake || (node.job == Job::DeleteBoth && node.verdict == Verdict::In)
    }

    /// Returns true if a replacement must not be begun: a dependent of the old item has to stay, or the item has lacked
    /// a dependency since before the call, so that nothing can be created (S3).
    fn is_unreplaceable(&mut self, id: Id) -> bool {
        let is_begun = self.alias_of(self.ref_of(id)).is_some();
        self.node(id).job == Job::Replace && !is_begun && (self.is_leant_on(id, false) || self.was_broken(id))
    }

    fn was_broken(&self, id: Id) -> bool {
        let intent = self.node(id).intent.iter();
        let mut needs = intent.flat_map(|intent| intent.placed_needs());
        needs.any(|(_, need, positions)| !need.is_order_only() && self.was_broken_before(id, need, positions))
    }

    /// Returns true if any item may stay whatever the call does; false in most calls.
    fn anything_stays(&self) -> bool {
        let is_whole = self.intent.graph().is_none_or(|graph| graph.order().is_whole());
        let mut nodes = self.course.nodes.iter();
        !is_whole || nodes.any(|node| node.job == Job::Hold || node.verdict == Verdict::Untouched)
    }

    /// Returns the items to be recreated that have a dependent that stays. If an item stays, so do the targets that it
    /// relies on, even if they were to be deleted or changed.
    fn kept_in_place(&mut self, stays: impl Fn(&Self, Id, Id) -> bool) -> Vec<Id> {
        let ids = 0..self.course.nodes.len() as Id;
        let mut queue: Vec<Id> = ids.filter(|&id| self.is_disturbing(id)).collect();
        let (mut kept, mut order) = (IdSet::default(), Vec::new());
        while let Some(id) = queue.pop() {
            let is_kept = |planner: &Self, one: Id| kept.contains(&one) || stays(planner, one, id);
            if kept.contains(&id) || !self.has_above(id, is_kept) {
                continue;
            }
            kept.insert(id);
            order.push(id);
            let below = self.relied_nodes(id);
            queue.extend(below.into_iter().filter(|&one| self.is_disturbing(one)));
        }
        self.fix_changes(&order, Job::Hold);
        order.retain(|&id| self.is_recreated(id));
        order
    }

    /// Returns true if an item is deleted, or gets a value that may force others to be.
    fn is_disturbing(&self, id: Id) -> bool {
        self.goes(id) || self.changes_value(id)
    }

    /// Returns true if an item's handler is to delete it, for good or before it exists again.
    fn goes(&self, id: Id) -> bool {
        let job = self.node(id).job;
        job.is_interrupted() && job != Job::Vanish
    }

    /// Returns true if a dependent of this kind blocks an item's recreation or change.
    fn has_above(&mut self, id: Id, is_kind: impl Fn(&Self, Id) -> bool) -> bool {
        let dependents = self.current_dependents(id);
        self.spend(dependents.len());
        let mut dependents = dependents.into_iter();
        dependents.any(|one| one != id && is_kind(self, one) && self.is_in_the_way(one, id))
    }

    /// Returns true if a dependent stays as it is, as far as can be told.
    pub(super) fn stays_above(&self, dependent: Id, id: Id) -> bool {
        let node = self.node(dependent);
        let awaits = || {
            let item = self.current.item(node.slot);
            item.is_some_and(|item| self.awaits_recreation(item))
        };
        node.verdict == Verdict::Untouched
            || (node.job == Job::Hold && !self.course.prospects.rests(dependent) && !awaits())
            || (self.stays_throughout(dependent) && self.clings_to(dependent, id))
    }

    /// Returns true if an item was to be recreated, but its delete failed and is never retried.
    fn rests_for_good(&self, id: Id) -> bool {
        let item = self.current.item(self.node(id).slot);
        self.course.prospects.rests(id) && !item.is_some_and(|item| self.awaits_recreation(item))
    }

    /// Returns true if an existing dependent prevents an item's delete or its new value.
    fn is_in_the_way(&self, dependent: Id, id: Id) -> bool {
        if !self.stands(dependent) {
            return false;
        }
        if self.goes(id) {
            return self.tie(dependent, id) == Some(Tie::Relies);
        }
        let intent = self.node(id).intent.as_ref();
        self.changes_value(id) && intent.is_some_and(|intent| self.breaks(dependent, id, &intent.value))
    }

    /// Fixes the jobs of those items whose new value would force the recreation of others. Returns true if there are
    /// any.
    fn fix_changes(&mut self, ids: &[Id], job: Job) -> bool {
        let before = self.course.prospects.fixed.len();
        for &id in ids {
            if self.changes_value(id) && self.is_recreated_for(id) {
                self.course.prospects.fixed.insert(id, job);
            }
        }
        self.course.prospects.fixed.len() > before
    }

    fn is_recreated_for(&mut self, id: Id) -> bool {
        let dependents = self.current_dependents(id);
        dependents
            .into_iter()
            .any(|dependent| self.is_recreated(dependent) && self.goes_for(dependent, id))
    }

    /// Returns true if an item is to be recreated because of a target.
    fn goes_for(&self, id: Id, target: Id) -> bool {
        match &self.node(id).reason {
            Some(
                Reason::TargetRecreated(cause)
                | Reason::TargetModified(cause)
                | Reason::ConditionBroken(cause),
            ) => cause == self.ref_of(target),
            _ => false,
        }
    }

    /// Returns the known targets of an item and of its replacement, in the current graph.
    fn relied_nodes(&mut self, id: Id) -> Vec<Id> {
        let alias = self.alias_of(self.ref_of(id));
        let alias = alias.and_then(|alias| self.current.slot(&alias.reference));
        let both = std::iter::once(self.node(id).slot).chain(alias);
        let slots = both.flat_map(|slot| self.current.edges(slot));
        slots.filter_map(|slot| self.course.known(slot)).collect()
    }

    /// Defers recreations, and the changes that cause them, if they wait for a background operation or a retry. Returns
    /// true if any were added.
    fn defer_waiting(&mut self) -> bool {
        let waiting = self.waiting();
        let changes = self.fix_changes(&waiting, Job::Defer);
        let recreated = waiting.into_iter().filter(|&id| self.is_recreated(id)).collect();
        self.course.prospects.note(recreated, Obstacle::Waits) || changes
    }

    /// Returns the items with something to do that wait for an operation of an earlier call or for a retry: by
    /// themselves, through a target, or through a dependent.
    fn waiting(&mut self) -> Vec<Id> {
        let running = self.keeping_back();
        let mut order = Vec::new();
        for id in 0..self.course.nodes.len() as Id {
            if self.waits_at_once(id, &running) {
                order.push(id);
            }
        }
        let mut waiting: IdSet = order.iter().copied().collect();
        let mut next = 0;
        while let Some(&id) = order.get(next) {
            next += 1;
            let mut found = self.intended_dependents(id);
            found.retain(|&above| self.must_wait_for(above, id, &waiting));
            let below = self.relied_nodes(id);
            found.extend(
                below
                    .into_iter()
                    .filter(|&one| one != id && self.is_in_the_way(id, one)),
            );
            order.extend(found.into_iter().filter(|&one| waiting.insert(one)));
        }
        order
    }

    fn waits_at_once(&mut self, id: Id, running: &[OperationId]) -> bool {
        let node = self.node(id);
        let item = self.current.item(node.slot);
        match node.job {
            Job::Wait | Job::Defer => true,
            Job::Hold => item.is_some_and(|item| self.awaits_recreation(item)),
            Job::Rest | Job::Vanish | Job::Create => false,
            // A delete that failed may fail again: what is to go after it stays until it has not. One that has to wait
            // for others itself could wait for just these.
            Job::Delete if item.is_some_and(|item| item.state == State::Failed(Operation::Delete)) => {
                let dependents = self.current_dependents(id);
                !dependents.into_iter().any(|one| self.stands(one))
            }
            _ => running.iter().any(|&one| self.is_related(id, one)),
        }
    }

    /// Returns true if an item that is to change needs a waiting target, and no other target would do.
    fn must_wait_for(&self, id: Id, target: Id, waiting: &IdSet) -> bool {
        let node = self.node(id);
        let is_open = |one: Id| waiting.contains(&one) && self.node(one).job != Job::Hold;
        let changes = matches!(
            node.job,
            Job::Remake | Job::DeleteBoth | Job::Modify | Job::Relink | Job::Replace
        );
        changes
            && node.verdict == Verdict::In
            && is_open(target)
            && self.needs_on(id, target).any(|(need, positions)| {
                let mut others = self.alternatives(id, positions);
                others.all(|one| is_open(one) || !self.will_hold(one, need.predicate()))
            })
    }

    /// Returns true if an item was to be recreated because of others, but its delete failed and is not due. If there is
    /// no such cause any more, its value is restored at once, without asking the handler again.
    pub(super) fn rests(&self, id: Id) -> bool {
        let node = self.node(id);
        let reference = self.ref_of(id);
        let is_free = self.operations.on_either(reference).is_none() && self.alias_of(reference).is_none();
        let both = self.current.item(node.slot).zip(self.wanted(id));
        is_free
            && self.intent.is_inside(reference)
            && both.is_some_and(|(item, wanted)| {
                let needs_recreate = item.record.as_ref().and_then(|record| record.needs_recreate);
                item.state == State::Failed(Operation::Delete)
                    && !item.is_unmade()
                    && item.next().is_some()
                    && (item.spec.value == wanted.value || needs_recreate == Some(false))
                    && self.waits_to_retry(id, item)
            })
    }

    /// Notes whether any item is to be recreated, so that failures are followed.
    pub(super) fn note_recreations(&mut self) {
        let ids = 0..self.course.nodes.len() as Id;
        self.course.prospects.are_open = ids.into_iter().any(|id| self.is_recreated(id));
        self.course.prospects.doomed.clear();
    }

    /// Returns true if an item is to be deleted for a recreation that can't be completed any more.
    pub(super) fn is_doomed(&self, id: Id) -> bool {
        self.course.prospects.doomed.contains(&id)
    }

    /// Follows the consequences of an item that stays as it is: its targets are not recreated, and nothing more is
    /// deleted for either.
    pub(super) fn doom(&mut self, id: Id) {
        if !self.course.prospects.are_open {
            return;
        }
        let mut queue = vec![id];
        while let Some(id) = queue.pop() {
            let mut found: Vec<Id> = self.relied_nodes(id);
            found.retain(|&one| self.is_waiting_to_go(one) && self.blocks_delete(id, one));
            let mut above = self.current_dependents(id);
            above.retain(|&one| self.is_waiting_to_go(one) && self.goes_for(one, id));
            found.extend(above);
            queue.extend(
                found
                    .into_iter()
                    .filter(|&one| self.course.prospects.doomed.insert(one)),
            );
        }
    }

    fn is_waiting_to_go(&self, id: Id) -> bool {
        self.is_recreated(id) && self.node(id).task(Part::Down).stage == Stage::Waiting
    }
}

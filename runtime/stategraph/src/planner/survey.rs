//! The survey: judges which items should exist.
//!
//! Starting from the items that changed, each item is judged once, after all that it depends on; what
//! turns out different draws in those that depend on it. Whatever is not drawn in is taken to be as it
//! should be.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use super::Planner;
use super::course::Course;
use super::job::{Id, Verdict};
use crate::dependency::Dependency;
use crate::graph::{Extent, Slot};
use crate::item::{Item, Operation, Spec, State};
use crate::predicate::Predicate;
use crate::reason::{Problem, Unmet};
use crate::reference::Ref;
use crate::value::Value;

impl<V: Value> Planner<'_, V> {
    /// Returns the slots of the current graph to start from.
    pub(super) fn seeds(&mut self) -> Vec<Slot> {
        let named: Vec<Ref> = match &self.intent.extent {
            Extent::Everything => return self.all_that_differs(),
            Extent::Changed(changed) => changed.iter().cloned().collect(),
            Extent::Group(_) | Extent::Item(_) => {
                let displaced = self.current.displaced_specs().keys().cloned();
                self.intent.inside().iter().cloned().chain(displaced).collect()
            }
        };
        // Also those outside of the part: whether an item waits for one of them does not depend on whether
        // something else leads to it.
        let open: Vec<Ref> = self
            .current
            .attention()
            .map(|slot| self.current.reference(slot).base())
            .collect();
        let mut seeds: Vec<Slot> = named
            .iter()
            .cloned()
            .chain(open)
            .map(|reference| self.current.pin(&reference))
            .collect();
        if self.intent.extent.is_part() {
            // Also what depends on the part: an earlier call may have stopped before it was recreated.
            let dependents = seeds.iter().flat_map(|&slot| self.current.dependents_of(slot));
            let dependents: Vec<Slot> = dependents.copied().collect();
            seeds.extend(dependents);
        }
        seeds
    }

    /// Judges the items in these slots, and all that are drawn in.
    pub(super) fn survey(&mut self, mut seeds: Vec<Slot>) {
        self.relations.clear();
        // Numbers of nodes follow the order of the seeds, and effects the numbers: equal inputs have equal effects.
        seeds.sort_unstable();
        seeds.dedup();
        self.course = Course::new(self.intent.extent == Extent::Everything, seeds.len());
        let mut first = Vec::with_capacity(seeds.len());
        for slot in seeds {
            let base = self.base_slot(slot);
            let id = self.node_at(base);
            first.extend(self.draw(id));
        }
        self.note_coming();
        // By rank: targets before what needs them, so that each item is judged once and sees what becomes of its targets.
        let mut queue = Queue::new(first);
        let mut dependents = Vec::new();
        while let Some(id) = queue.pop() {
            self.judge(id);
            if self.is_disturbed(id) {
                self.all_dependents(id, &mut dependents);
                for dependent in dependents.drain(..) {
                    queue.add(self.draw(dependent));
                }
            }
        }
    }

    /// Marks an item to be judged; returns its place in the order, or none if it was marked already.
    fn draw(&mut self, id: Id) -> Option<(u32, Id)> {
        let was_drawn = std::mem::replace(&mut self.course.node_mut(id).is_drawn, true);
        (!was_drawn).then(|| (self.rank(id), id))
    }

    /// Collects the dependents of an item in either graph, possibly repeated.
    fn all_dependents(&mut self, id: Id, found: &mut Vec<Id>) {
        let (slot, origin) = (self.node(id).slot, self.node(id).origin);
        self.spend(
            self.current.dependents_of(slot).len() + origin.map_or(0, |at| self.intended_mentions(at)),
        );
        for at in 0..self.current.dependents_of(slot).len() {
            let dependent = self.current.dependents_of(slot)[at];
            let base = self.base_slot(dependent);
            found.push(self.node_at(base));
        }
        let Some(origin) = origin else { return };
        let count = self
            .intent
            .graph()
            .map_or(0, |graph| graph.dependents_of(origin).len());
        for at in 0..count {
            let dependent = self.intent.graph().map(|graph| graph.dependents_of(origin)[at]);
            found.extend(dependent.and_then(|dependent| self.node_of_intended(dependent)));
        }
    }

    /// Returns the slot of the item that a replacement belongs to; other slots are unchanged.
    pub(super) fn base_slot(&mut self, slot: Slot) -> Slot {
        let reference = self.current.reference(slot);
        if !reference.is_alias() {
            return slot;
        }
        let base = reference.base();
        self.current.pin(&base)
    }

    fn rank(&self, id: Id) -> u32 {
        let origin = self.node(id).origin;
        self.intent
            .graph()
            .zip(origin)
            .map_or(0, |(intended, origin)| intended.order().rank_of(origin))
    }

    /// Judges an item that was drawn in after the survey.
    pub(super) fn judge_late(&mut self, id: Id) {
        if self.node(id).verdict == Verdict::Unseen {
            self.course.node_mut(id).is_drawn = true;
            self.judge(id);
        }
    }

    fn judge(&mut self, id: Id) {
        self.resolve_needs(id);
        self.spend(1 + self.course.need(id).len());
        let node = self.node(id);
        let external = self.current.item(node.slot).is_some_and(Item::is_external);
        let stuck = self
            .intent
            .graph()
            .zip(node.origin)
            .is_some_and(|(graph, at)| graph.order().is_stuck(at));
        let verdict = match &node.intent {
            // Nobody here makes an external item, and one on a cycle has no order in which it could be made (S10).
            _ if external || stuck => Verdict::Untouched,
            None if !self.is_there(id) && node.origin.is_none() => Verdict::Untouched,
            None => Verdict::Gone,
            // Asked of verdicts, not of what is there: a target that is to go later in this call will not be there.
            Some(intent) => match self.unmet(id, intent) {
                unmet if unmet.is_empty() => Verdict::In,
                unmet => Verdict::Out(unmet),
            },
        };
        self.course.node_mut(id).verdict = verdict;
    }

    /// Returns true if the item or a leftover replacement exists.
    fn is_there(&self, id: Id) -> bool {
        self.current.item(self.node(id).slot).is_some() || self.alias_of(self.ref_of(id)).is_some()
    }

    /// Returns true if the dependents of an item must be judged.
    fn is_disturbed(&self, id: Id) -> bool {
        let node = self.node(id);
        let item = self.current.item(node.slot);
        match (&node.verdict, &node.intent, item) {
            (Verdict::In, Some(intent), Some(item)) => {
                item.state != State::Created || item.spec.value != intent.value
            }
            (Verdict::In, ..) | (Verdict::Unseen, ..) => true,
            // Those that depend on a pending item that was never there are pending already, unless it is new.
            (Verdict::Out(_) | Verdict::Gone, _, item) => {
                item.is_some() || self.intent.extent != Extent::Everything
            }
            (Verdict::Untouched, ..) => true,
        }
    }

    /// Returns the dependencies that an item will lack even if everything succeeds.
    fn unmet(&self, id: Id, intent: &Arc<Spec<V>>) -> Vec<Unmet> {
        if self.needs_all_alike(id) && self.course.need(id).iter().all(|&one| self.will_hold(one, None)) {
            return Vec::new();
        }
        let mut unmet = Vec::new();
        for (_, need, positions) in intent.placed_needs() {
            let first = positions.start;
            let is_served = positions.clone().any(|at| self.will_serve(id, at, need));
            if need.is_order_only() || is_served || self.was_broken_before(id, need, positions.clone()) {
                continue;
            }
            let targets = self
                .alternatives(id, positions)
                .map(|target| self.ref_of(target).clone())
                .collect();
            unmet.push(Unmet {
                targets,
                problem: self.problem(id, need, first),
            });
        }
        unmet
    }

    /// Returns true if an item outside of the part lacked a dependency before the call: the consequences are left to a
    /// call about the item (S9). False for an item that could not be deleted.
    pub(super) fn was_broken_before(&self, id: Id, need: &Dependency, positions: Range<usize>) -> bool {
        if self.intent.is_inside(self.ref_of(id)) || need.is_deleted_with_external() {
            return false;
        }
        // One whose old item is gone already is there as its replacement.
        let item = self.current.item(self.node(id).slot);
        let item = item.or_else(|| self.alias_of(self.ref_of(id)));
        let stays = |item: &Item<V>| item.is_created() && item.state != State::Failed(Operation::Delete);
        item.is_some_and(stays)
            && !self
                .alternatives(id, positions)
                .any(|target| self.held_before(target, need.predicate()))
    }

    /// Returns true if an item relies on an alternative that leads back to it, and no other will do: it can be neither
    /// switched nor created again, and stays (S9).
    pub(super) fn clings_to(&self, id: Id, target: Id) -> bool {
        let Some(intent) = &self.node(id).intent else {
            return false;
        };
        intent.placed_needs().any(|(_, need, positions)| {
            let is_target = |at: usize| self.course.need(id).get(at) == Some(&target);
            !need.is_order_only()
                && positions
                    .clone()
                    .any(|at| is_target(at) && self.leads_back(id, at))
                && !self
                    .alternatives(id, positions)
                    .any(|one| self.will_hold(one, need.predicate()))
        })
    }

    /// Returns true if a target, or its replacement, exists and satisfies the predicate.
    fn held_before(&self, target: Id, predicate: Option<&Predicate>) -> bool {
        let reference = self.ref_of(target);
        let item = self.current.item(self.node(target).slot);
        let mut both = item.into_iter().chain(self.alias_of(reference));
        both.any(|item| {
            item.is_created() && predicate.is_none_or(|one| self.holds(reference, one, &item.spec.value))
        })
    }

    /// Returns true if an item needs all its targets without conditions, which the graph knows without a look at the
    /// dependencies.
    pub(super) fn needs_all_alike(&self, id: Id) -> bool {
        let intended = self.intent.graph().zip(self.node(id).origin);
        intended.is_some_and(|(graph, at)| graph.is_plain(at) && graph.order().is_whole())
    }

    /// Lists the targets at these positions that don't lead back to the item.
    pub(super) fn alternatives(&self, id: Id, positions: Range<usize>) -> impl Iterator<Item = Id> + '_ {
        let need = self.course.need(id);
        positions
            .filter(move |&at| !self.leads_back(id, at))
            .filter_map(move |at| need.get(at).copied())
    }

    /// Lists the intended dependencies that this target may satisfy, with the positions of their targets.
    pub(super) fn needs_on(
        &self,
        id: Id,
        target: Id,
    ) -> impl Iterator<Item = (&Dependency, Range<usize>)> + '_ {
        let intent = self.node(id).intent.as_ref();
        let needs = intent.into_iter().flat_map(|intent| intent.placed_needs());
        needs
            .filter(move |(_, need, positions)| {
                !need.is_order_only() && self.alternatives(id, positions.clone()).any(|one| one == target)
            })
            .map(|(_, need, positions)| (need, positions))
    }

    fn leads_back(&self, id: Id, position: usize) -> bool {
        let origin = self.node(id).origin;
        self.intent
            .graph()
            .zip(origin)
            .is_some_and(|(graph, at)| graph.order().is_left_out(at, position))
    }

    /// Returns true if the target at a position of the dependency will exist and satisfy the dependency after the call.
    fn will_serve(&self, id: Id, position: usize, need: &Dependency) -> bool {
        let target = self.course.need(id).get(position).copied();
        target
            .is_some_and(|target| !self.leads_back(id, position) && self.will_hold(target, need.predicate()))
    }

    /// Returns true if a target will exist and satisfy the predicate after the call.
    pub(super) fn will_hold(&self, target: Id, predicate: Option<&Predicate>) -> bool {
        let node = self.node(target);
        match (&node.verdict, &node.intent) {
            (Verdict::In, Some(intent)) => {
                predicate.is_none_or(|predicate| self.holds(self.ref_of(target), predicate, &intent.value))
            }
            (Verdict::Unseen | Verdict::Untouched, _) => self.holds_now(node.slot, predicate),
            (Verdict::In | Verdict::Out(_) | Verdict::Gone, _) => false,
        }
    }

    /// Returns true if a target exists and satisfies the predicate, also with the value of a running modify. With a
    /// replacement, both must: a dependent may use either.
    #[inline]
    pub(super) fn holds_now(&self, target: Slot, predicate: Option<&Predicate>) -> bool {
        let item = self.current.item(target);
        let is_simple = item.is_some_and(|item| item.state == State::Created && item.record.is_none());
        (is_simple && predicate.is_none()) || self.holds_in_detail(target, predicate)
    }

    /// Decides [`Self::holds_now`] for an item with a record, a replacement or a condition.
    fn holds_in_detail(&self, target: Slot, predicate: Option<&Predicate>) -> bool {
        let item = self.current.item(target).filter(|item| item.is_created());
        let present = item.filter(|item| !self.awaits_recreation(item));
        let alias = self
            .alias_of(self.current.reference(target))
            .filter(|alias| alias.is_created());
        let Some(predicate) = predicate else {
            return present.or(alias).is_some();
        };
        present.or(alias).is_some()
            && item.into_iter().chain(alias).all(|item| {
                let next = item.next().filter(|_| item.state == State::Modifying);
                let mut values = std::iter::once(&item.spec).chain(next);
                values.all(|spec| self.holds(self.current.reference(target), predicate, &spec.value))
            })
    }

    fn problem(&self, id: Id, need: &Dependency, first: usize) -> Problem {
        let Some(&target) = self.course.need(id).get(first) else {
            return Problem::Missing;
        };
        let node = self.node(target);
        match (&node.verdict, need.predicate()) {
            (Verdict::Out(_), _) => Problem::Pending,
            (Verdict::Gone, _) if self.current.item(node.slot).is_some() => Problem::GoingAway,
            (_, Some(predicate)) if self.will_hold(target, None) => Problem::Condition(predicate.to_string()),
            _ if node.intent.is_some() => Problem::Pending,
            _ => Problem::Missing,
        }
    }
}

/// Queue of nodes by rank, then id. The initial nodes are sorted once and only iterated; few are added later.
struct Queue {
    first: std::iter::Peekable<std::vec::IntoIter<(u32, Id)>>,
    later: BinaryHeap<Reverse<(u32, Id)>>,
}

impl Queue {
    fn new(mut first: Vec<(u32, Id)>) -> Self {
        first.sort_unstable();
        Self {
            first: first.into_iter().peekable(),
            later: BinaryHeap::new(),
        }
    }

    fn add(&mut self, drawn: Option<(u32, Id)>) {
        self.later.extend(drawn.map(Reverse));
    }

    fn pop(&mut self) -> Option<Id> {
        let is_later_next = match (self.first.peek(), self.later.peek()) {
            (Some(first), Some(Reverse(later))) => later < first,
            (first, _) => first.is_none(),
        };
        let next = if is_later_next {
            self.later.pop().map(|Reverse(next)| next)
        } else {
            self.first.next()
        };
        next.map(|(_, id)| id)
    }
}

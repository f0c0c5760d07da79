//! Gates: the last check of a ready task against the current graph.

use std::ops::Range;
use std::sync::Arc;

use super::Planner;
use super::job::{Id, Job, Part, Stage, Verdict};
use super::slots::IdSet;
use super::ties::Tie;
use crate::dependency::Dependency;
use crate::item::{Item, Operation, Spec, State};
use crate::predicate::Predicate;
use crate::reason::Reason;
use crate::reference::Ref;
use crate::value::{Fingerprint, Value};

/// Targets that an item relies on when its operation starts.
#[derive(Debug, Default)]
pub(super) struct Footing {
    pub(super) relied: Vec<(usize, Ref)>,
    pub(super) witnessed: Vec<(Ref, Fingerprint)>,
}

impl<V: Value> Planner<'_, V> {
    /// Checks that an item may be created or changed now; returns the targets that it will rely on.
    pub(super) fn up_gate(&mut self, id: Id) -> Option<Footing> {
        let node = self.node(id);
        let intent = Arc::clone(node.intent.as_ref().filter(|_| node.verdict == Verdict::In)?);
        let item = self.current.item(node.slot);
        let failed =
            item.is_some_and(|item| item.state == State::Failed(Operation::Create) || item.is_unmade());
        // Checked against the graph of this moment: since the job was found, an operation of this item may have ended
        // otherwise (invariant 2).
        let fits = match node.job {
            Job::Create => item.is_none() || failed,
            Job::Remake => item.is_none(),
            _ => item.is_some_and(Item::is_created),
        };
        let can_finish = node.job != Job::Replace || !self.is_leant_on(id, false);
        if !fits || !can_finish || !self.is_target_replaced(id) || self.would_break_others(id, &intent) {
            return None;
        }
        let footing = self.footing(id, &intent)?;
        (!self.closes_cycle(id, &intent, &footing)).then_some(footing)
    }

    /// Returns true if the item can be neither replaced nor deleted, because a dependent stays in any case: directly,
    /// or through others that would have to be deleted too. If the item itself is deleted (`goes`), dependents without
    /// another target follow, and none may be on hold or wait.
    pub(super) fn is_leant_on(&mut self, id: Id, goes: bool) -> bool {
        let (mut seen, mut queue) = (IdSet::default(), vec![(id, goes)]);
        while let Some((id, goes)) = queue.pop() {
            for dependent in self.current_dependents(id) {
                if !self.stands(dependent) || self.tie(dependent, id) != Some(Tie::Relies) {
                    continue;
                }
                let node = self.node(dependent);
                let follows = goes && self.stays_throughout(dependent);
                let is_busy = goes && matches!(node.job, Job::Hold | Job::Wait | Job::Defer);
                let clings = follows && self.clings_to(dependent, id);
                if node.verdict == Verdict::Untouched || is_busy || clings {
                    return true;
                }
                let goes = node.job.is_interrupted() || (follows && self.rests_only_on(dependent, id));
                if (goes || node.job.has_down()) && seen.insert(dependent) {
                    queue.push((dependent, goes));
                }
            }
        }
        false
    }

    /// Returns true unless the item is only switched to a replacement that does not exist yet.
    fn is_target_replaced(&self, id: Id) -> bool {
        match (&self.node(id).reason, self.node(id).job) {
            (Some(Reason::TargetReplaced(target)), Job::Modify) => {
                let target = self.current.slot(target).and_then(|slot| self.course.known(slot));
                target.is_some_and(|target| self.node(target).up.stage == Stage::Done)
            }
            _ => true,
        }
    }

    /// Returns true if a modify would break the condition of an existing dependent.
    fn would_break_others(&mut self, id: Id, intent: &Arc<Spec<V>>) -> bool {
        if !self.changes_value(id) {
            return false;
        }
        let dependents = self.current_dependents(id);
        dependents
            .into_iter()
            .any(|dependent| self.stands(dependent) && self.breaks(dependent, id, &intent.value))
    }

    /// Chooses a target for each dependency; none if one is not satisfied.
    fn footing(&self, id: Id, intent: &Arc<Spec<V>>) -> Option<Footing> {
        let mut footing = Footing::default();
        if self.needs_all_alike(id) {
            let mut targets = self.course.need(id).iter();
            return targets
                .all(|&target| self.serves(target, None))
                .then_some(footing);
        }
        let old = self
            .current
            .item(self.node(id).slot)
            .filter(|_| self.node(id).job != Job::Replace);
        for (at, need, positions) in intent.placed_needs() {
            if need.is_order_only() || self.was_broken_before(id, need, positions.clone()) {
                continue;
            }
            let target = self.serving(id, old.and_then(|old| old.relied_on_by(need)), need, positions)?;
            let reference = self.ref_of(target);
            if need.width() > 1 {
                footing.relied.push((at, reference.clone()));
            }
            if need.recreates_when_modified() && !footing.witnessed.iter().any(|(seen, _)| seen == reference)
            {
                // One that was created against another value is recreated, if it is to rely on this target.
                let now = self.value_now(target).map(Value::fingerprint)?;
                footing.witnessed.push((reference.clone(), now));
            }
        }
        Some(footing)
    }

    /// Returns the target that satisfies a dependency now: preferably one that will not change, then one already relied
    /// on, then the first.
    fn serving(
        &self,
        id: Id,
        chosen: Option<&Ref>,
        need: &Dependency,
        positions: Range<usize>,
    ) -> Option<Id> {
        let is_left = |target: Id| self.course.moves.contains(&(id, target));
        let serving = self.alternatives(id, positions).filter(|&target| {
            let will_differ = is_left(target) || self.is_still_to_change(target);
            let would_recreate = need.recreates_when_modified() && will_differ;
            !would_recreate && self.serves(target, need.predicate())
        });
        serving.min_by_key(|&target| {
            (
                is_left(target),
                !self.node(target).calm,
                Some(self.ref_of(target)) != chosen,
            )
        })
    }

    /// Returns true if a target is still to get another value: items created against the present one would be
    /// recreated, by this call or the next.
    fn is_still_to_change(&self, target: Id) -> bool {
        let node = self.node(target);
        let is_open = matches!(node.up.stage, Stage::Waiting | Stage::Running | Stage::Stopped);
        let values = self.current.item(node.slot).zip(node.intent.as_ref());
        is_open && values.is_some_and(|(item, intent)| item.spec.value != intent.value)
    }

    /// Returns true if a target exists, stays, and satisfies the predicate with both its present and its new value.
    #[inline]
    pub(super) fn serves(&self, target: Id, predicate: Option<&Predicate>) -> bool {
        let node = self.node(target);
        // To rely on a target that goes later in this call would be to come up twice.
        let goes = match node.job {
            Job::Remake if node.down.stage == Stage::Failed => {
                let item = self.current.item(node.slot);
                item.is_none_or(|item| self.awaits_recreation(item))
            }
            Job::Remake => node.down.stage != Stage::Done,
            Job::Delete | Job::DeleteBoth | Job::Vanish => true,
            _ => matches!(node.verdict, Verdict::Out(_) | Verdict::Gone),
        };
        // Both now and afterwards: an item that came up for a moment would be taken down again in the same call.
        if goes || !self.holds_now(node.slot, predicate) {
            return false;
        }
        match (&node.verdict, &node.intent, predicate) {
            (Verdict::In, Some(intent), Some(predicate)) => {
                self.holds(self.ref_of(target), predicate, &intent.value)
            }
            _ => true,
        }
    }

    /// Returns the value of a target that dependents are created against: the replacement's, if the target is being
    /// replaced.
    fn value_now(&self, target: Id) -> Option<&V> {
        let node = self.node(target);
        if node.job == Job::Replace && node.up.stage == Stage::Done {
            return node.intent.as_ref().map(|intent| &intent.value);
        }
        let alias = self
            .alias_of(self.ref_of(target))
            .filter(|alias| alias.is_created() && alias.state != State::Failed(Operation::Delete));
        if let Some(alias) = alias.filter(|_| node.job == Job::Hold) {
            return Some(&alias.spec.value);
        }
        self.current.item(node.slot).map(|item| &item.spec.value)
    }

    /// Returns true if no existing dependent blocks the item's delete.
    pub(super) fn down_gate(&mut self, id: Id) -> bool {
        let dependents = self.current_dependents(id);
        dependents
            .into_iter()
            .all(|dependent| !self.blocks_delete(dependent, id))
    }

    pub(super) fn blocks_delete(&self, dependent: Id, id: Id) -> bool {
        if dependent == id || !self.stands(dependent) {
            return false;
        }
        let node = self.node(dependent);
        // Nothing depends on a replacement by its own name, so that it is on no circle.
        let tie = if self.course.circular.contains(&(id, dependent)) {
            self.ties(dependent, id)[1]
        } else {
            self.tie(dependent, id)
        };
        match tie {
            None | Some(Tie::Order) => false,
            // For the deletes of both every target counts, but not those of a replacement that stays.
            Some(Tie::Alternative) => {
                !self.course.waived.contains(&(id, dependent))
                    && node.job.has_down()
                    && !matches!(node.down.stage, Stage::Done | Stage::Failed)
                    && self.tie_of(node.slot, self.node(id).slot).is_some()
            }
            Some(Tie::Relies) if self.node(id).job == Job::Replace => !self.is_switched(dependent, id),
            Some(Tie::Relies) => true,
        }
    }

    /// Returns true if a dependent was switched to the replacement of an item, or created against it.
    pub(super) fn is_switched(&self, dependent: Id, id: Id) -> bool {
        let node = self.node(dependent);
        let created_since = node.job == Job::Remake && node.task(Part::Up).stage == Stage::Done;
        let alias = self
            .alias_of(self.ref_of(id))
            .and_then(|alias| alias.record.as_ref());
        let reference = self.ref_of(dependent);
        created_since || alias.is_some_and(|record| record.switched.contains(reference))
    }
}

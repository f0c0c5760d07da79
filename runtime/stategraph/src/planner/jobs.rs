//! Jobs: from the verdict on an item to the work to be done.

use std::sync::Arc;

use super::job::{Id, Job, Verdict};
use super::{Effect, Planner, same};
use crate::item::{Item, Operation, Spec, State, Timestamp};
use crate::operations::Ending;
use crate::reason::Reason;
use crate::reference::Ref;
use crate::value::Value;

impl<V: Value> Planner<'_, V> {
    /// Finds the jobs of all judged items, and asks which changes require a recreate.
    pub(super) fn ask(&mut self) {
        // Nodes are added while targets are looked up; those are not judged.
        for id in 0..self.course.nodes.len() as Id {
            self.assign(id);
        }
        for id in 0..self.course.nodes.len() as Id {
            if self.changes_value(id) && self.answer(id).is_none() && !self.rests(id) {
                self.ask_about(id);
            }
        }
    }

    /// Finds the job of one item.
    pub(super) fn assign(&mut self, id: Id) {
        let (job, reason) = self.job_of(id);
        let fixed = self.course.prospects.fixed(id);
        let node = self.course.node_mut(id);
        node.job = fixed.unwrap_or(job);
        node.reason = reason;
    }

    fn ask_about(&mut self, id: Id) {
        let node = self.node(id);
        let (Some(item), Some(intent)) = (self.current.item(node.slot), &node.intent) else {
            return;
        };
        let (reference, old, new) = (item.reference.clone(), Arc::clone(&item.spec), Arc::clone(intent));
        self.awaited.insert(reference.clone());
        self.effects.push(Effect::Ask { reference, old, new });
    }

    /// Returns true if the job is a modify that gives the item another value.
    pub(super) fn changes_value(&self, id: Id) -> bool {
        let node = self.node(id);
        node.job == Job::Modify
            && self
                .current
                .item(node.slot)
                .zip(node.intent.as_ref())
                .is_some_and(|(item, intent)| item.spec.value != intent.value)
    }

    /// Returns true if the handler says that the item must be recreated; none without an answer.
    pub(super) fn answer(&self, id: Id) -> Option<bool> {
        let reference = self.ref_of(id);
        self.options
            .answers
            .get(reference)
            .or_else(|| self.answers.get(reference))
            .copied()
    }

    fn job_of(&self, id: Id) -> (Job, Option<Reason>) {
        let node = self.node(id);
        if matches!(node.verdict, Verdict::Unseen | Verdict::Untouched) {
            return (Job::Rest, None);
        }
        let reference = self.ref_of(id);
        // Before all else: two operations on one item at a time would see each other's half-made work (invariant 3).
        if let Some(job) = self.job_under_way(reference) {
            return (job, None);
        }
        let item = self.current.item(node.slot);
        if item.is_some_and(|item| self.is_left_to_others(item)) {
            return (Job::Hold, None);
        }
        if let Some(alias) = self.alias_of(reference) {
            return self.job_with_alias(id, item, alias);
        }
        match (&node.verdict, &node.intent, item) {
            (Verdict::In, Some(_), None) => (Job::Create, Some(Reason::Intended)),
            (Verdict::In, Some(intent), Some(item)) => self.job_of_wanted(id, item, intent),
            (_, _, Some(item)) => self.job_of_unwanted(id, item),
            _ => (Job::Rest, None),
        }
    }

    /// Returns true if an item outside of the part failed and this call need not handle it: its create failed, or its
    /// delete is not due. Items displaced by the part itself are handled.
    fn is_left_to_others(&self, item: &Item<V>) -> bool {
        if self.intent.is_inside(&item.reference.base()) {
            return false;
        }
        let is_displaced = self.current.displaced_specs().contains_key(&item.reference)
            && self.intent.brings_back(&item.reference);
        let never_made = item.state == State::Failed(Operation::Create) || item.is_unmade();
        (never_made && !is_displaced)
            || (item.state == State::Failed(Operation::Delete) && !self.is_due(item))
    }

    /// Returns the job of an item with a running operation, which blocks any other until it returns.
    fn job_under_way(&self, reference: &Ref) -> Option<Job> {
        let running = self.operations.on_either(reference)?;
        Some(if running.ending == Ending::Abandoned {
            Job::Hold
        } else {
            Job::Wait
        })
    }

    pub(super) fn alias_of(&self, reference: &Ref) -> Option<&Item<V>> {
        self.current.alias_of(reference)
    }

    fn job_of_wanted(&self, id: Id, item: &Item<V>, intent: &Arc<Spec<V>>) -> (Job, Option<Reason>) {
        let attempts = item.failure().map_or(0, |failure| failure.attempts);
        let inside = self.intent.is_inside(&item.reference);
        let mut reason = Reason::ValueChanged;
        let state = match item.state {
            // What could not be deleted of it does not matter to the create.
            State::Failed(_) if item.is_unmade() => State::Failed(Operation::Create),
            state => state,
        };
        match state {
            // Another intent need not wait for the retry of the one that failed.
            State::Failed(Operation::Create) if !same(&item.spec, intent) => {
                return (Job::Create, Some(Reason::Intended));
            }
            State::Failed(Operation::Create) if self.is_due(item) => {
                return (Job::Create, Some(Reason::Retry(attempts)));
            }
            State::Failed(Operation::Create) => return (Job::Hold, None),
            State::Failed(_) if inside => {
                let unchanged = item.next().is_some_and(|next| same(next, intent));
                let is_early = unchanged && !self.is_due(item);
                // A recreation need not wait for its retry if it turns out to be given up.
                if is_early && !self.rests(id) {
                    return (Job::Hold, None);
                }
                reason = if unchanged && !is_early {
                    Reason::Retry(attempts)
                } else {
                    Reason::Reassert
                };
            }
            State::Failed(_) | State::Created => {}
            State::Creating | State::Modifying | State::Deleting | State::Unknown(_) => {
                return (Job::Hold, None);
            }
        }
        // A failed modify may have changed a part. Only another one makes sure of the value, though it reads as equal.
        let reassert = inside && item.state != State::Created;
        // Shared specs are equal, which is most of them: what was created has the spec that was intended.
        let is_shared = Arc::ptr_eq(&item.spec, intent);
        if !is_shared && item.spec.value != intent.value {
            (
                Job::Modify,
                Some(if reason == Reason::Reassert {
                    Reason::ValueChanged
                } else {
                    reason
                }),
            )
        } else if reassert {
            (Job::Modify, Some(reason))
        } else if (!is_shared && item.spec.needs != intent.needs) || self.is_record_stale(id, item, intent) {
            (Job::Relink, None)
        } else {
            (Job::Rest, None)
        }
    }

    /// Returns true if the record of the targets that the item relies on must change.
    fn is_record_stale(&self, id: Id, item: &Item<V>, intent: &Arc<Spec<V>>) -> bool {
        if self.needs_all_alike(id) {
            return false;
        }
        intent.placed_needs().any(|(at, need, positions)| {
            if need.is_order_only() {
                return false;
            }
            let relied = self.will_rely_on(id, item, need, positions.clone());
            let Some(relied) = relied else {
                return !self.was_broken_before(id, need, positions);
            };
            let target = self.ref_of(relied);
            (need.width() > 1 && item.relied_on(at) != Some(target))
                || (need.recreates_when_modified() && item.witnessed(target).is_none())
        })
    }

    /// Returns the target that an existing item will rely on: the present one, if it still serves.
    pub(super) fn will_rely_on(
        &self,
        id: Id,
        item: &Item<V>,
        need: &crate::dependency::Dependency,
        positions: std::ops::Range<usize>,
    ) -> Option<Id> {
        let serving = |target: &Id| self.will_hold(*target, need.predicate());
        let chosen = item.relied_on_by(need);
        let kept = self
            .alternatives(id, positions.clone())
            .find(|&target| Some(self.ref_of(target)) == chosen);
        kept.filter(serving)
            .or_else(|| self.alternatives(id, positions).find(serving))
    }

    /// Returns a target with `recreate_when_modified` whose value will differ from the one at the item's create.
    pub(super) fn other_witness(&self, id: Id) -> Option<Ref> {
        if self.needs_all_alike(id) {
            return None;
        }
        let node = self.node(id);
        let (item, intent) = (self.current.item(node.slot)?, node.intent.as_ref()?);
        intent.placed_needs().find_map(|(_, need, positions)| {
            if !need.recreates_when_modified() || need.is_order_only() {
                return None;
            }
            let relied = self.will_rely_on(id, item, need, positions)?;
            let target = self.ref_of(relied);
            if !self.is_concerned_by(id, relied) {
                return None;
            }
            let (seen, will_be) = (item.witnessed(target)?, self.value_to_be(relied)?.fingerprint());
            (seen != will_be).then(|| target.clone())
        })
    }

    /// Returns true if the call covers the item or this target: changes elsewhere are left to calls that cover them
    /// (S9).
    fn is_concerned_by(&self, id: Id, target: Id) -> bool {
        self.intent.is_inside(self.ref_of(id)) || self.intent.is_inside(self.ref_of(target))
    }

    /// Returns the value that an item will have after the call. An item on hold keeps its value; with an unfinished
    /// replacement the value is unknown.
    fn value_to_be(&self, id: Id) -> Option<&V> {
        let node = self.node(id);
        match (&node.verdict, &node.intent) {
            (Verdict::In, _) if matches!(node.job, Job::Hold | Job::Defer) => {
                let is_replaced = self.alias_of(self.ref_of(id)).is_some();
                let item = self.current.item(node.slot).filter(|_| !is_replaced);
                item.map(|item| &item.spec.value)
            }
            (Verdict::In, Some(intent)) => Some(&intent.value),
            _ => self.current.item(node.slot).map(|item| &item.spec.value),
        }
    }

    fn job_of_unwanted(&self, id: Id, item: &Item<V>) -> (Job, Option<Reason>) {
        let attempts = item.failure().map_or(0, |failure| failure.attempts);
        if self.vanishes(item) {
            return (Job::Vanish, None);
        }
        match item.state {
            State::Failed(Operation::Delete) if item.next().is_none() => {
                if self.is_due(item) {
                    (Job::Delete, Some(Reason::Retry(attempts)))
                } else {
                    (Job::Hold, None)
                }
            }
            State::Created | State::Failed(_) => (Job::Delete, Some(self.reason_to_go(id))),
            State::Creating | State::Modifying | State::Deleting | State::Unknown(_) => (Job::Hold, None),
        }
    }

    fn reason_to_go(&self, id: Id) -> Reason {
        match &self.node(id).verdict {
            Verdict::Out(unmet) => Reason::Unsatisfied(unmet.clone()),
            _ => Reason::NotIntended,
        }
    }

    /// Returns true if the external target with which the item vanishes is gone.
    fn vanishes(&self, item: &Item<V>) -> bool {
        if !item
            .spec
            .needs
            .iter()
            .any(crate::dependency::Dependency::is_deleted_with_external)
        {
            return false;
        }
        let relied = |at: usize, target: &Ref| {
            item.spec.needs[at].width() == 1 || item.relied_on(at).is_some_and(|chosen| chosen == target)
        };
        item.spec.targets().any(|(at, target)| {
            item.spec.needs[at].is_deleted_with_external()
                && relied(at, target)
                && self.current.get(target).is_none()
                && self
                    .intent
                    .graph()
                    .and_then(|graph| graph.get(target))
                    .is_none_or(Item::is_external)
        })
    }

    /// Returns the job of an item with a replacement from an earlier call, which is first finished or deleted. Another
    /// look finds what remains.
    fn job_with_alias(&self, id: Id, item: Option<&Item<V>>, alias: &Item<V>) -> (Job, Option<Reason>) {
        let node = self.node(id);
        let attempts = alias.failure().map_or(0, |failure| failure.attempts);
        let failed = |one: &&Item<V>| matches!(one.state, State::Failed(_));
        let mut failed = item.into_iter().chain([alias]).filter(failed);
        if failed.any(|one| self.waits_to_retry(id, one)) {
            return (Job::Hold, None);
        }
        let wanted = node.verdict == Verdict::In && alias.is_created();
        let begun = alias.is_turned_to();
        let matches = node
            .intent
            .as_ref()
            .is_some_and(|intent| same(intent, &alias.spec));
        match item {
            None if alias.is_created() => (Job::Adopt, Some(Reason::Replaced)),
            Some(_) if wanted && (matches || begun) => (Job::Replace, Some(Reason::Retry(attempts))),
            Some(item) if node.verdict != Verdict::In && item.is_created() => {
                (Job::DeleteBoth, Some(self.reason_to_go(id)))
            }
            None | Some(_) => (Job::DropAlias, Some(Reason::ReplacementFailed)),
        }
    }

    /// Returns true if the failed operation of an item is still intended, and its retry is not due.
    pub(super) fn waits_to_retry(&self, id: Id, item: &Item<V>) -> bool {
        let unchanged = match (item.next(), self.wanted(id)) {
            (Some(next), Some(intent)) => same(next, &intent),
            (None, None) => true,
            _ => false,
        };
        unchanged && !self.is_due(item)
    }

    /// Returns the intent of an item that should exist.
    pub(super) fn wanted(&self, id: Id) -> Option<Arc<Spec<V>>> {
        let node = self.node(id);
        node.intent.clone().filter(|_| node.verdict == Verdict::In)
    }

    /// Returns true if a retry of the item is due, or the item has not failed.
    pub(super) fn is_due(&self, item: &Item<V>) -> bool {
        let next = self.next_try(item);
        item.failure().is_none() || next.is_some_and(|next| next <= self.due_by())
    }

    /// Returns the time by which retries are due.
    pub(super) fn due_by(&self) -> Timestamp {
        self.options.due_by.unwrap_or(self.now)
    }

    /// Returns the time at which the policy of its type retries a failed item.
    pub(super) fn next_try(&self, item: &Item<V>) -> Option<Timestamp> {
        let retry = self.types.get(item.reference.type_name())?.retry;
        retry.next(item.failure()?)
    }

    /// Returns true if the delete of a recreation failed and will be retried. Items deleted before it stay away until
    /// then, because each retry would delete them again (S4). False for an item on a cycle (S10), or kept by a
    /// dependent that stays.
    pub(super) fn awaits_recreation(&self, item: &Item<V>) -> bool {
        let failed = item.state == State::Failed(Operation::Delete) && !item.is_unmade();
        let is_stuck = || {
            let intended = self.intent.graph();
            let at = intended.and_then(|graph| Some((graph, graph.slot(&item.reference)?)));
            at.is_some_and(|(graph, at)| graph.order().is_stuck(at))
        };
        let is_kept = || {
            let slot = self.current.slot(&item.reference);
            let node = slot.and_then(|slot| self.course.known(slot));
            node.is_some_and(|id| self.course.prospects.stays(id))
        };
        failed && item.next().is_some() && self.next_try(item).is_some() && !is_stuck() && !is_kept()
    }
}

//! Results of operations and observations, written to the current graph.

use std::sync::Arc;

use super::effects::Observed;
use super::job::{Job, Part, Stage};

use super::{Effect, Observing, Planner, same};
use crate::dependency::Dependency;
use crate::graph::Slot;
use crate::item::{Failure, Item, Operation, Record, Spec, State, Timestamp};
use crate::log::{Entry, Line};
use crate::operations::{Ending, OperationId, Running};
use crate::reference::Ref;
use crate::value::Value;

/// Error of an operation that was running when the process ended.
const INTERRUPTED: &str = "was interrupted";

/// Error, in the log, of an operation that was never started.
const NOT_STARTED: &str = "was not started";

/// Returns the number of failures with the same intent.
pub(super) fn attempts_with<V: PartialEq>(record: &Record<V>, intent: Option<&Arc<Spec<V>>>) -> u32 {
    let unchanged = match (&record.next, intent) {
        (Some(old), Some(new)) => same(old, new),
        (None, None) => true,
        _ => false,
    };
    record
        .failure
        .as_ref()
        .filter(|_| unchanged)
        .map_or(0, |failure| failure.attempts)
}

pub(super) fn failed<V>(record: &Record<V>, error: String, attempts: u32, now: Timestamp) -> Failure {
    let previous = record.failure.as_ref().map(|failure| failure.error.clone());
    Failure {
        error,
        previous,
        attempts: attempts.saturating_add(1),
        last: now,
    }
}

impl<V: Value> Planner<'_, V> {
    /// Handles the return of an operation, and updates its item.
    pub(super) fn ended(&mut self, id: OperationId, result: Result<(), String>) {
        let Some(running) = self.operations.end(id) else {
            return;
        };
        self.relations.remove(&id);
        // It has failed already, when its time was up. What it says now is too late: the item may have been judged by
        // that.
        if running.ending == Ending::Abandoned {
            return self.note_ended(id, &running.reference, Stage::Failed);
        }
        self.close(id, &running, result);
    }

    /// Handles an operation that was never started: like a failure, but not counted as an attempt.
    pub(super) fn dropped(&mut self, id: OperationId) {
        let Some(running) = self.operations.end(id) else {
            return;
        };
        self.relations.remove(&id);
        let at = self.at;
        if let Some(entry) = self.line_of(id, &running) {
            entry.end = Some(at);
            entry.error = Some(NOT_STARTED.to_owned());
        }
        if let Some(slot) = self.current.slot(&running.reference)
            && running.operation != Operation::Adopt
        {
            self.current
                .alter(slot, |item| item.state = State::Failed(running.operation));
            self.note_still_there(slot);
        }
        self.note_ended(id, &running.reference, Stage::Failed);
    }

    /// Records the end of an operation, in time or not.
    pub(super) fn close(&mut self, id: OperationId, running: &Running<V>, result: Result<(), String>) {
        let at = self.at;
        if let Some(entry) = self.line_of(id, running) {
            entry.end = Some(at);
            entry.error = result.as_ref().err().cloned();
        }
        let stage = if result.is_ok() {
            Stage::Done
        } else {
            Stage::Failed
        };
        match result {
            Ok(()) => {
                self.changes += 1;
                self.succeeded(running);
            }
            Err(error) => self.fail(
                &running.reference,
                running.operation,
                error,
                running.intent.as_ref(),
            ),
        }
        // The answer was about the value before. The next change of this item is another question.
        self.answers.remove(&running.reference);
        self.note_ended(id, &running.reference, stage);
    }

    /// Returns the log line of an operation, adding one if this call has not logged it yet.
    pub(super) fn open_line(&mut self, id: OperationId, running: &Running<V>) -> Line {
        if running.line != Line::None {
            return running.line;
        }
        let line = self.log.open(|| running.entry());
        if let Line::At(_) = line {
            self.logged.push(id);
        }
        line
    }

    fn line_of(&mut self, id: OperationId, running: &Running<V>) -> Option<&mut Entry> {
        let line = self.open_line(id, running);
        self.log.line(line)
    }

    /// Releases waiting tasks, or notes that the item must be looked at again.
    fn note_ended(&mut self, id: OperationId, reference: &Ref, stage: Stage) {
        let is_other = self.intent.follow(self.current, &reference.base());
        if let Some(done) = self.tasks.remove(&id) {
            if is_other {
                self.course.outdated.insert(done.node);
                self.dirty.insert(self.node(done.node).slot);
            }
            self.after_task(done, stage);
            return;
        }
        if stage == Stage::Done {
            self.remember_late_switch(reference);
        }
        let slot = self.current.pin(&reference.base());
        self.dirty.insert(slot);
    }

    fn after_task(&mut self, done: super::TaskId, stage: Stage) {
        let node = self.node(done.node);
        let (job, slot) = (node.job, node.slot);
        if done.part == Part::Finish && stage == Stage::Done {
            let (begun, replaced) = (self.node(done.node).up.stage == Stage::Done, job == Job::Replace);
            let is_adopted = begun && (!self.is_as_intended(slot, done.node) || self.may_be_recreated(slot));
            if !replaced || is_adopted {
                self.dirty.insert(slot);
            }
        }
        if done.part == Part::Up && job == Job::Replace && stage == Stage::Failed {
            self.replacement_failed(done.node);
        }
        if done.part == Part::Up && stage == Stage::Done {
            self.remember_switch(done.node);
        }
        if done.part == Part::Up && stage == Stage::Failed {
            self.note_other_witnesses(slot);
        }
        self.over(done, stage);
    }

    /// Marks dependents that were created against a value which this item failed to get: they are recreated against the
    /// present one (S6).
    fn note_other_witnesses(&mut self, slot: Slot) {
        let Some(item) = self.current.item(slot).filter(|item| item.is_created()) else {
            return;
        };
        let now = item.spec.value.fingerprint();
        let is_other = |dependent: &Slot| {
            let seen = self
                .current
                .item(*dependent)
                .and_then(|one| one.witnessed(&item.reference));
            seen.is_some_and(|seen| seen != now)
        };
        let dependents = self.current.dependents_of(slot).iter().copied();
        let others: Vec<Slot> = dependents.filter(is_other).collect();
        for other in others {
            let base = self.base_slot(other);
            self.dirty.insert(base);
        }
    }

    /// Returns true if an item depends on values of its targets, which may have changed since its replacement was
    /// created.
    fn may_be_recreated(&self, slot: Slot) -> bool {
        let item = self.current.item(slot);
        item.is_some_and(|item| item.spec.needs.iter().any(Dependency::recreates_when_modified))
    }

    /// Returns true if an adopted replacement matches the intent, which may have changed since an earlier call began
    /// it.
    pub(super) fn is_as_intended(&self, slot: Slot, id: super::job::Id) -> bool {
        let both = self.current.item(slot).zip(self.node(id).intent.as_ref());
        both.is_some_and(|(item, intent)| same(&item.spec, intent))
    }

    fn succeeded(&mut self, running: &Running<V>) {
        let reference = &running.reference;
        // Items have come and gone since it started, and the slot may be another's.
        let known = Some(running.slot).filter(|&slot| self.current.is_at(reference, slot));
        let Some(slot) = known.or_else(|| self.current.slot(reference)) else {
            return;
        };
        match running.operation {
            Operation::Create => {
                self.current.no_longer_displaced(reference);
                self.current.alter(slot, |item| Self::stand(item, running));
            }
            Operation::Modify => {
                if let Some(intent) = &running.intent {
                    self.current.respec(slot, Arc::clone(intent));
                }
                self.current.alter(slot, |item| Self::stand(item, running));
            }
            Operation::Delete => {
                self.current.take(slot);
                self.replacement_gone(reference);
            }
            Operation::Adopt => self.adopted(slot, reference),
        }
    }

    fn stand(item: &mut Item<V>, running: &Running<V>) {
        item.state = State::Created;
        item.record(|record| {
            *record = Record {
                relied: running.relied.clone(),
                witnessed: running.witnessed.clone(),
                ..Record::default()
            }
        });
    }

    /// Forgets the displacement of an item that still exists.
    fn note_still_there(&mut self, slot: Slot) {
        let item = self.current.item(slot).filter(|item| item.is_created());
        if let Some(reference) = item.map(|item| item.reference.clone()) {
            self.current.no_longer_displaced(&reference);
        }
    }

    fn adopted(&mut self, slot: Slot, alias: &Ref) {
        // What leads through the item leads elsewhere now.
        self.relations.clear();
        let path = self.current.group_of(alias).cloned().unwrap_or_default();
        let Some(mut item) = self.current.take(slot) else {
            return;
        };
        item.reference = alias.base();
        item.state = State::Created;
        item.record(|record| {
            (record.switched, record.failure, record.next) = (Vec::new(), None, None);
            record.needs_recreate = None;
        });
        let reference = item.reference.clone();
        let group = self.current.intern_group(&path);
        self.current.place(group, item);
        self.current.no_longer_displaced(&reference);
    }

    /// Marks an item's operation as failed.
    pub(super) fn fail(
        &mut self,
        reference: &Ref,
        operation: Operation,
        error: String,
        intent: Option<&Arc<Spec<V>>>,
    ) {
        let at = self.at;
        let Some(slot) = self.current.slot(reference) else {
            return;
        };
        self.failed_now.insert(reference.clone());
        self.current.alter(slot, |item| {
            item.state = State::Failed(operation);
            item.record(|record| {
                let attempts = attempts_with(record, intent);
                record.failure = Some(failed(record, error, attempts, at));
                record.next = intent.cloned();
            });
        });
        self.note_still_there(slot);
    }

    /// Marks an item whose delete failed as one whose modify failed, once the replacement that it was to make way for
    /// is gone (S4).
    fn replacement_gone(&mut self, alias: &Ref) {
        let old = self.current.slot(&alias.base()).filter(|_| alias.is_alias());
        let Some(slot) = old else { return };
        let makes_way =
            |item: &Item<V>| item.state == State::Failed(Operation::Delete) && item.next().is_some();
        if self.current.item(slot).is_some_and(makes_way) {
            self.current
                .alter(slot, |item| item.state = State::Failed(Operation::Modify));
        }
    }

    /// Marks the old item as one whose modify failed.
    fn replacement_failed(&mut self, id: super::job::Id) {
        let (reference, intent) = (self.ref_of(id).clone(), self.node(id).intent.clone());
        let error = self.current.get(&reference.alias()).and_then(Item::failure);
        let error = error.map_or_else(String::new, |failure| failure.error.clone());
        self.fail(&reference, Operation::Modify, error, intent.as_ref());
    }

    /// Records on each replacement that this dependent was switched to it.
    pub(super) fn remember_switch(&mut self, id: super::job::Id) {
        if self.current.attention().next().is_none() {
            return;
        }
        if let Some(intent) = self.node(id).intent.clone() {
            self.note_switch(self.ref_of(id).clone(), &intent);
        }
    }

    /// Records the switch like [`Self::remember_switch`], for an operation that an earlier call started.
    fn remember_late_switch(&mut self, reference: &Ref) {
        let item = self
            .current
            .get(reference)
            .filter(|item| !item.reference.is_alias());
        let Some(spec) = item.map(|item| Arc::clone(&item.spec)) else {
            return;
        };
        self.note_switch(reference.clone(), &spec);
        for (_, target) in spec.targets() {
            self.intent.follow(self.current, target);
        }
    }

    fn note_switch(&mut self, reference: Ref, spec: &Spec<V>) {
        for (at, target) in spec.targets() {
            let alias = self.current.slot(&target.alias());
            let Some(slot) = alias.filter(|&alias| !self.is_given_up(target, alias)) else {
                continue;
            };
            if spec.needs[at].is_order_only() {
                continue;
            }
            self.current.alter(slot, |alias| {
                alias.record(|record| record.switched.push(reference.clone()));
            });
        }
    }

    /// Returns true if a replacement is abandoned and its item stays, so that new dependents rely on the item.
    fn is_given_up(&self, reference: &Ref, alias: Slot) -> bool {
        let node = self
            .current
            .slot(reference)
            .and_then(|slot| self.course.known(slot));
        match node.map(|id| self.node(id).job) {
            Some(Job::Replace | Job::Adopt) => false,
            Some(Job::DropAlias | Job::DeleteBoth) => true,
            _ => {
                let is_going = |alias: &Item<V>| {
                    matches!(alias.state, State::Deleting | State::Failed(Operation::Delete))
                        && !alias.is_turned_to()
                };
                self.current.item(alias).is_some_and(is_going)
            }
        }
    }

    /// Observes items whose operation is not running any more, and those marked unknown.
    pub(super) fn observe_unknown(&mut self) {
        let open: Vec<Ref> = self
            .current
            .attention()
            .map(|slot| self.current.reference(slot).clone())
            .collect();
        for reference in open {
            let Some(item) = self.current.get(&reference) else {
                continue;
            };
            let known = Arc::clone(&item.spec);
            let operation = match item.state {
                State::Unknown(operation) => operation,
                state if state.operation().is_some() && self.operations.on(&reference).is_none() => {
                    state.operation()
                }
                _ => continue,
            };
            let observes = self
                .types
                .get(reference.type_name())
                .is_some_and(|item_type| item_type.observes);
            if observes && self.options.observe == Observing::Allowed {
                self.mark_unknown(&reference, operation);
                self.awaited.insert(reference.clone());
                self.effects.push(Effect::Observe { reference, known });
            } else {
                self.observed_as(&reference, operation, Observed::Unclear(INTERRUPTED.to_owned()));
            }
        }
    }

    fn mark_unknown(&mut self, reference: &Ref, operation: Option<Operation>) {
        if let Some(slot) = self.current.slot(reference) {
            self.current
                .alter(slot, |item| item.state = State::Unknown(operation));
        }
    }

    pub(super) fn observed(&mut self, reference: &Ref, found: Observed<V>) {
        if !self.awaited.remove(reference) {
            return;
        }
        if let Some(State::Unknown(operation)) = self.current.get(reference).map(Item::state) {
            self.observed_as(reference, operation, found);
        }
    }

    fn observed_as(&mut self, reference: &Ref, operation: Option<Operation>, found: Observed<V>) {
        let Some(slot) = self.current.slot(reference) else {
            return;
        };
        self.observed_at(slot, reference, operation, found);
        self.intent.follow(self.current, &reference.base());
    }

    fn observed_at(&mut self, slot: Slot, reference: &Ref, operation: Option<Operation>, found: Observed<V>) {
        match (found, operation) {
            (Observed::Present(value), _) => self.found(slot, value),
            (Observed::Absent, _) => drop(self.current.take(slot)),
            (Observed::Unclear(error), Some(operation)) => {
                let intent = self.current.item(slot).and_then(Item::next).cloned();
                self.fail(reference, operation, error, intent.as_ref());
            }
            // Nothing was under way: it is taken to be what it was.
            (Observed::Unclear(_), None) => self.current.alter(slot, |item| item.state = State::Created),
        }
    }

    /// Updates an item to its observed value.
    fn found(&mut self, slot: Slot, value: V) {
        let Some(item) = self.current.item(slot) else {
            return;
        };
        // The operation had its effect before the process died: its intent holds, dependencies included.
        let next = item.next().filter(|next| next.value == value).cloned();
        let same_value = item.spec.value == value;
        let spec = match next {
            Some(next) => next,
            None if same_value => Arc::clone(&item.spec),
            None => Arc::new(Spec {
                value,
                needs: item.spec.needs.clone(),
            }),
        };
        self.current.respec(slot, spec);
        self.current.alter(slot, |item| {
            item.state = State::Created;
            item.record(|record| {
                (record.next, record.failure) = (None, None);
                (record.unmade, record.needs_recreate) = (false, None);
            });
        });
        self.note_still_there(slot);
    }
}

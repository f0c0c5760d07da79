//! Items that must be recreated or replaced because others change.
//!
//! A job only ever becomes more thorough here (rest, relink, modify, replace, remake), and whatever
//! becomes so is looked at once more: the end does not depend on the order.

use std::sync::Arc;

use super::Planner;
use super::job::{Id, Job, Verdict};
use crate::graph::Slot;
use crate::item::{Operation, State};
use crate::reason::Reason;
use crate::reference::Ref;
use crate::types::ReplaceOrder;
use crate::value::Value;

/// Fate of a dependent when the new value of its target breaks its condition.
enum Broken {
    /// The dependent can be switched to its new dependencies first.
    MovesFirst,
    /// The dependent must be deleted first.
    GoesFirst,
}

impl<V: Value> Planner<'_, V> {
    /// Applies the handlers' answers, and follows their consequences and those of the jobs found so far.
    pub(super) fn remake(&mut self) {
        for id in 0..self.course.nodes.len() as Id {
            self.fail_unanswered(id);
        }
        self.foresee();
    }

    /// Follows the consequences of the answers and of the jobs found so far.
    pub(super) fn raise_all(&mut self) {
        let mut queue: Vec<Id> = Vec::new();
        // All that stays on hold first: it recreates nothing.
        self.hold_back();
        for id in 0..self.course.nodes.len() as Id {
            if self.changes_value(id) && self.answer(id) == Some(true) {
                self.recreate(id, Reason::NeedsRecreate, &mut queue);
            }
        }
        for id in 0..self.course.nodes.len() as Id {
            if let Some(target) = self.recreating_target(id) {
                self.recreate(id, Reason::TargetModified(target), &mut queue);
            }
            let is_insisted = !self.insisted.is_empty() && self.insisted.contains(self.ref_of(id));
            if is_insisted && self.stays_throughout(id) {
                self.raise(id, Job::Remake, Reason::InTheWay, &mut queue);
            }
            // Of a replacement that an earlier look began, some dependents may be left to turn.
            let job = self.node(id).job;
            if job.is_interrupted() || job == Job::Replace || self.changes_value(id) {
                queue.push(id);
            }
        }
        self.follow(queue);
    }

    fn fail_unanswered(&mut self, id: Id) {
        if self.unanswered.is_empty() || !self.changes_value(id) {
            return;
        }
        if let Some(error) = self.unanswered.remove(&self.ref_of(id).clone()) {
            self.fail_unasked(id, error);
        }
    }

    /// Records the failure of the question whether a change requires a recreate, as a failed modify, or as the failed
    /// delete that was to be retried. Items that the recreation has deleted stay deleted (S4).
    fn fail_unasked(&mut self, id: Id, error: String) {
        self.course.prospects.note_unasked(id);
        let node = self.course.node_mut(id);
        node.job = Job::Hold;
        let (slot, intent) = (node.slot, node.intent.clone());
        let item = self.current.item(slot);
        let operation = if item.is_some_and(|item| self.awaits_recreation(item)) {
            Operation::Delete
        } else {
            Operation::Modify
        };
        let now = self.now;
        self.failed_now.insert(self.ref_of(id).clone());
        self.current.alter(slot, |item| {
            item.record(|record| {
                let attempts = super::settle::attempts_with(record, intent.as_ref());
                record.next = intent;
                record.needs_recreate = None;
                record.failure = Some(super::settle::failed(record, error, attempts, now));
            });
            item.state = State::Failed(operation);
        });
    }

    pub(super) fn recreating_target(&self, id: Id) -> Option<Ref> {
        let node = self.node(id);
        let stays = matches!(node.job, Job::Rest | Job::Relink | Job::Modify) && node.verdict == Verdict::In;
        if stays { self.other_witness(id) } else { None }
    }

    fn recreate(&mut self, id: Id, reason: Reason, queue: &mut Vec<Id>) {
        let order = self
            .types
            .get(self.ref_of(id).type_name())
            .map(|item_type| item_type.replace);
        let job = if order == Some(ReplaceOrder::CreateFirst) {
            Job::Replace
        } else {
            Job::Remake
        };
        self.raise(id, job, reason, queue);
    }

    /// Makes a job more thorough, never less.
    pub(super) fn raise(&mut self, id: Id, job: Job, reason: Reason, queue: &mut Vec<Id>) {
        let thoroughness = |job: Job| match job {
            Job::Rest => Some(0),
            Job::Relink => Some(1),
            Job::Modify => Some(2),
            Job::Replace => Some(3),
            Job::Remake => Some(4),
            _ => None,
        };
        // What was left of an earlier replacement goes too; then the item is looked at again.
        let leftover = job == Job::Remake && self.alias_of(self.ref_of(id)).is_some();
        let slot = self.node(id).slot;
        let leftover = leftover.then_some(if self.is_as_intended(slot, id) {
            Job::DropAlias
        } else {
            Job::DeleteBoth
        });
        let (Some(old), Some(new)) = (thoroughness(self.node(id).job), thoroughness(job)) else {
            return;
        };
        // Only upwards, so that following what a job entails ends and does not depend on where it begins.
        if new <= old {
            return;
        }
        let job = leftover.unwrap_or(job);
        if let Some(instead) = self.course.prospects.refuse(id, job) {
            self.course.node_mut(id).job = instead;
            return;
        }
        let node = self.course.node_mut(id);
        (node.job, node.reason) = (job, Some(reason));
        queue.push(id);
    }

    pub(super) fn follow(&mut self, mut queue: Vec<Id>) {
        while let Some(id) = queue.pop() {
            let job = self.node(id).job;
            for dependent in self.current_dependents(id) {
                self.draw_in(dependent);
                if !self.stays_throughout(dependent) {
                    continue;
                }
                if job.is_interrupted() && self.rests_only_on(dependent, id) {
                    let reason = Reason::TargetRecreated(self.ref_of(id).clone());
                    self.raise(dependent, Job::Remake, reason, &mut queue);
                }
                if job == Job::Replace {
                    self.turn(dependent, id, &mut queue);
                }
                if matches!(job, Job::Modify | Job::Replace) {
                    self.protect(dependent, id, &mut queue);
                }
            }
        }
    }

    /// Judges a dependent that the survey did not look at.
    fn draw_in(&mut self, id: Id) {
        if self.node(id).verdict == Verdict::Unseen {
            self.judge_late(id);
            self.assign(id);
        }
    }

    /// Returns true if an item exists, stays, and is not deleted in between.
    pub(super) fn stays_throughout(&self, id: Id) -> bool {
        let node = self.node(id);
        node.verdict == Verdict::In
            && matches!(node.job, Job::Rest | Job::Relink | Job::Modify | Job::Replace)
            && self.current.item(node.slot).is_some_and(|item| item.is_created())
    }

    /// Returns true if an intended dependency of an item has no other target that stays.
    pub(super) fn rests_only_on(&self, id: Id, target: Id) -> bool {
        self.needs_on(id, target).any(|(need, positions)| {
            !self.alternatives(id, positions).any(|other| {
                other != target
                    && !self.node(other).job.is_interrupted()
                    && self.will_hold(other, need.predicate())
                    && !self.waits_for_adoption(id, other)
            })
        })
    }

    /// Switches a dependent to the replacement of its target.
    fn turn(&mut self, id: Id, target: Id, queue: &mut Vec<Id>) {
        let Some(item) = self.current.item(self.node(id).slot) else {
            return;
        };
        let reference = self.ref_of(target).clone();
        // Turned already, by this call or one before: once more would be an operation without effect.
        if self.is_switched(id, target) {
            return;
        }
        let (mut relies, mut recreates) = (false, false);
        for (need, _) in self.needs_on(id, target) {
            if need.width() == 1 || item.relied_on_by(need) == Some(&reference) {
                relies = true;
                recreates |= need.recreates_when_modified();
            }
        }
        // Outside of a part a failure is no reason to wait (S9), but what failed in being turned is.
        let waits = item.state == State::Failed(Operation::Modify) && self.waits_to_retry(id, item);
        if waits && (recreates || relies) {
            self.course.node_mut(id).job = Job::Hold;
        } else if recreates {
            self.recreate(id, Reason::TargetModified(reference), queue);
        } else if relies {
            self.raise(id, Job::Modify, Reason::TargetReplaced(reference), queue);
        }
    }

    /// Ensures that no condition of an existing dependent is broken.
    fn protect(&mut self, id: Id, target: Id, queue: &mut Vec<Id>) {
        let reference = self.ref_of(target).clone();
        match self.broken(id, target) {
            Some(Broken::GoesFirst) => self.raise(id, Job::Remake, Reason::ConditionBroken(reference), queue),
            // Old and new stand side by side, and the old one goes only when all are turned away from it.
            Some(Broken::MovesFirst) if self.node(target).job == Job::Replace => {}
            Some(Broken::MovesFirst) => {
                if self.node(id).job == Job::Rest {
                    self.course.node_mut(id).job = Job::Relink;
                }
                self.course.moves.insert((id, target));
            }
            None => {}
        }
    }

    fn broken(&self, id: Id, target: Id) -> Option<Broken> {
        let new = Arc::clone(self.node(target).intent.as_ref()?);
        if !self.breaks(id, target, &new.value) {
            return None;
        }
        let old = &self.current.item(self.node(target).slot)?.spec.value;
        let reference = self.ref_of(target);
        self.node(id).intent.as_ref()?;
        let can_move = self.needs_on(id, target).all(|(need, positions)| {
            let fits = |value: &V| {
                need.predicate()
                    .is_none_or(|one| self.holds(reference, one, value))
            };
            // It would be turned to a value that is about to change as well, and recreated for that later.
            let would_recreate = |other: Id| need.recreates_when_modified() && self.changes_value(other);
            (fits(old) && fits(&new.value) && !need.recreates_when_modified())
                || self.alternatives(id, positions).any(|other| {
                    other != target && self.will_hold(other, need.predicate()) && !would_recreate(other)
                })
        });
        Some(if can_move {
            Broken::MovesFirst
        } else {
            Broken::GoesFirst
        })
    }

    /// Returns true if a target's new value would break a condition of an item, or of its replacement, that holds now.
    pub(super) fn breaks(&self, id: Id, target: Id, new: &V) -> bool {
        let alias = self
            .alias_of(self.ref_of(id))
            .and_then(|alias| self.current.slot(&alias.reference));
        let target = self.node(target).slot;
        std::iter::once(self.node(id).slot)
            .chain(alias)
            .any(|slot| self.breaks_at(slot, target, new))
    }

    fn breaks_at(&self, slot: Slot, target: Slot, new: &V) -> bool {
        if self.current.is_plain(slot) {
            return false;
        }
        let (Some(item), Some(old)) = (self.current.item(slot), self.current.item(target)) else {
            return false;
        };
        let mut edges = item
            .spec
            .targets()
            .zip(self.current.edges(slot))
            .filter(|(_, edge)| *edge == target);
        edges.any(|((at, reference), _)| {
            let need = &item.spec.needs[at];
            let breaks = |predicate| {
                self.holds(reference, predicate, &old.spec.value) && !self.holds(reference, predicate, new)
            };
            !need.is_order_only() && self.relies(item, at, reference) && need.predicate().is_some_and(breaks)
        })
    }
}

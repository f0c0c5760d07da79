//! The report of a call: its log and its status.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Planner;
use super::job::{Id, Job, Stage, Verdict};
use crate::item::{Item, State, Timestamp};
use crate::log::Log;
use crate::reason::{Blocker, Problem, Unmet};
use crate::reference::Ref;
use crate::status::Status;
use crate::value::Value;

impl<V: Value> Planner<'_, V> {
    /// Returns the status after the call.
    pub fn status(&self) -> Status {
        Status {
            held: self.held(),
            failed: self.failed(),
            running: self.under_way(),
            cycles: self
                .intent
                .graph()
                .map_or_else(Vec::new, |graph| graph.order().cycles().to_vec()),
            displaced: self.current.displaced().cloned().collect(),
            next: self.next_time(),
        }
    }

    /// Returns the log so far.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Ends the call; returns its log and status.
    pub fn into_report(mut self) -> (Log, Status) {
        let status = self.status();
        self.log.sort(std::mem::take(&mut self.logged));
        (self.log, status)
    }

    /// Returns every answer of a handler that the call relied on.
    pub fn answers(&self) -> &BTreeMap<Ref, bool> {
        &self.answers
    }

    fn held(&self) -> Vec<(Ref, Blocker)> {
        let ids = 0..self.course.nodes.len() as Id;
        let mut held: Vec<_> = ids
            .filter_map(|id| self.held_by(id).map(|held| (self.ref_of(id).clone(), held)))
            .collect();
        held.sort_by(|left, right| left.0.cmp(&right.0));
        held
    }

    fn held_by(&self, id: Id) -> Option<Blocker> {
        let node = self.node(id);
        let tasks = [&node.down, &node.up, &node.finish];
        let any = |stage: Stage| tasks.iter().any(|task| task.stage == stage);
        let is_outside = !self.intent.is_inside(self.ref_of(id));
        match (&node.verdict, node.job) {
            (_, Job::Defer) => Some(self.waits_for(id).map_or(Blocker::Stopped, Blocker::Running)),
            (_, Job::Hold) if self.is_held_up(id) => Some(Blocker::Stopped),
            (_, Job::Hold) if is_outside && self.operations.on_either(self.ref_of(id)).is_none() => None,
            (Verdict::Untouched, _) if node.intent.is_some() => Some(Blocker::Cycle),
            (_, Job::Hold) => Some(self.operations.on_either(self.ref_of(id)).map_or_else(
                || self.held_by_failure(id),
                |running| Blocker::Running(running.reference.clone()),
            )),
            (_, Job::Wait) => Some(Blocker::Running(self.ref_of(id).clone())),
            _ if any(Stage::Failed) => Some(Blocker::Failed),
            _ if any(Stage::Running) => Some(Blocker::Running(self.ref_of(id).clone())),
            _ if any(Stage::Stopped) => Some(Blocker::Stopped),
            _ if any(Stage::Waiting) => Some(self.waits_for(id).map_or(Blocker::Stopped, Blocker::Running)),
            (Verdict::Out(unmet), _) => Some(Blocker::Pending(self.unmet_now(unmet))),
            _ if self.is_expected(id) => Some(Blocker::Absent),
            _ => None,
        }
    }

    /// Returns true if an item is in order and stays only because of a dependent.
    fn is_held_up(&self, id: Id) -> bool {
        self.course.prospects.fixed(id).is_some() && self.held_by_failure(id) == Blocker::Stopped
    }

    /// Returns the blocker of an item on hold: its own failure, or that of another item.
    fn held_by_failure(&self, id: Id) -> Blocker {
        let mut own = self.current.item(self.node(id).slot).into_iter();
        let is_good =
            own.all(|item| item.state == State::Created) && self.alias_of(self.ref_of(id)).is_none();
        if is_good {
            Blocker::Stopped
        } else {
            Blocker::Failed
        }
    }

    /// Returns true if an item is external, intended and missing.
    fn is_expected(&self, id: Id) -> bool {
        let node = self.node(id);
        let intended = self.intent.graph().zip(node.origin);
        let item = intended.and_then(|(graph, origin)| graph.item(origin));
        item.is_some_and(Item::is_external) && self.current.item(node.slot).is_none()
    }

    /// Returns the dependencies that an item lacks after the call. A target that was about to be deleted counts as
    /// missing by now.
    fn unmet_now(&self, unmet: &[Unmet]) -> Vec<Unmet> {
        let mut unmet = unmet.to_vec();
        for one in &mut unmet {
            let is_there = one
                .targets
                .iter()
                .any(|target| self.current.get(target).is_some());
            if one.problem == Problem::GoingAway && !is_there {
                one.problem = Problem::Missing;
            }
        }
        unmet
    }

    /// Returns the nearest item with a running operation, along the edges of both graphs, if any.
    fn waits_for(&self, id: Id) -> Option<Ref> {
        if self.operations.is_empty() {
            return None;
        }
        let start = self.ref_of(id);
        let mut seen = BTreeSet::from([start]);
        let mut queue = VecDeque::from([start]);
        while let Some(at) = queue.pop_front() {
            if self.operations.on_either(at).is_some() {
                return Some(at.clone());
            }
            for graph in std::iter::once(&*self.current).chain(self.intent.graph()) {
                let Some(slot) = graph.slot(at) else { continue };
                let near = graph.edges(slot).chain(graph.dependents_of(slot).iter().copied());
                let near = near.map(|slot| graph.reference(slot));
                queue.extend(near.filter(|near| seen.insert(near)));
            }
            queue.extend(self.about_to_need(at).filter(|near| seen.insert(near)));
        }
        None
    }

    fn open_items(&self) -> impl Iterator<Item = &Item<V>> {
        self.current
            .attention()
            .filter_map(|slot| self.current.item(slot))
    }

    fn failed(&self) -> Vec<(Ref, crate::item::Operation, String)> {
        let failed = self
            .open_items()
            .filter_map(|item| match (item.state, item.failure()) {
                (State::Failed(operation), Some(failure)) => {
                    Some((item.reference.clone(), operation, failure.error.clone()))
                }
                _ => None,
            });
        let mut failed: Vec<_> = failed.collect();
        failed.sort();
        failed
    }

    fn under_way(&self) -> Vec<(Ref, crate::item::Operation)> {
        let mut refs: Vec<_> = self
            .operations
            .iter()
            .map(|(_, running)| (running.reference.clone(), running.operation))
            .collect();
        refs.sort();
        refs
    }

    /// Returns the earliest time at which a retry is due or a cancelled operation counts as failed.
    ///
    /// A retry that was due when the call began and was not made waits for something else than a time: an
    /// operation in the background, another retry, a change of the intent. Its time would only make the
    /// caller spin.
    fn next_time(&self) -> Option<Timestamp> {
        // An item whose operation has not returned is tried again when it has.
        let waits = |item: &&Item<V>| {
            matches!(item.state, State::Failed(_)) && self.operations.on(&item.reference).is_none()
        };
        let retries = self.open_items().filter(waits).filter_map(|item| {
            let is_open = self.is_halted || self.failed_now.contains(&item.reference);
            let next = self.next_try(item).filter(|_| !self.is_stuck(item))?;
            (is_open || next > self.due_by()).then_some(next)
        });
        retries.chain(self.operations.next_deadline()).min()
    }

    /// Returns true if an item is on a cycle of the intended graph, or depends on one.
    fn is_stuck(&self, item: &Item<V>) -> bool {
        let intended = self.intent.graph();
        let origin = intended.and_then(|graph| graph.slot(&item.reference.base()));
        intended
            .zip(origin)
            .is_some_and(|(graph, at)| graph.order().is_stuck(at))
    }
}

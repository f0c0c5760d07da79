//! What a call has to say at its end.

use std::collections::{BTreeMap, BTreeSet};

use super::Planner;
use super::course::{Id, Job, Stage, Verdict};
use crate::item::{Item, State, Timestamp};
use crate::log::Log;
use crate::operations::Ending;
use crate::reason::Held;
use crate::reference::Ref;
use crate::status::Status;
use crate::value::Value;

impl<V: Value> Planner<'_, V> {
    /// How things stand.
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

    /// What was done so far.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Ends the call.
    pub fn into_report(self) -> (Log, Status) {
        let status = self.status();
        (self.log, status)
    }

    /// Every answer of a handler that the call relied on.
    pub fn answers(&self) -> &BTreeMap<Ref, bool> {
        &self.answers
    }

    fn held(&self) -> Vec<(Ref, Held)> {
        let ids = 0..self.course.nodes.len() as Id;
        let mut held: Vec<_> = ids
            .filter_map(|id| self.held_by(id).map(|held| (self.ref_of(id).clone(), held)))
            .collect();
        held.sort_by(|left, right| left.0.cmp(&right.0));
        held
    }

    fn held_by(&self, id: Id) -> Option<Held> {
        let node = self.node(id);
        let tasks = [&node.down, &node.up, &node.finish];
        let any = |stage: Stage| tasks.iter().any(|task| task.stage == stage);
        match (&node.verdict, node.job) {
            (Verdict::Untouched, _) if node.intent.is_some() => Some(Held::Cycle),
            (_, Job::Hold) => Some(
                self.operations
                    .on(self.ref_of(id))
                    .map_or(Held::Failed, |running| Held::Running(running.reference.clone())),
            ),
            (_, Job::Wait) => Some(Held::Running(self.ref_of(id).clone())),
            _ if any(Stage::Failed) => Some(Held::Failed),
            _ if any(Stage::Running) => Some(Held::Running(self.ref_of(id).clone())),
            _ if any(Stage::Stopped) => Some(Held::Stopped),
            _ if any(Stage::Waiting) => Some(Held::Running(self.waits_for(id))),
            (Verdict::Out(unmet), _) => Some(Held::Pending(unmet.clone())),
            _ => None,
        }
    }

    /// An item with an operation under way that this one has to wait for.
    fn waits_for(&self, id: Id) -> Ref {
        let mut seen = BTreeSet::from([id]);
        let mut queue = vec![id];
        while let Some(at) = queue.pop() {
            let node = self.node(at);
            if at != id
                && (node.job == Job::Wait
                    || [&node.down, &node.up, &node.finish]
                        .iter()
                        .any(|task| task.stage == Stage::Running))
            {
                return self.ref_of(at).clone();
            }
            let current = self
                .current
                .edges(node.slot)
                .chain(self.current.dependents_of(node.slot).iter().copied());
            let near = current
                .filter_map(|slot| self.course.known(slot))
                .chain(self.course.need(at).iter().copied());
            queue.extend(near.filter(|near| seen.insert(*near)));
        }
        self.ref_of(id).clone()
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
        let running = self
            .operations
            .iter()
            .filter(|(_, running)| running.ending != Ending::Abandoned);
        let mut refs: Vec<_> = running
            .map(|(_, running)| (running.reference.clone(), running.operation))
            .collect();
        refs.sort();
        refs
    }

    fn next_time(&self) -> Option<Timestamp> {
        // An item whose operation has not returned is told about when it does.
        let waits = |item: &&Item<V>| {
            matches!(item.state, State::Failed(_)) && self.operations.on(&item.reference).is_none()
        };
        let retries = self.open_items().filter(waits).filter_map(|item| {
            let retry = self.types.get(item.reference.type_name())?.retry;
            retry.next(item.failure()?)
        });
        retries.chain(self.operations.next_deadline()).min()
    }
}

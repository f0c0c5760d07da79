//! Operations that no call waits for: when they end, and how they are ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::Instant;

use super::{Cancellable, Desk, Executor, lock};
use crate::item::{Operation, Timestamp};
use crate::message::Message;
use crate::operations::OperationId;
use crate::reference::Ref;
use crate::value::Value;

impl<V: Value> Executor<V> {
    /// Waits for the end of an operation in the background, or of its time to react to a cancel, and returns the
    /// name of the graph to converge again. A graph is named once, however many of its operations have ended since.
    ///
    /// Cancel safe: the next caller gets the ends that came while none waited.
    pub async fn ended(&self) -> Option<String> {
        loop {
            if let Some(graph) = self.notices.take() {
                return Some(graph);
            }
            let next = self
                .desks()
                .iter()
                .filter_map(|(_, desk)| desk.next_deadline())
                .min();
            tokio::select! {
                () = self.notices.changed() => {}
                () = until(next) => self.tell_deadlines(),
            }
        }
    }

    /// Waits until nothing is under way on a graph, however long that takes: what has ended is taken up by the
    /// next call for it, which may start something else. Cancel safe.
    pub async fn wait(&self, graph: &str) {
        if let Some(desk) = self.known_desk(graph) {
            desk.wait_until(BTreeMap::is_empty).await;
        }
    }

    /// Cancels the operations of a graph that a predicate names; says how many there were. Works outside of a
    /// runtime as well.
    pub fn cancel(&self, graph: &str, which: impl Fn(&Ref, Operation) -> bool) -> usize {
        self.cancel_some(graph, which).len()
    }

    /// As [`Executor::cancel`], and waits until each of them has returned or has not reacted in time. Cancel
    /// safe, but for the cancels themselves.
    pub async fn cancel_and_wait(&self, graph: &str, which: impl Fn(&Ref, Operation) -> bool) -> usize {
        let cancelled = self.cancel_some(graph, which);
        if let (Some(desk), Some(last)) = (self.known_desk(graph), cancelled.values().max()) {
            let ended = desk.wait_until(|running| !cancelled.keys().any(|id| running.contains_key(id)));
            // One that does not react counts as failed from then on.
            let _ = tokio::time::timeout_at(*last, ended).await;
        }
        cancelled.len()
    }

    /// Cancels operations; each with the time by which it has to react.
    fn cancel_some(
        &self,
        graph: &str,
        which: impl Fn(&Ref, Operation) -> bool,
    ) -> BTreeMap<OperationId, Instant> {
        let Some(desk) = self.known_desk(graph) else {
            return BTreeMap::new();
        };
        let (at, now) = ((self.clock)(), Instant::now());
        let mut cancelled = BTreeMap::new();
        for (id, running) in lock(&desk.running).iter_mut() {
            if !running.token.is_cancelled() && which(&running.reference, running.operation) {
                let item_type = self.types.get(running.reference.type_name());
                let patience_ms = item_type.map_or(0, |item_type| item_type.cancel_deadline_ms);
                let deadline = now + std::time::Duration::from_millis(patience_ms);
                running.deadline = Some((deadline, at.after_ms(patience_ms)));
                running.token.cancel();
                cancelled.insert(*id, deadline);
            }
        }
        if !cancelled.is_empty() {
            let ids = cancelled.keys().copied().collect();
            // A graph's inbox lives as long as its desk.
            let _ = desk.inbox.send(Message::Cancel { ids, at });
            self.notices.wake();
        }
        cancelled
    }

    /// Notifies the graphs whose operations did not react to their cancel in time.
    fn tell_deadlines(&self) {
        let now = Instant::now();
        for (graph, desk) in self.desks() {
            if let Some(at) = desk.take_deadlines(now) {
                self.notices
                    .add(&graph, true, || drop(desk.inbox.send(Message::Tick { at })));
            }
        }
    }

    fn known_desk(&self, graph: &str) -> Option<Arc<Desk<V>>> {
        lock(&self.graphs).get(graph).cloned()
    }

    fn desks(&self) -> Vec<(String, Arc<Desk<V>>)> {
        let graphs = lock(&self.graphs);
        graphs
            .iter()
            .map(|(graph, desk)| (graph.clone(), Arc::clone(desk)))
            .collect()
    }
}

impl<V> Desk<V> {
    /// The earliest time at which a cancelled operation counts as failed.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let running = lock(&self.running);
        running
            .values()
            .filter_map(|one| Some(one.deadline.as_ref()?.0))
            .min()
    }

    /// Takes the deadlines that have passed; the latest by the clock of the graph.
    pub(super) fn take_deadlines(&self, now: Instant) -> Option<Timestamp> {
        let mut running = lock(&self.running);
        let passed = running
            .values_mut()
            .filter_map(|one| one.deadline.take_if(|(deadline, _)| *deadline <= now));
        passed.map(|(_, at)| at).max()
    }

    /// Takes an operation off the list when it has returned.
    pub(super) fn returned(&self, id: OperationId) {
        lock(&self.running).remove(&id);
        self.returned.notify_waiters();
    }

    async fn wait_until(&self, is_done: impl Fn(&BTreeMap<OperationId, Cancellable>) -> bool) {
        loop {
            let mut returned = std::pin::pin!(self.returned.notified());
            // From here on every return is noticed, also one before the wait.
            returned.as_mut().enable();
            if is_done(&lock(&self.running)) {
                return;
            }
            returned.await;
        }
    }
}

/// Waits until a time, for ever if there is none. Cancel safe.
pub(super) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

//! Background operations: waiting for their end, and cancelling them.

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
    /// Waits until a background operation has ended, or has not reacted to its cancel in time; returns the name of the
    /// graph to converge again. A graph is named once for any number of ended operations.
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

    /// Waits until no operation of a graph is running, however long that takes. The next call for the graph handles the
    /// results, and may start others. Cancel safe.
    pub async fn wait(&self, graph: &str) {
        if let Some(desk) = self.known_desk(graph) {
            desk.wait_until(BTreeMap::is_empty).await;
        }
    }

    /// Cancels the operations of a graph that a predicate selects; returns their number. Works outside of a runtime as
    /// well.
    pub fn cancel(&self, graph: &str, which: impl Fn(&Ref, Operation) -> bool) -> usize {
        self.cancel_some(graph, which).len()
    }

    /// Cancels operations like [`Executor::cancel`], and waits until each has returned or missed its deadline. Cancel
    /// safe, except for the cancels themselves.
    pub async fn cancel_and_wait(&self, graph: &str, which: impl Fn(&Ref, Operation) -> bool) -> usize {
        let cancelled = self.cancel_some(graph, which);
        if let (Some(desk), Some(last)) = (self.known_desk(graph), cancelled.values().max()) {
            let ended = desk.wait_until(|running| !cancelled.keys().any(|id| running.contains_key(id)));
            // One that does not react counts as failed from then on.
            let _ = tokio::time::timeout_at(*last, ended).await;
        }
        cancelled.len()
    }

    /// Cancels operations; returns them with the deadlines by which they must react.
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
    /// Returns the earliest deadline of a cancelled operation.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let running = lock(&self.running);
        running
            .values()
            .filter_map(|one| Some(one.deadline.as_ref()?.0))
            .min()
    }

    /// Takes the deadlines that have passed; returns the latest by the clock of the graph.
    pub(super) fn take_deadlines(&self, now: Instant) -> Option<Timestamp> {
        let mut running = lock(&self.running);
        let passed = running
            .values_mut()
            .filter_map(|one| one.deadline.take_if(|(deadline, _)| *deadline <= now));
        passed.map(|(_, at)| at).max()
    }

    /// Removes an operation that has returned.
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

/// Waits until a time, or forever if there is none. Cancel safe.
pub(super) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

//! Notices of graphs to converge again, one for any number of events.

use std::collections::BTreeSet;
use std::sync::Mutex;

use tokio::sync::Notify;

use super::lock;

/// Names of graphs with events to handle: at most one entry per graph.
#[derive(Debug, Default)]
pub(super) struct Notices {
    names: Mutex<BTreeSet<String>>,
    changed: Notify,
}

impl Notices {
    /// Sends a message to a graph's inbox and, if `is_noted`, adds a notice, under one lock: a caller that finds the
    /// inbox empty and removes the notice can't remove a newer one.
    pub(super) fn add(&self, graph: &str, is_noted: bool, send: impl FnOnce()) {
        let mut names = lock(&self.names);
        send();
        if is_noted {
            names.insert(graph.to_owned());
            self.changed.notify_one();
        }
    }

    /// Removes the notice of a graph if no events are left.
    pub(super) fn clear(&self, graph: &str, is_done: impl FnOnce() -> bool) {
        let mut names = lock(&self.names);
        if !names.is_empty() && is_done() {
            names.remove(graph);
        }
    }

    /// Takes the first graph's name.
    pub(super) fn take(&self) -> Option<String> {
        let mut names = lock(&self.names);
        let name = names.pop_first();
        if !names.is_empty() {
            // Another caller may wait for the next one.
            self.changed.notify_one();
        }
        name
    }

    /// Wakes one waiting caller to look again.
    pub(super) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Waits until there may be a new notice. Cancel safe: a wake-up that comes meanwhile is kept.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

//! Telling the embedder which graphs to converge again, once each however much has happened.

use std::collections::BTreeSet;
use std::sync::Mutex;

use tokio::sync::Notify;

use super::lock;

/// The names of graphs with something to take up. There are never more than there are graphs.
#[derive(Debug, Default)]
pub(super) struct Notices {
    names: Mutex<BTreeSet<String>>,
    changed: Notify,
}

impl Notices {
    /// Sends something to a graph's inbox and notes the graph, if so wanted, under one lock: a caller that finds
    /// the inbox empty and removes the note removes no newer one.
    pub(super) fn add(&self, graph: &str, is_noted: bool, send: impl FnOnce()) {
        let mut names = lock(&self.names);
        send();
        if is_noted {
            names.insert(graph.to_owned());
            self.changed.notify_one();
        }
    }

    /// Takes the note of a graph away if there is nothing to take up any more.
    pub(super) fn clear(&self, graph: &str, is_done: impl FnOnce() -> bool) {
        let mut names = lock(&self.names);
        if !names.is_empty() && is_done() {
            names.remove(graph);
        }
    }

    /// Takes the first name.
    pub(super) fn take(&self) -> Option<String> {
        let mut names = lock(&self.names);
        let name = names.pop_first();
        if !names.is_empty() {
            // Another caller may wait for the next one.
            self.changed.notify_one();
        }
        name
    }

    /// Lets one that waits look again.
    pub(super) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Waits until there may be something new. Cancel safe: a wake-up that comes meanwhile is kept.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

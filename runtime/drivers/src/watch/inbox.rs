//! Changed paths that the subscriber has not taken yet.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;

use tokio::sync::Notify;
use watershed_locks::Unpoisoned;

/// The most paths that are collected. Beyond this number, checking everything is cheaper.
const MOST_PATHS: usize = 10_000;

/// Paths that have changed since the last call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedPaths {
    /// Absolute paths, under the names of the watched folders.
    pub paths: BTreeSet<PathBuf>,
    /// True if other paths may have changed too.
    pub lost: bool,
}

impl ChangedPaths {
    /// Adds later changes.
    pub fn extend(&mut self, later: Self) {
        self.paths.extend(later.paths);
        self.lost |= later.lost;
        if self.paths.len() > MOST_PATHS {
            self.lost = true;
            self.paths.clear();
        }
    }

    fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.lost
    }
}

/// A bounded collection of changed paths, filled by the event thread and emptied by the subscriber.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    seen: Mutex<ChangedPaths>,
    filled: Notify,
}

impl Inbox {
    pub(super) fn put(&self, seen: ChangedPaths) {
        self.seen.lock().unpoisoned().extend(seen);
        self.filled.notify_one();
    }

    /// Waits for changes and takes them. Cancel-safe: changes are taken only when returned.
    pub(super) async fn next(&self) -> ChangedPaths {
        loop {
            let filled = self.filled.notified();
            let seen = std::mem::take(&mut *self.seen.lock().unpoisoned());
            if !seen.is_empty() {
                return seen;
            }
            filled.await;
        }
    }
}

//! The changed paths that nobody has taken yet.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;

use tokio::sync::Notify;
use watershed_locks::Unpoisoned;

/// Looking at more paths one by one costs more than looking at everything.
const MOST_PATHS: usize = 10_000;

/// The paths that have changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedPaths {
    /// Absolute paths, as the folders that hold them were named.
    pub paths: BTreeSet<PathBuf>,
    /// Anything else may have been touched as well.
    pub lost: bool,
}

impl ChangedPaths {
    /// The same with what was touched later.
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

/// Gathers on the thread that tells events, and is emptied by whoever waits. Bounded.
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

    /// Waits for something and takes it. Cancel-safe: it is taken in the step that returns it.
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

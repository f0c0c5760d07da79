//! The count of what may have changed an engine's data, by which others know that what they have read still holds.
//!
//! Invariants:
//! 1. Whatever could change the data is counted when it begins and when it has ended; reading in a read-only transaction is not.
//! 2. While something counted goes on there is no number, for nobody knows yet what it changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of work that may have changed the data. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// Work that may change the data, until the value is dropped.
#[must_use]
pub(super) struct Change(Arc<Counts>);

impl Changes {
    /// Counts work that begins.
    pub(super) fn begin(&self) -> Change {
        self.0.begun.fetch_add(1, Ordering::SeqCst);
        Change(Arc::clone(&self.0))
    }

    /// Returns a number that grows with each change; none while one goes on.
    pub(super) fn number(&self) -> Option<u64> {
        // In this order: what begins between the two reads makes them differ.
        let ended = self.0.ended.load(Ordering::SeqCst);
        let begun = self.0.begun.load(Ordering::SeqCst);
        (begun == ended).then_some(begun)
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_number_while_something_may_change() {
        let changes = Changes::default();
        let before = changes.number();
        let (first, second) = (changes.begin(), changes.begin());
        assert_eq!(changes.number(), None);
        drop(first);
        assert_eq!(changes.number(), None);
        drop(second);
        assert!(before.is_some() && changes.number() > before);
    }
}

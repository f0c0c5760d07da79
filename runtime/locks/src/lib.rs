//! Locks, and what a panic means to them: one answer for all crates, which start at [`Unpoisoned`].

use std::sync::{LockResult, PoisonError};

/// Locks that go on after a panic.
///
/// Nothing of ours panics between two changes that belong together, so what a lock guards is whole whenever it is free.
pub trait Unpoisoned {
    /// The guard that holds the lock.
    type Guard;

    /// Returns the guard, whether or not a thread panicked while it held the lock.
    fn unpoisoned(self) -> Self::Guard;
}

impl<G> Unpoisoned for LockResult<G> {
    type Guard = G;

    fn unpoisoned(self) -> G {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}

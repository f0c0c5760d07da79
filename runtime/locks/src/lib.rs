//! Locks that remain usable after a panic, for all crates: see [`Unpoisoned`].

use std::sync::{LockResult, PoisonError};

/// Locks that remain usable after a panic.
///
/// Nothing of ours panics between two changes that belong together, so what a lock guards is whole whenever it is free.
pub trait Unpoisoned {
    /// Guard that holds the lock.
    type Guard;

    /// Returns the guard, even if a thread panicked while it held the lock.
    fn unpoisoned(self) -> Self::Guard;
}

impl<G> Unpoisoned for LockResult<G> {
    type Guard = G;

    fn unpoisoned(self) -> G {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}

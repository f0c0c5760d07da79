//! Locks that remain usable after a panic: a reconciler under test may panic, and the play reports it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex even after a panic, because no code here panics in the middle of a change.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

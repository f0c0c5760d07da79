//! A rendezvous of two threads: one puts a value, the other raises a flag, in either order.
//!
//! The later thread always finds what the earlier one left, so at least one of them sees both. Each writes, then passes a
//! sequentially consistent fence, then reads: of two such fences one comes first, and the thread that passes the later
//! one sees all writes before the earlier. The orderings of the cells alone do not suffice, for those of a once-cell only
//! acquire and release.

use std::sync::atomic::Ordering;

use super::{AtomicBool, OnceLock, fence};

/// A flag, and a value that is put beside it once.
#[derive(Debug)]
pub(crate) struct FlagCell<T> {
    raised: AtomicBool,
    thing: OnceLock<T>,
}

impl<T> FlagCell<T> {
    pub(crate) fn new() -> Self {
        Self {
            raised: AtomicBool::new(false),
            thing: OnceLock::new(),
        }
    }

    /// Returns true if a thread has raised the flag.
    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::SeqCst)
    }

    /// Returns true if the value was put. If not, the thread that puts it later sees everything that the caller wrote
    /// before.
    pub(crate) fn is_put(&self) -> bool {
        fence(Ordering::SeqCst);
        self.thing.get().is_some()
    }

    /// Raises the flag. Returns the value if it was put before: then the caller must handle it.
    pub(crate) fn raise(&self) -> Option<&T> {
        self.raised.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.thing.get()
    }

    /// Puts the value unless it is there already. Returns it, and true if the flag is up: then the caller must handle
    /// it.
    pub(crate) fn put(&self, make: impl FnOnce() -> T) -> (&T, bool) {
        let thing = self.thing.get_or_init(make);
        fence(Ordering::SeqCst);
        (thing, self.is_raised())
    }
}

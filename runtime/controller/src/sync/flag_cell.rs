//! A rendezvous of two threads: one puts a thing there, the other raises a flag, in any order.
//!
//! The later thread always finds what the earlier one left, so at least one of them sees both. Each writes, then passes a
//! sequentially consistent fence, then reads: of two such fences one comes first, and the thread that passes the later
//! one sees all writes before the earlier. The orderings of the cells alone do not suffice, for those of a once-cell only
//! acquire and release.

use std::sync::atomic::Ordering;

use super::{AtomicBool, OnceLock, fence};

/// A flag, and a thing that is put beside it once.
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

    /// Returns true if the flag was raised.
    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::SeqCst)
    }

    /// Returns true if the thing is there. If not, whoever puts it sees what the caller wrote before this.
    pub(crate) fn is_put(&self) -> bool {
        fence(Ordering::SeqCst);
        self.thing.get().is_some()
    }

    /// Raises the flag. What is there already is for the caller to deal with.
    pub(crate) fn raise(&self) -> Option<&T> {
        self.raised.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.thing.get()
    }

    /// The thing, put there now unless it was before, and whether it is for the caller to deal with: the flag is up.
    pub(crate) fn put(&self, make: impl FnOnce() -> T) -> (&T, bool) {
        let thing = self.thing.get_or_init(make);
        fence(Ordering::SeqCst);
        (thing, self.is_raised())
    }
}

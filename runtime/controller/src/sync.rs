//! Primitives for state that threads share: locks, flags, cells and wake-ups.
//!
//! Ordinarily these are the standard library's and tokio's. In a test build with the feature `interleavings` they belong to a
//! checker, which runs one thread at a time and decides at each use of them which one goes on. `OnceLock` and `Notify`
//! are the real ones there as well, with such a decision before each use: what they do inside is tested by those who
//! made them.

pub(crate) mod flag_cell;

#[cfg(not(all(test, feature = "interleavings")))]
mod made_of {
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, fence};
    pub(crate) use std::sync::{Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

    pub(crate) use tokio::sync::Notify;
}

#[cfg(all(test, feature = "interleavings"))]
mod made_of {
    use std::sync::atomic::Ordering;

    pub(crate) use shuttle::hint::spin_loop;
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, fence};
    pub(crate) use shuttle::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
    use tokio::sync::futures::Notified;

    /// An atomic flag whose accesses let the checker switch threads.
    #[derive(Debug, Default)]
    struct Switch(AtomicBool);

    impl Switch {
        fn decide(&self) {
            self.0.load(Ordering::SeqCst);
        }
    }

    #[derive(Debug)]
    pub(crate) struct OnceLock<T> {
        cell: std::sync::OnceLock<T>,
        switch: Switch,
    }

    impl<T> OnceLock<T> {
        pub(crate) fn new() -> Self {
            Self {
                cell: std::sync::OnceLock::new(),
                switch: Switch::default(),
            }
        }

        pub(crate) fn get(&self) -> Option<&T> {
            self.switch.decide();
            self.cell.get()
        }

        pub(crate) fn set(&self, value: T) -> Result<(), T> {
            self.switch.decide();
            self.cell.set(value)
        }

        pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
            self.switch.decide();
            self.cell.get_or_init(make)
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct Notify {
        notify: tokio::sync::Notify,
        switch: Switch,
    }

    impl Notify {
        pub(crate) fn new() -> Self {
            Self::default()
        }

        pub(crate) fn notified(&self) -> Notified<'_> {
            self.switch.decide();
            self.notify.notified()
        }

        pub(crate) fn notify_one(&self) {
            self.switch.decide();
            self.notify.notify_one();
        }

        pub(crate) fn notify_waiters(&self) {
            self.switch.decide();
            self.notify.notify_waiters();
        }
    }
}

pub(crate) use made_of::*;
pub(crate) use watershed_locks::Unpoisoned;

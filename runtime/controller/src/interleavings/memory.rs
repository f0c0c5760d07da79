//! Interleavings of two threads that exchange a value and a flag, under the memory model: every order, and every value
//! that a read may return.
//!
//! `flag_cell.rs` is built here a second time, over a checker's atomics. Its cell is the real one for what it holds, and
//! promises no more than that one does: whoever finds the thing sees what was written before it was put there.

mod sync {
    use std::sync::atomic::Ordering;

    pub(super) use loom::sync::atomic::{AtomicBool, fence};

    #[derive(Debug)]
    pub(super) struct OnceLock<T> {
        cell: std::sync::OnceLock<T>,
        is_full: AtomicBool,
    }

    impl<T> OnceLock<T> {
        pub(super) fn new() -> Self {
            Self {
                cell: std::sync::OnceLock::new(),
                is_full: AtomicBool::new(false),
            }
        }

        pub(super) fn get(&self) -> Option<&T> {
            let is_full = self.is_full.load(Ordering::Acquire);
            is_full.then(|| self.cell.get()).flatten()
        }

        pub(super) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
            let thing = self.cell.get_or_init(make);
            self.is_full.store(true, Ordering::Release);
            thing
        }
    }
}

#[path = "../sync/flag_cell.rs"]
#[allow(clippy::duplicate_mod, reason = "the one outside is over other atomics")]
mod flag_cell;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use loom::thread;

use self::flag_cell::FlagCell;
// What `flag_cell.rs` is built over here.
use self::sync::{AtomicBool, OnceLock, fence};

#[test]
fn of_who_puts_and_who_raises_one_at_least_finds_the_other() {
    loom::model(|| {
        let flag_cell = Arc::new(FlagCell::new());
        let puts = Arc::clone(&flag_cell);
        let putting = thread::spawn(move || puts.put(|| 7).1);
        let found = flag_cell.raise() == Some(&7);
        let is_raised = putting.join().unwrap();
        assert!(found || is_raised, "neither has found the other");
    });
}

#[test]
fn of_two_who_put_and_who_raises_it_is_the_same() {
    loom::model(|| {
        let flag_cell = Arc::new(FlagCell::new());
        let putting: Vec<_> = (0..2)
            .map(|_| {
                let puts = Arc::clone(&flag_cell);
                thread::spawn(move || puts.put(|| 7).1)
            })
            .collect();
        let found = flag_cell.raise() == Some(&7);
        let is_raised: Vec<bool> = putting.into_iter().map(|one| one.join().unwrap()).collect();
        assert!(
            found || is_raised.iter().all(|is_raised| *is_raised),
            "{is_raised:?}"
        );
    });
}

#[test]
fn of_who_puts_and_looks_and_who_leaves_something_one_at_least_finds_the_other() {
    loom::model(|| {
        let flag_cell = Arc::new(FlagCell::new());
        let left = Arc::new(AtomicBool::new(false));
        let (puts, looks) = (Arc::clone(&flag_cell), Arc::clone(&left));
        let putting = thread::spawn(move || {
            puts.put(|| 7);
            looks.load(Ordering::Relaxed)
        });
        left.store(true, Ordering::Relaxed);
        let is_put = flag_cell.is_put();
        let is_found = putting.join().unwrap();
        assert!(is_put || is_found, "neither has found the other");
    });
}

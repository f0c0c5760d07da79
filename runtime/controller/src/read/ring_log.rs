//! A bounded log that any number of readers follow, each at its own pace.
//!
//! Invariants:
//! 1. Entries are numbered without gaps; the log holds those from `first` to `first + entries.len()`.
//! 2. After a push, what it holds weighs at most `bound`, and what every reader has read at most `kept` of that; the
//!    newest entry may weigh more, and then stands alone.
//! 3. A push never waits for a reader. A reader whose next entry is gone is told that it has lagged.
//! 4. `cursors` counts the readers by the number of the entry that each reads next.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::sync::{Mutex, MutexGuard, Notify, Unpoisoned};

/// The shared log; clones are handles to the same log.
#[derive(Debug)]
pub(crate) struct RingLog<T> {
    shared: Arc<LogInner<T>>,
}

#[derive(Debug)]
struct LogInner<T> {
    log: Mutex<Log<T>>,
    grew: Notify,
    bounds: Bounds,
}

/// Limits on the size of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Bytes kept for later readers after all present ones have read them.
    pub(crate) kept: usize,
    /// Bytes kept in all, and so how far behind a reader may fall.
    pub(crate) bound: usize,
}

#[derive(Debug)]
struct Log<T> {
    first: u64,
    entries: VecDeque<(usize, Arc<T>)>,
    weight: usize,
    cursors: BTreeMap<u64, usize>,
    ended: bool,
}

impl<T> Log<T> {
    /// Drops the entries beyond the bounds from the front, and returns them.
    fn trim(&mut self, bounds: Bounds) -> Vec<Arc<T>> {
        let mut gone = Vec::new();
        let slowest = self.cursors.keys().next().copied().unwrap_or(u64::MAX);
        while self.entries.len() > 1 {
            let bound = if self.first < slowest {
                bounds.kept
            } else {
                bounds.bound
            };
            if self.weight <= bound {
                break;
            }
            let Some((weight, entry)) = self.entries.pop_front() else {
                break;
            };
            self.weight -= weight;
            self.first += 1;
            gone.push(entry);
        }
        gone
    }

    fn enter(&mut self, cursor: u64) {
        *self.cursors.entry(cursor).or_default() += 1;
    }

    fn leave(&mut self, cursor: u64) {
        if let Some(count) = self.cursors.get_mut(&cursor) {
            *count -= 1;
            if *count == 0 {
                self.cursors.remove(&cursor);
            }
        }
    }
}

impl<T> Clone for RingLog<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T> RingLog<T> {
    /// Creates an empty log.
    pub(crate) fn new(bounds: Bounds) -> Self {
        let log = Log {
            first: 0,
            entries: VecDeque::new(),
            weight: 0,
            cursors: BTreeMap::new(),
            ended: false,
        };
        Self {
            shared: Arc::new(LogInner {
                log: Mutex::new(log),
                grew: Notify::new(),
                bounds,
            }),
        }
    }

    /// Appends an entry of `weight` bytes; returns the entries dropped for it, oldest first.
    pub(crate) fn push(&self, weight: usize, entry: T) -> Vec<Arc<T>> {
        let mut log = self.shared.lock();
        log.entries.push_back((weight, Arc::new(entry)));
        log.weight += weight;
        let gone = log.trim(self.shared.bounds);
        drop(log);
        self.shared.grew.notify_waiters();
        gone
    }

    /// Returns true if the log has a reader now.
    pub(crate) fn has_readers(&self) -> bool {
        !self.shared.lock().cursors.is_empty()
    }

    /// Returns the weight of all entries, in bytes.
    pub(crate) fn weight(&self) -> usize {
        self.shared.lock().weight
    }

    /// Ends the log: readers end after the entries that remain.
    pub(crate) fn end(&self) {
        self.shared.lock().ended = true;
        self.shared.grew.notify_waiters();
    }

    /// Creates a reader at the first entry for which `passed` is false, or at the end of the log.
    pub(crate) fn follow(&self, passed: impl Fn(&T) -> bool) -> Reader<T> {
        let mut log = self.shared.lock();
        let passed = log.entries.iter().take_while(|(_, entry)| passed(entry)).count();
        let next = log.first + passed as u64;
        log.enter(next);
        Reader {
            log: self.clone(),
            next,
        }
    }
}

impl<T> LogInner<T> {
    /// Locks the log, even after a panic: no change leaves it incomplete.
    fn lock(&self) -> MutexGuard<'_, Log<T>> {
        self.log.lock().unpoisoned()
    }
}

/// A reader's cursor in the log.
#[derive(Debug)]
pub(crate) struct Reader<T> {
    log: RingLog<T>,
    next: u64,
}

/// The next entry, or the reason why there is none.
#[derive(Debug)]
pub(crate) enum Read<T> {
    /// The entry after the last one read.
    Entry(Arc<T>),
    /// The next entry was dropped before it was read.
    Lagged,
    /// The log has ended, and the reader has read everything.
    Ended,
}

impl<T> Reader<T> {
    /// Waits for the next entry.
    ///
    /// Cancel-safe: the cursor moves in the same poll that returns the entry.
    pub(crate) async fn read(&mut self) -> Read<T> {
        loop {
            let shared = Arc::clone(&self.log.shared);
            let grew = shared.grew.notified();
            tokio::pin!(grew);
            // Registered before looking, so that an entry pushed after the look wakes this reader.
            grew.as_mut().enable();
            if let Some(read) = self.try_read() {
                return read;
            }
            grew.await;
        }
    }

    /// Returns the next entry if there is one now.
    pub(crate) fn try_read(&mut self) -> Option<Read<T>> {
        let mut log = self.log.shared.lock();
        if self.next < log.first {
            return Some(Read::Lagged);
        }
        let at = (self.next - log.first) as usize;
        let entry = log.entries.get(at).map(|(_, entry)| Arc::clone(entry));
        match entry {
            Some(entry) => {
                log.leave(self.next);
                self.next += 1;
                log.enter(self.next);
                Some(Read::Entry(entry))
            }
            None if log.ended => Some(Read::Ended),
            None => None,
        }
    }
}

impl<T> Drop for Reader<T> {
    fn drop(&mut self) {
        self.log.shared.lock().leave(self.next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_most(bytes: usize) -> RingLog<u32> {
        RingLog::new(Bounds {
            kept: bytes,
            bound: bytes,
        })
    }

    fn entry(read: Option<Read<u32>>) -> Option<u32> {
        match read {
            Some(Read::Entry(entry)) => Some(*entry),
            _ => None,
        }
    }

    #[test]
    fn a_reader_gets_every_entry_from_its_place_on() {
        let log = at_most(100);
        for n in 0..5 {
            log.push(1, n);
        }
        let mut reader = log.follow(|n| *n < 3);
        log.push(1, 5);
        assert_eq!(
            [entry(reader.try_read()), entry(reader.try_read())],
            [Some(3), Some(4)]
        );
        assert_eq!(entry(reader.try_read()), Some(5));
        assert!(reader.try_read().is_none());
    }

    #[test]
    fn a_reader_that_falls_behind_the_bound_is_told_so() {
        let log = at_most(3);
        let mut reader = log.follow(|_| true);
        for n in 0..4 {
            log.push(1, n);
        }
        assert!(matches!(reader.try_read(), Some(Read::Lagged)));
    }

    #[test]
    fn a_reader_may_fall_behind_by_more_than_is_kept_for_those_who_come_later() {
        let log = RingLog::new(Bounds { kept: 2, bound: 5 });
        let mut reader = log.follow(|_| true);
        assert_eq!((0..5).map(|n| log.push(1, n).len()).sum::<usize>(), 0);
        let read = (0..4).map(|_| entry(reader.try_read()).unwrap());
        assert_eq!(read.collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(log.push(1, 5).len(), 4, "two are still to be read");
        drop(reader);
        assert_eq!(log.push(1, 6).len(), 1);
        assert_eq!(entry(log.follow(|_| false).try_read()), Some(5));
    }

    #[test]
    fn the_slowest_reader_counts() {
        let log = RingLog::new(Bounds { kept: 1, bound: 4 });
        let (mut fast, mut slow) = (log.follow(|_| true), log.follow(|_| true));
        for n in 0..4 {
            log.push(1, n);
            assert_eq!(entry(fast.try_read()), Some(n));
        }
        assert_eq!(entry(slow.try_read()), Some(0));
        assert_eq!(
            log.push(1, 4).len(),
            1,
            "what the slow one has read is over the bound"
        );
        assert_eq!(entry(slow.try_read()), Some(1));
        assert_eq!([log.push(1, 5).len(), log.push(1, 6).len()], [1, 1]);
        assert_eq!(log.push(1, 7).len(), 1);
        assert!(matches!(slow.try_read(), Some(Read::Lagged)));
        assert_eq!(entry(fast.try_read()), Some(4));
    }

    #[test]
    fn an_entry_heavier_than_the_bound_stands_alone() {
        let log = at_most(3);
        log.push(1, 0);
        assert_eq!(log.push(10, 1).len(), 1);
        assert_eq!(entry(log.follow(|_| false).try_read()), Some(1));
        assert_eq!(log.push(1, 2).len(), 1);
    }

    #[tokio::test]
    async fn a_waiting_reader_is_woken_by_a_push_and_by_the_end() {
        let log = at_most(3);
        let mut reader = log.follow(|_| true);
        assert!(log.has_readers());
        let (read, ()) = tokio::join!(reader.read(), async {
            log.push(1, 7);
        });
        assert!(matches!(read, Read::Entry(n) if *n == 7));
        log.end();
        assert!(matches!(reader.read().await, Read::Ended));
        drop(reader);
        assert!(!log.has_readers());
    }
}

//! The run queue: invocations that workers take one by one.
//!
//! Invariants:
//! 1. Things are taken in the order in which they were added, each once.
//! 2. No worker waits while something is there: it registers for the wake-up before it looks again, and a wake-up that
//!    finds no waiter is kept for the next one.
//! 3. Once it is closed nothing is there, and every worker comes to an end.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::Ordering;

use crate::sync::{AtomicU64, Mutex, MutexGuard, Notify, Unpoisoned};

/// A queue that several workers take from, in order.
#[derive(Debug)]
pub(crate) struct RunQueue<T> {
    queue: Mutex<Queue<T>>,
    /// Number of things taken so far.
    taken: AtomicU64,
    filled: Notify,
}

#[derive(Debug)]
struct Queue<T> {
    things: VecDeque<T>,
    closed: bool,
}

/// Result of a look into the queue.
enum Next<T> {
    Thing(T),
    Wait,
    End,
}

impl<T> RunQueue<T> {
    pub(crate) fn new() -> Self {
        let queue = Queue {
            things: VecDeque::new(),
            closed: false,
        };
        Self {
            queue: Mutex::new(queue),
            taken: AtomicU64::new(0),
            filled: Notify::new(),
        }
    }

    /// Adds things and wakes at most `workers` workers; returns how many things wait now.
    pub(crate) fn add(&self, things: &mut Vec<T>, workers: usize) -> usize {
        let count = things.len();
        let mut queue = self.lock();
        queue.things.extend(things.drain(..));
        let waiting = queue.things.len();
        drop(queue);
        // Each worker that is woken takes what is there, so that a few wake-ups do.
        for _ in 0..count.min(workers) {
            self.filled.notify_one();
        }
        waiting
    }

    /// Returns the number of things that wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().things.len()
    }

    /// Returns the number of things taken so far; may lag behind.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Drops the waiting things and ends the workers.
    pub(crate) fn close(&self) {
        let mut queue = self.lock();
        queue.closed = true;
        queue.things.clear();
        drop(queue);
        self.filled.notify_waiters();
    }

    /// Takes the next thing if there is one now.
    pub(crate) fn try_take(&self) -> Option<T> {
        match self.next() {
            Next::Thing(thing) => Some(thing),
            Next::Wait | Next::End => None,
        }
    }

    /// Waits for the next thing; none once the queue is closed.
    ///
    /// Cancel-safe: a thing is taken in the same poll that returns it.
    pub(crate) async fn take(&self) -> Option<T> {
        loop {
            match self.next() {
                Next::Thing(thing) => return Some(thing),
                Next::Wait => self.wait().await,
                Next::End => return None,
            }
        }
    }

    /// Waits until there may be something to take.
    async fn wait(&self) {
        let mut filled = pin!(self.filled.notified());
        // Registered before looking again, so that whatever comes after the look ends the wait.
        filled.as_mut().enable();
        if self.is_idle() {
            filled.await;
        }
    }

    fn is_idle(&self) -> bool {
        let queue = self.lock();
        queue.things.is_empty() && !queue.closed
    }

    fn next(&self) -> Next<T> {
        let mut queue = self.lock();
        match queue.things.pop_front() {
            Some(thing) => {
                self.taken.fetch_add(1, Ordering::Relaxed);
                Next::Thing(thing)
            }
            None if queue.closed => Next::End,
            None => Next::Wait,
        }
    }

    /// Locks the queue, which a panic elsewhere leaves complete.
    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        self.queue.lock().unpoisoned()
    }
}

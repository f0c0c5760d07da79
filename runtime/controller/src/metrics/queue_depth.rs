//! Lengths of a controller's queues: at present, and the longest so far.
//!
//! The loop notes the lengths at each turn; nobody else writes them. A queue that only grows is a leak, and one that is
//! long says who is slow.

use std::sync::atomic::Ordering;

use serde::Serialize;

use crate::sync::AtomicU64;

/// Lengths of the queues inside the controller of this process.
///
/// Part of [`Stats`](crate::stats::Stats). At rest nothing waits but what is kept for watchers who come back.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct QueueDepths {
    /// Calls on their way to the loop, at most 1,024; further callers wait outside the queue.
    pub calls: QueueDepth,
    /// Calls that the loop has taken and that lack an answer, including waits for an outcome and uncommitted state
    /// writes.
    pub answers: QueueDepth,
    /// Signals on their way to the loop: returns, state writes, progress and ends of commits. At most three per
    /// invocation.
    pub signals: QueueDepth,
    /// Calls whose callers are gone, on their way to the loop.
    pub forgotten: QueueDepth,
    /// Started invocations that no worker has begun, at most as many as may run.
    pub begins: QueueDepth,
    /// Approximate number of bytes held for watchers: at most 16 MiB and one change.
    pub watched_bytes: u64,
}

/// Length of a queue, at present and at most.
///
/// Part of [`QueueDepths`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct QueueDepth {
    /// Length at the loop's last look.
    pub now: u64,
    /// Longest length that the loop saw since the controller started.
    pub most: u64,
}

impl QueueDepths {
    pub(crate) fn from_lengths(lengths: &Lengths, watched_bytes: usize) -> Self {
        Self {
            calls: lengths.calls.read(),
            answers: lengths.answers.read(),
            signals: lengths.signals.read(),
            forgotten: lengths.forgotten.read(),
            begins: lengths.begins.read(),
            watched_bytes: watched_bytes as u64,
        }
    }

    /// Returns the queues with their names.
    pub fn queues(&self) -> [(&'static str, QueueDepth); 5] {
        [
            ("calls", self.calls),
            ("answers", self.answers),
            ("signals", self.signals),
            ("forgotten", self.forgotten),
            ("begins", self.begins),
        ]
    }
}

/// Queue lengths, as the loop records them.
#[derive(Debug)]
pub(crate) struct Lengths {
    pub(crate) calls: Length,
    pub(crate) answers: Length,
    pub(crate) signals: Length,
    pub(crate) forgotten: Length,
    pub(crate) begins: Length,
}

impl Lengths {
    pub(crate) fn new() -> Self {
        Self {
            calls: Length::new(),
            answers: Length::new(),
            signals: Length::new(),
            forgotten: Length::new(),
            begins: Length::new(),
        }
    }
}

/// Recorded length of one queue.
#[derive(Debug)]
pub(crate) struct Length {
    now: AtomicU64,
    most: AtomicU64,
}

impl Length {
    fn new() -> Self {
        Self {
            now: AtomicU64::new(0),
            most: AtomicU64::new(0),
        }
    }

    /// Records the present length. Called only by the loop.
    pub(crate) fn note(&self, length: usize) {
        self.now.store(length as u64, Ordering::Relaxed);
        self.note_high_water(length);
    }

    /// Records a length that may be a maximum, without making it the present one.
    pub(crate) fn note_high_water(&self, length: usize) {
        let length = length as u64;
        if length > self.most.load(Ordering::Relaxed) {
            self.most.store(length, Ordering::Relaxed);
        }
    }

    fn read(&self) -> QueueDepth {
        QueueDepth {
            now: self.now.load(Ordering::Relaxed),
            most: self.most.load(Ordering::Relaxed),
        }
    }
}

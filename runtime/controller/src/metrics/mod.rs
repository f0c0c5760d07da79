//! Counters of the host, which anybody may read at any time.

mod prometheus;
pub(crate) mod queue_depth;
pub mod stats;

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;
use watershed_core::{ErrorKind, Returned, Timestamp};

use crate::metrics::queue_depth::Lengths;
use crate::sync::{AtomicI64, AtomicU64, Mutex, Unpoisoned};

/// Least time for which a maximum is remembered; twice that at most.
const WINDOW: Duration = Duration::from_secs(60);

/// Counters and durations of one controller.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) started: AtomicU64,
    pub(crate) done: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) commits: Durations,
    pub(crate) failed_commits: AtomicU64,
    /// Time from sending a call until the loop takes it.
    pub(crate) lag: Durations,
    pub(crate) lengths: Lengths,
    convergence: Convergence,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Self {
            started: AtomicU64::new(0),
            done: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            commits: Durations::new(),
            failed_commits: AtomicU64::new(0),
            lag: Durations::new(),
            lengths: Lengths::new(),
            convergence: Convergence::new(),
        }
    }

    pub(crate) fn returned(&self, result: &Returned) {
        let count = match result {
            Returned::Done(_) => &self.done,
            // It was skipped because of another resource, whose failure is counted.
            Returned::Failed(error) if matches!(error.kind, ErrorKind::Dependency(_)) => return,
            Returned::Failed(_) | Returned::Panicked(_) => &self.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Records after each turn whether everything has settled.
    pub(crate) fn settled(&self, is_idle: bool, now: Timestamp) {
        self.convergence.settled(is_idle, now);
    }

    /// Returns the time at which everything last settled, and how many milliseconds that took; none before the first
    /// time.
    pub(crate) fn last_convergence(&self) -> Option<(Timestamp, u64)> {
        self.convergence.last()
    }
}

/// Durations of an operation: the last one, and the longest of the last minute or two.
#[derive(Debug)]
pub(crate) struct Durations {
    count: AtomicU64,
    last_us: AtomicU64,
    longest: Mutex<Windows>,
}

/// Longest durations of the present and the previous window.
#[derive(Debug)]
struct Windows {
    began: Instant,
    longest: Duration,
    before: Duration,
}

impl Durations {
    fn new() -> Self {
        let windows = Windows {
            began: Instant::now(),
            longest: Duration::ZERO,
            before: Duration::ZERO,
        };
        Self {
            count: AtomicU64::new(0),
            last_us: AtomicU64::new(0),
            longest: Mutex::new(windows),
        }
    }

    pub(crate) fn record(&self, took: Duration, now: Instant) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.last_us.store(microseconds(took), Ordering::Relaxed);
        let mut windows = self.longest.lock().unpoisoned();
        windows.advance(now);
        windows.longest = windows.longest.max(took);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn last_us(&self) -> u64 {
        self.last_us.load(Ordering::Relaxed)
    }

    pub(crate) fn longest_us(&self, now: Instant) -> u64 {
        let mut windows = self.longest.lock().unpoisoned();
        windows.advance(now);
        microseconds(windows.longest.max(windows.before))
    }
}

impl Windows {
    fn advance(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.began);
        if age < WINDOW {
            return;
        }
        self.before = if age < 2 * WINDOW {
            self.longest
        } else {
            Duration::ZERO
        };
        self.longest = Duration::ZERO;
        self.began = now;
    }
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The last time at which everything settled.
#[derive(Debug)]
struct Convergence {
    /// Start of the present unsettled period; `NEVER` while everything is settled.
    unsettled_at: AtomicI64,
    /// Time of the last settling, and the length of the unsettled period before, in milliseconds; none before the
    /// first.
    last: Mutex<Option<(Timestamp, u64)>>,
}

const NEVER: i64 = i64::MIN;

impl Convergence {
    fn new() -> Self {
        Self {
            unsettled_at: AtomicI64::new(NEVER),
            last: Mutex::new(None),
        }
    }

    fn settled(&self, is_idle: bool, now: Timestamp) {
        let since = self.unsettled_at.load(Ordering::Relaxed);
        match (is_idle, since) {
            (true, NEVER) => {}
            (true, since) => {
                let took_ms = u64::try_from(now.0.saturating_sub(since)).unwrap_or(0);
                *self.last.lock().unpoisoned() = Some((now, took_ms));
                self.unsettled_at.store(NEVER, Ordering::Relaxed);
            }
            (false, NEVER) => self.unsettled_at.store(now.0, Ordering::Relaxed),
            (false, _) => {}
        }
    }

    fn last(&self) -> Option<(Timestamp, u64)> {
        *self.last.lock().unpoisoned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_is_forgotten_after_two_windows() {
        let durations = Durations::new();
        let start = Instant::now();
        durations.record(Duration::from_millis(7), start);
        durations.record(Duration::from_millis(3), start + WINDOW + Duration::from_secs(1));
        assert_eq!((durations.count(), durations.last_us()), (2, 3_000));
        assert_eq!(
            durations.longest_us(start + WINDOW + Duration::from_secs(2)),
            7_000
        );
        assert_eq!(
            durations.longest_us(start + 2 * WINDOW + Duration::from_secs(3)),
            3_000
        );
        assert_eq!(durations.longest_us(start + 9 * WINDOW), 0);
    }

    #[test]
    fn a_convergence_lasts_from_the_first_unsettled_turn_to_the_first_settled_one() {
        let convergence = Convergence::new();
        for (idle, at) in [(true, 1), (false, 5), (false, 6), (true, 9), (true, 30)] {
            convergence.settled(idle, Timestamp(at));
        }
        assert_eq!(convergence.last(), Some((Timestamp(9), 4)));
    }
}

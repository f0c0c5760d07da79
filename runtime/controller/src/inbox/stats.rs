//! Metrics of a controller, gathered from the state that handles and the event loop share.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;
use watershed_core::Timestamp;

use crate::inbox::shared::Shared;
use crate::metrics::stats::{Commits, Convergence, Invocations, Lag, LeaseAge, QueueDepths, Stats};
use crate::sync::AtomicU64;

impl Shared {
    /// Returns the present metrics; `now` is the time of the controller's clock.
    pub(crate) fn stats(&self, now: Timestamp) -> Stats {
        let at = Instant::now();
        let metrics = &self.metrics;
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut stats = Stats {
            revision: self.view.revision(),
            invocations: Invocations {
                started: load(&metrics.started),
                done: load(&metrics.done),
                failed: load(&metrics.failed),
            },
            commits: Commits {
                tried: metrics.commits.count(),
                failed: load(&metrics.failed_commits),
                last_us: metrics.commits.last_us(),
                longest_us: metrics.commits.longest_us(at),
            },
            loop_lag: Lag {
                last_us: metrics.lag.last_us(),
                longest_us: metrics.lag.longest_us(at),
            },
            waiting: QueueDepths::from_lengths(&metrics.lengths, self.changes.held_bytes()),
            lease: self.lease().map(|lease| LeaseAge {
                age_ms: milliseconds(at.saturating_duration_since(lease.since)),
                term_ms: milliseconds(lease.term),
            }),
            last_convergence: metrics
                .last_convergence()
                .map(|(at, took_ms)| Convergence { at, took_ms }),
            ..Stats::default()
        };
        self.view.each(|row, status, since| {
            stats.add(row, status, now.0.saturating_sub(since.0));
        });
        stats
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

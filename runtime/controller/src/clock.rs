//! Where the time comes from.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;
use watershed_core::{Mono, Now, Timestamp};

/// Wall and monotonic time, handed to the core with every input.
///
/// The monotonic part must be that of tokio's clock counted from [`Clock::start`], because timers sleep by it; a
/// paused tokio clock then moves both.
pub trait Clock: Send + Sync + 'static {
    /// Both clocks at this moment.
    fn now(&self) -> Now;

    /// The moment at which [`Now::mono`] was zero.
    fn start(&self) -> Instant;
}

/// The machine's clocks.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Counts monotonic time from now on.
    #[allow(clippy::new_without_default, reason = "the moment of the call matters")]
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now {
            wall: Timestamp(0).after(wall),
            mono: mono_since(self.start),
        }
    }

    fn start(&self) -> Instant {
        self.start
    }
}

/// Tokio's clock for both: wall time is a given time plus what has passed on tokio's clock.
///
/// For tests: with tokio's clock paused, time moves only when nothing else does.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    start: Instant,
    wall: Timestamp,
}

impl TokioClock {
    /// A clock whose wall time is `wall` now.
    pub fn starting_at(wall: Timestamp) -> Self {
        Self {
            start: Instant::now(),
            wall,
        }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Now {
        let mono = mono_since(self.start);
        Now {
            wall: self.wall.after(Duration::from_millis(mono.0)),
            mono,
        }
    }

    fn start(&self) -> Instant {
        self.start
    }
}

fn mono_since(start: Instant) -> Mono {
    Mono(0).after(Instant::now().saturating_duration_since(start))
}

//! The clock of a controller: the machine's, tokio's, or an embedder's.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;
use watershed_core::{Mono, Now, Timestamp};

/// Source of wall and monotonic time, handed to the core with every input.
///
/// The monotonic part must be that of tokio's clock counted from [`Clock::start`], because timers sleep by it; a
/// paused tokio clock then moves both.
///
/// See [`TokioClock`] for an example.
pub trait Clock: Send + Sync + 'static {
    /// Returns the present time of both clocks.
    fn now(&self) -> Now;

    /// Returns the instant at which [`Now::mono`] was zero.
    fn start(&self) -> Instant;

    /// Returns true for a clock that a test moves. Retries are then exact, not spread
    /// ([`Limits::jitter`](watershed_core::Limits::jitter)).
    fn is_simulated(&self) -> bool {
        false
    }
}

/// The machine's clocks.
///
/// ```
/// use watershed_controller::clock::{Clock, SystemClock};
///
/// let clock = SystemClock::new();
/// assert!(clock.now().mono <= clock.now().mono);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Creates a clock whose monotonic time counts from now.
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

/// Tokio's clock for both times: the wall time is a given start plus the time passed on tokio's clock.
///
/// For tests: with tokio's clock paused, time moves only when nothing else does.
///
/// ```
/// # use watershed_controller::{Context, Error, Outcome, Reconciler};
/// # struct Pages;
/// # impl Reconciler for Pages {
/// #     type Spec = Page;
/// #     type State = Page;
/// #     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
/// #         let page = Page(context.spec().0.clone());
/// #         context.set_state(&page).await?;
/// #         Ok(Outcome::default())
/// #     }
/// # }
/// # #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// # struct Page(String);
/// # watershed_controller::json_message!(Page, format = 1);
/// use std::time::Duration;
/// use watershed_controller::{Controller, KindOptions, Timestamp};
/// use watershed_controller::clock::{Clock, TokioClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// tokio::time::pause();
/// let clock = TokioClock::starting_at(Timestamp(0));
/// let controller = Controller::builder().clock(clock).kind(KindOptions::new("page"), Pages).start().await?;
///
/// tokio::time::sleep(Duration::from_secs(3600)).await; // Passes at once.
/// assert!(clock.now().wall >= Timestamp(3_600_000));
/// # drop(controller);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    start: Instant,
    wall: Timestamp,
}

impl TokioClock {
    /// Creates a clock whose wall time is `wall` now.
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

    fn is_simulated(&self) -> bool {
        true
    }

    fn start(&self) -> Instant {
        self.start
    }
}

fn mono_since(start: Instant) -> Mono {
    Mono(0).after(Instant::now().saturating_duration_since(start))
}

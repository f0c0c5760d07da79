//! Ends the process when an input takes too long, and says which.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

/// The longest that one input may take, on a busy machine and without optimisation.
const LONGEST: Duration = Duration::from_secs(60);
/// The time between looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The state that is shared with the thread that watches.
#[derive(Debug)]
struct State {
    begun: Instant,
    /// The seed that runs, and since when in milliseconds; 0 while none runs.
    seed: AtomicU64,
    since_ms: AtomicU64,
    is_over: AtomicBool,
}

/// Watches the inputs of one target, until it is dropped.
#[derive(Debug)]
pub(super) struct Watchdog(Arc<State>, Thread);

impl Watchdog {
    pub(super) fn new(target: &str) -> Self {
        let state = Arc::new(State {
            begun: Instant::now(),
            seed: AtomicU64::new(0),
            since_ms: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let (watched, target) = (Arc::clone(&state), target.to_owned());
        let watching = thread::spawn(move || watched.watch(&target));
        Self(state, watching.thread().clone())
    }

    pub(super) fn begin(&self, seed: u64) {
        self.0.seed.store(seed, Ordering::Relaxed);
        self.0.since_ms.store(self.0.now_ms(), Ordering::Release);
    }

    pub(super) fn end(&self) {
        self.0.since_ms.store(0, Ordering::Release);
    }
}

impl State {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).map_or(u64::MAX, |ms| ms + 1)
    }

    #[allow(
        clippy::print_stderr,
        reason = "the process ends, and somebody wants to know why"
    )]
    fn watch(&self, target: &str) {
        while !self.is_over.load(Ordering::Relaxed) {
            // The end of the target wakes it.
            thread::park_timeout(LOOK_EVERY);
            let since = self.since_ms.load(Ordering::Acquire);
            if since > 0 && u128::from(self.now_ms() - since) > LONGEST.as_millis() {
                let seed = self.seed.load(Ordering::Relaxed);
                eprintln!("target {target} does not end with WATERSHED_SEED={seed}");
                std::process::abort();
            }
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
        self.1.unpark();
    }
}

//! Work that is under way in the engine, and how it is ended.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use watershed_locks::Unpoisoned;

use super::sys::{Interrupt, Worker};

/// Between two interrupts of the same work. One that falls between two statements is lost, so they are repeated;
/// work ends within a few of these, well below the 100 ms that callers are promised.
const INTERRUPT_PERIOD: Duration = Duration::from_millis(5);

/// Interrupts after which work is taken to wait for a named pipe, where none reaches it: far more than any other work needs.
const PERIODS_TO_WAKE: u32 = 40;

/// One unit of work. Cancelling its token interrupts the engine until the work has returned.
#[derive(Clone)]
pub(super) struct Running {
    /// A child of the caller's token; looked at between statements.
    pub(super) cancel: CancellationToken,
    /// The reason for which it was ended early.
    cause: Arc<Mutex<Option<Cause>>>,
    /// Cancelled when the work has returned.
    done: CancellationToken,
    target: Arc<Mutex<Option<Target>>>,
}

/// The part of the engine that works.
struct Target {
    interrupt: Arc<Interrupt>,
    worker: Worker,
}

/// The reasons for ending work early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Cancelled,
    TimedOut,
}

impl Running {
    /// Begins a unit of work and starts the task that watches over it. The task ends with the work.
    pub(super) fn start(caller: &CancellationToken, timeout: Option<Duration>) -> Self {
        let running = Self {
            cancel: caller.child_token(),
            cause: Arc::default(),
            done: CancellationToken::new(),
            target: Arc::default(),
        };
        tokio::spawn(
            running
                .clone()
                .watch(timeout.map(|timeout| Instant::now() + timeout)),
        );
        running
    }

    async fn watch(self, deadline: Option<Instant>) {
        let timed_out = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let cause = tokio::select! {
            biased;
            () = self.done.cancelled() => return,
            () = self.cancel.cancelled() => Cause::Cancelled,
            () = timed_out => Cause::TimedOut,
        };
        *self.cause.lock().unpoisoned() = Some(cause);
        self.cancel.cancel();
        for period in 1_u32.. {
            if self.done.is_cancelled() {
                return;
            }
            self.interrupt(period % PERIODS_TO_WAKE == 0);
            tokio::select! {
                () = self.done.cancelled() => {}
                () = sleep(INTERRUPT_PERIOD) => {}
            }
        }
    }

    /// Interrupts the engine; where it waits for a pipe, the waiting as well.
    fn interrupt(&self, wakes: bool) {
        let target = self.target.lock().unpoisoned();
        let Some(target) = &*target else { return };
        target.interrupt.interrupt();
        if wakes {
            target.worker.wake();
        }
    }

    /// Says which connection the work runs on, by the thread that does it.
    pub(super) fn arm(&self, interrupt: Arc<Interrupt>) {
        let worker = Worker::current();
        *self.target.lock().unpoisoned() = Some(Target { interrupt, worker });
    }

    /// From here on no interrupt reaches the connection.
    pub(super) fn disarm(&self) {
        *self.target.lock().unpoisoned() = None;
    }

    /// The work has returned.
    pub(super) fn finish(&self) {
        self.disarm();
        self.done.cancel();
    }

    /// Returns whether the work ran out of time.
    pub(super) fn timed_out(&self) -> bool {
        *self.cause.lock().unpoisoned() == Some(Cause::TimedOut)
    }
}

/// Says that work has returned, also when it panics.
pub(super) struct Finished<'a>(pub(super) &'a Running);

impl Drop for Finished<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

//! Running work in the engine, and its interruption.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use watershed_locks::Unpoisoned;

use super::sys::{Interrupt, Worker};

/// Interval between two interrupts of the same work. An interrupt between two statements is lost, so it is repeated;
/// work ends after a few of them, well within the promised 100 ms.
const INTERRUPT_PERIOD: Duration = Duration::from_millis(5);

/// Number of interrupts after which the work is assumed to wait for a named pipe, where interrupts don't reach it: far
/// more than other work needs.
const PERIODS_TO_WAKE: u32 = 40;

/// A running unit of work. Cancelling its token interrupts the engine until the work has returned.
#[derive(Clone)]
pub(super) struct Running {
    /// Child of the caller's token, checked between statements.
    pub(super) cancel: CancellationToken,
    /// Reason of an early end; none if there was none.
    cause: Arc<Mutex<Option<Cause>>>,
    /// Cancelled when the work has returned.
    done: CancellationToken,
    target: Arc<Mutex<Option<Target>>>,
}

/// The connection and the thread of the work, which an interrupt reaches.
struct Target {
    interrupt: Arc<Interrupt>,
    worker: Worker,
}

/// The reason for ending work early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Cancelled,
    TimedOut,
}

impl Running {
    /// Starts a unit of work and the task that watches it, which ends with the work.
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

    /// Interrupts the engine; with `wakes`, also a wait for a pipe.
    fn interrupt(&self, wakes: bool) {
        let target = self.target.lock().unpoisoned();
        let Some(target) = &*target else { return };
        target.interrupt.interrupt();
        if wakes {
            target.worker.wake();
        }
    }

    /// Directs interrupts to the connection of the work. Called on the thread that does the work.
    pub(super) fn arm(&self, interrupt: Arc<Interrupt>) {
        let worker = Worker::current();
        *self.target.lock().unpoisoned() = Some(Target { interrupt, worker });
    }

    /// Stops directing interrupts to the connection.
    pub(super) fn disarm(&self) {
        *self.target.lock().unpoisoned() = None;
    }

    /// Marks the work as returned.
    pub(super) fn finish(&self) {
        self.disarm();
        self.done.cancel();
    }

    /// Returns true if the work exceeded its time limit.
    pub(super) fn timed_out(&self) -> bool {
        *self.cause.lock().unpoisoned() == Some(Cause::TimedOut)
    }
}

/// A guard that marks work as returned when dropped, even after a panic.
pub(super) struct Finished<'a>(pub(super) &'a Running);

impl Drop for Finished<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

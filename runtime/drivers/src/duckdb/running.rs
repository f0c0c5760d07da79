//! Work that is under way in the engine, and how it is ended.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::sys::Interrupt;
use crate::sync::Unpoisoned;

/// Between two interrupts of the same work. One that falls between two statements is lost, so they are repeated;
/// work ends within a few of these, well below the 100 ms that callers are promised.
const INTERRUPT_PERIOD: Duration = Duration::from_millis(5);

/// One unit of work. Cancelling its token interrupts the engine until the work has returned.
#[derive(Clone)]
pub(super) struct Running {
    /// A child of the caller's token; looked at between statements.
    pub(super) cancel: CancellationToken,
    /// The reason for which it was ended early.
    cause: Arc<Mutex<Option<Cause>>>,
    /// Cancelled when the work has returned.
    done: CancellationToken,
    target: Arc<Mutex<Option<Arc<Interrupt>>>>,
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
        while !self.done.is_cancelled() {
            if let Some(target) = &*self.target.lock().unpoisoned() {
                target.interrupt();
            }
            tokio::select! {
                () = self.done.cancelled() => {}
                () = sleep(INTERRUPT_PERIOD) => {}
            }
        }
    }

    /// Says which connection the work runs on.
    pub(super) fn arm(&self, interrupt: Arc<Interrupt>) {
        *self.target.lock().unpoisoned() = Some(interrupt);
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

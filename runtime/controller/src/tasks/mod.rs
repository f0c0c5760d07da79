//! Spawning of tasks, which happens only here.

pub(crate) mod panics;
mod stealable;

use std::future::Future;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use crate::tasks::stealable::{Stealable, displace};

/// Spawns a task on the current runtime, named by the span of its future.
///
/// There are six sorts. What their panic and their cancellation mean:
///
/// | task | panic | cancellation |
/// |---|---|---|
/// | loop | a bug, also in a turn that another task ran; open calls get `outcome unknown`, `shutdown` says so | only with the runtime: as a crash |
/// | committer | a store's panic is caught and counts as a failed commit | only with the runtime: as a crash |
/// | worker | a bug; another one takes over what waits | with the runtime |
/// | campaign | a bug; the process follows on without one | when it is of no use any more |
/// | initial snapshot | a bug, which is the start's | never |
/// | invocation | caught: the invocation's error | when the controller stops before it returned |
///
/// Whatever blocks the thread from which a task is woken does not hold that task up, as long as another thread of the
/// runtime is free: see [`Stealable`].
pub(crate) fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let runtime = Handle::current();
    if runtime.runtime_flavor() == RuntimeFlavor::CurrentThread {
        return runtime.spawn(future);
    }
    let task = runtime.spawn(Stealable::new(future, runtime.clone()));
    displace(&runtime);
    task
}

/// Spawns a worker, whose wake-ups are many and short.
/// [`Workers::check_for_stall`](crate::workers::Workers::check_for_stall) replaces one that a blocked thread holds up.
pub(crate) fn spawn_worker(future: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(future));
}

/// Runs blocking work on a thread of its own.
pub(crate) fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    tokio::task::spawn_blocking(work)
}

/// Runs a future on a thread of the runtime's pool for blocking work. When this future is dropped, the inner one is
/// dropped at its next await.
pub(crate) async fn where_it_may_block<F>(future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let is_wanted = CancellationToken::new();
    let _cancels_on_drop = is_wanted.clone().drop_guard();
    let (runtime, span) = (Handle::current(), Span::current());
    let work = move || {
        let _inside = span.enter();
        runtime.block_on(is_wanted.run_until_cancelled_owned(future))
    };
    let ended = spawn_blocking(work).await;
    match ended {
        Ok(Some(output)) => output,
        // The runtime is being dropped around it, and takes this future along.
        Ok(None) | Err(_) => std::future::pending().await,
    }
}

/// A task that is aborted when its owner is dropped.
#[derive(Debug)]
pub(crate) struct AbortOnDrop<T>(JoinHandle<T>);

impl<T: Send + 'static> AbortOnDrop<T> {
    pub(crate) fn spawn(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(spawn(future))
    }

    /// Waits for the task's result; none if it panicked. Cancel-safe; must not be called again after it returns.
    pub(crate) async fn end(&mut self) -> Option<T> {
        (&mut self.0).await.ok()
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

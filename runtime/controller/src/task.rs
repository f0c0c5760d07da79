//! The one place where tasks are spawned.

use std::future::Future;

use tokio::task::JoinHandle;

/// Spawns a task on the current runtime; its name is the span that the future is instrumented with.
///
/// There are six sorts. What their panic and their cancellation mean:
///
/// | task | panic | cancellation |
/// |---|---|---|
/// | loop | a bug, also in a turn that somebody else made; open calls get `outcome unknown`, `shutdown` says so | only with the runtime: as a crash |
/// | committer | a store's panic is caught and counts as a failed commit | only with the runtime: as a crash |
/// | worker | a bug; another one takes over what waits | with the runtime |
/// | campaign | a bug; the process follows on without one | when it is of no use any more |
/// | filling | a bug, which is the start's | never |
/// | invocation | caught: the invocation's error | when the controller stops before it returned |
pub(crate) fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future)
}

/// Runs what keeps a thread busy on a thread of its own.
pub(crate) fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    tokio::task::spawn_blocking(work)
}

/// A task that ends with its owner.
#[derive(Debug)]
pub(crate) struct OnlyWhileHeld<T>(JoinHandle<T>);

impl<T: Send + 'static> OnlyWhileHeld<T> {
    pub(crate) fn spawn(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(spawn(future))
    }

    /// Waits for its end; none if it panicked. Cancel-safe, and not to be asked again after it.
    pub(crate) async fn end(&mut self) -> Option<T> {
        (&mut self.0).await.ok()
    }
}

impl<T> Drop for OnlyWhileHeld<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

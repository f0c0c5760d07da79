//! The part of an engine for its own file.

use std::path::Path;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Failure;

/// A job on the closed file.
pub type FileJob = Box<dyn FnOnce(&Path) + Send>;

/// An engine that keeps its data in a file of its own.
pub trait OwnFile: Send + Sync {
    /// Returns the path of the file.
    fn path(&self) -> &Path;

    /// Opens the file; fails without waiting if another process has it open.
    fn open_now(&self) -> BoxFuture<'_, Result<(), Failure>>;

    /// Closes the file whenever no work has run for `rest`, without cost while it is closed. Runs for ever.
    fn share_file(&self, rest: Duration) -> BoxFuture<'_, ()>;

    /// Returns a channel with the count of [`Olap::changes_by_others`](super::Olap::changes_by_others), updated
    /// whenever the file is opened or the count is read.
    fn watch_changes_by_others(&self) -> watch::Receiver<u64>;

    /// Returns a channel with the process for which work waits to close the file; none while nothing waits.
    fn watch_holder(&self) -> watch::Receiver<Option<String>>;

    /// Releases the engine's cache if enough has changed, no work runs and the cache is small; later reads load the
    /// data from the file. Cheap to call whenever a project becomes idle.
    fn give_back_memory(&self) -> BoxFuture<'_, ()>;

    /// Runs a job on the closed file, which contains all committed data without a log; the next work reopens it. A
    /// missing file is not created. Fails if another program changed the file meanwhile, since the job may then have
    /// read inconsistent data.
    ///
    /// # Cancel safety
    /// Dropping the future while the job runs lets it go on to its end.
    fn while_closed<'a>(
        &'a self,
        job: FileJob,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>>;
}

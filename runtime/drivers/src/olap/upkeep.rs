//! The upkeep of the file in which an engine keeps its data.

use std::path::Path;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Failure;

/// The result of compacting a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compacted {
    /// Bytes of the file and its log before.
    pub before: u64,
    /// The same after.
    pub after: u64,
}

/// Work on a closed file.
pub type FileJob = Box<dyn FnOnce(&Path) + Send>;

/// An engine that keeps its data in a file of its own.
pub trait Upkeep: Send + Sync {
    /// Returns the path of the file.
    fn path(&self) -> &Path;

    /// Opens the file if no other process has it open.
    fn open_now(&self) -> BoxFuture<'_, Result<(), Failure>>;

    /// Gives the file up each time that nobody has worked in it for `rest`, and costs nothing while it is closed. Does
    /// not return.
    fn share_file(&self, rest: Duration) -> BoxFuture<'_, ()>;

    /// Follows the count of [`Olap::changes_by_others`](super::Olap::changes_by_others), as it stands whenever the file is
    /// opened or the count is asked for.
    fn watch_changes_by_others(&self) -> watch::Receiver<u64>;

    /// Follows whom work waits for to close the file; none while nothing waits.
    fn watch_holder(&self) -> watch::Receiver<Option<String>>;

    /// Lets go of what the engine holds in memory, if it has changed often enough for that, nobody works in it at this
    /// moment, and it is little: what is needed again is read from the file. Worth a call whenever a project has become
    /// idle; does nothing most of the time.
    fn give_back_memory(&self) -> BoxFuture<'_, ()>;

    /// Makes the file anew if much of it is free, with nobody else at work; nothing otherwise. The outputs, with tags
    /// and records, are as they were.
    fn compact<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Compacted, Failure>>;

    /// Reads every value of every table and says what can't be read, at most twenty findings.
    fn verify<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<String>, Failure>>;

    /// Runs a job on the file while nobody works in it and all that was committed stands in it alone, without a log. The
    /// next work opens it anew. A file that is not there is not made. Fails also when another program changed the file
    /// meanwhile: what the job read may then be of two times.
    ///
    /// # Cancel safety
    /// Dropping the future while the job runs lets it go on to its end.
    fn while_closed<'a>(
        &'a self,
        job: FileJob,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>>;
}

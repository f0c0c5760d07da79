//! The part of an engine for the upkeep of the space that its data take.

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::Failure;

/// The result of compacting an engine's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compacted {
    /// Size of the file and its log before, or of the files that a lake kept, in bytes.
    pub before: u64,
    /// Size afterwards, in bytes.
    pub after: u64,
}

/// An engine that gives back the space that its data no longer need.
pub trait Upkeep: Send + Sync {
    /// Compacts a file if enough of it is free, while no other work runs; lets go of what a lake need not keep. Outputs, tags
    /// and records stay the same.
    fn compact<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Compacted, Failure>>;

    /// Reads every value of every table and returns what can't be read, at most twenty findings.
    fn verify<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<String>, Failure>>;
}

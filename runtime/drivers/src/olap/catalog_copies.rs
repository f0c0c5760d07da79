//! The part of an engine for copies of its catalog, which leave the rows where they are.

use std::path::Path;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::Failure;

/// An engine whose data are a catalog, and files that are never written over.
pub trait CatalogCopies: Send + Sync {
    /// Copies the catalog, as of one moment, into a new file.
    fn copy_catalog<'a>(
        &'a self,
        to: &'a Path,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Returns the tables of a copy whose rows are gone, since files of theirs were removed.
    ///
    /// # Errors
    /// Also when the engine's own tables are among them: then the copy is of no use.
    fn lost_tables<'a>(
        &'a self,
        copy: &'a Path,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<String>, Failure>>;

    /// Replaces the catalog by a copy, while no other process writes.
    fn restore_catalog<'a>(
        &'a self,
        copy: &'a Path,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>>;
}

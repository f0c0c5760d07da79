//! The part of an engine for writing outputs to files, and to tables of other databases.

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{DropTable, ExportError, TableError, WriteRows, WriteTable};

/// An engine that can write outputs to files and to other databases.
pub trait Elsewhere: Send + Sync {
    /// Writes the rows of an output into files that nobody reads yet. Returns their number, if the engine reports it.
    fn write_rows<'a>(
        &'a self,
        job: &'a WriteRows,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<u64>, ExportError>>;

    /// Writes the rows of an output to a table of another database, atomically for its readers. Returns the number of
    /// rows; none if the table already has the same rows.
    fn write_table<'a>(
        &'a self,
        job: &'a WriteTable,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<u64>, TableError>>;

    /// Drops a table of another database, if the owner wrote it. Returns false if there is none.
    fn drop_table<'a>(
        &'a self,
        job: &'a DropTable,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, TableError>>;
}

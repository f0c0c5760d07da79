//! Writing outputs to other places: files, and tables of other databases.

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{DropTable, ExportError, TableError, WriteRows, WriteTable};

/// An engine that writes outputs to other places.
pub trait Elsewhere: Send + Sync {
    /// Writes the rows of an output into files that nobody reads yet. Returns their number, if the engine says.
    fn write_rows<'a>(
        &'a self,
        job: &'a WriteRows,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<u64>, ExportError>>;

    /// Has a table of another database hold the rows of an output, at once for whoever reads it. Returns their number, if they
    /// were written; none if the table has them already.
    fn write_table<'a>(
        &'a self,
        job: &'a WriteTable,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<u64>, TableError>>;

    /// Drops a table of another database, if its owner wrote it. Returns false if there is none.
    fn drop_table<'a>(
        &'a self,
        job: &'a DropTable,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, TableError>>;
}

//! Outputs outside the engine: files, and tables of other databases.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::engine::Engine;
use super::{write_rows, write_table};
use crate::olap::{DropTable, Elsewhere, ExportError, TableError, WriteRows, WriteTable};

impl Elsewhere for Engine {
    fn write_rows<'a>(
        &'a self,
        job: &'a WriteRows,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<u64>, ExportError>> {
        write_rows::write_rows(self, job, cancel).boxed()
    }

    fn write_table<'a>(
        &'a self,
        job: &'a WriteTable,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<u64>, TableError>> {
        write_table::write_table(self, job, cancel).boxed()
    }

    fn drop_table<'a>(
        &'a self,
        job: &'a DropTable,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, TableError>> {
        write_table::drop_table(self, job, cancel).boxed()
    }
}

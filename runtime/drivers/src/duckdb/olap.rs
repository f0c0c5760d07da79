//! The implementation of [`Olap`](crate::olap::Olap) for DuckDB, which delegates to the functions that do the work.

use std::sync::atomic::Ordering;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::engine::Engine;
use super::{build, check, drop, export, query, rename};
#[cfg(feature = "arrow")]
use crate::olap::{Batches, Batching};
use crate::olap::{
    Build, BuildError, Built, CatalogCopies, Check, Databases, Dropped, Elsewhere, Export, ExportError,
    Exported, Failure, Guarantees, Guard, Migrations, Object, Olap, Output, OwnFile, Part, Partitions, Query,
    QueryError, Rename, RenameError, Renamed, Rows, Session, Stamp, Tag, TestedRows, Trash, Upkeep, Verdict,
};

impl Olap for Engine {
    fn guarantees(&self) -> Guarantees {
        self.guarantees()
    }

    fn open<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>> {
        self.open(cancel).boxed()
    }

    /// Opens the file, whose lock keeps every other process out, or writes the epoch into the lake.
    fn take<'a>(&'a self, epoch: u64, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>> {
        self.take(epoch, cancel).boxed()
    }

    fn lead(&self, epoch: u64) {
        if let Some(lake) = self.lake() {
            lake.tell(epoch);
        }
    }

    fn newest_epoch(&self) -> Option<u64> {
        self.lake()?.newest_epoch()
    }

    fn home(&self) -> String {
        self.lake().map(|lake| lake.place()).unwrap_or_default()
    }

    fn stamp(&self) -> BoxFuture<'_, Result<Option<Stamp>, Failure>> {
        self.stamp().boxed()
    }

    fn close(&self) -> BoxFuture<'_, Result<Option<Stamp>, Failure>> {
        self.close().boxed()
    }

    fn begin_with(&self, sessions: Vec<Session>) {
        self.begin_with(sessions);
    }

    fn allow_installs(&self, allowed: bool) {
        self.parts.installs.store(allowed, Ordering::Relaxed);
    }

    fn changes_by_others(&self) -> u64 {
        self.parts.sharing.changes_by_others()
    }

    fn changes(&self) -> Option<u64> {
        // Others may change a file that is not held, and a lake at any time.
        let is_ours = self.lake().is_none() && self.is_open();
        is_ours.then(|| self.parts.changes.number())?
    }

    /// Builds outputs concurrently, so that brief ones come to share a transaction.
    fn build_set<'a>(
        &'a self,
        builds: &'a [Build],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Vec<Result<Built, BuildError>>> {
        join_all(builds.iter().map(|build| build::build(self, build, cancel))).boxed()
    }

    fn check<'a>(
        &'a self,
        checks: &'a [Check],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<Verdict>, Failure>> {
        check::check(self, checks, cancel).boxed()
    }

    fn rename<'a>(
        &'a self,
        rename: &'a Rename,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Renamed, RenameError>> {
        rename::rename(self, rename, cancel).boxed()
    }

    fn drop_output<'a>(
        &'a self,
        uid: Uuid,
        guard: Guard,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Dropped, Failure>> {
        drop::drop_output(self, uid, guard, cancel).boxed()
    }

    fn retag<'a>(
        &'a self,
        from: Tag,
        to: Tag,
        record: &'a [u8],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, Failure>> {
        rename::retag(self, from, to, record, cancel).boxed()
    }

    fn outputs<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<Output>, Failure>> {
        rename::outputs(self, cancel).boxed()
    }

    fn object<'a>(
        &'a self,
        name: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<Object>, Failure>> {
        async move {
            self.be_open(cancel).await?;
            Ok(self.names().object(name))
        }
        .boxed()
    }

    fn query<'a>(
        &'a self,
        query: Query,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Rows, QueryError>> {
        query::query(self, query, cancel).boxed()
    }

    #[cfg(feature = "arrow")]
    fn batching(&self) -> Result<&dyn Batching, Failure> {
        Ok(self)
    }

    fn export<'a>(
        &'a self,
        export: &'a Export,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Exported, ExportError>> {
        export::export(self, export, cancel).boxed()
    }

    fn hooks(&self) -> Result<(), Failure> {
        self.has(Part::Hooks, "statements around builds").map(drop)
    }

    fn partitions(&self) -> Result<&dyn Partitions, Failure> {
        Ok(self.has(Part::Partitions, "stages of partitions")?)
    }

    fn trash(&self) -> Result<&dyn Trash, Failure> {
        Ok(self.has(Part::Trash, "trash")?)
    }

    fn migrations(&self) -> Result<&dyn Migrations, Failure> {
        Ok(self.has(Part::Migrations, "migrations")?)
    }

    fn databases(&self) -> Result<&dyn Databases, Failure> {
        Ok(self.has(Part::Databases, "databases of other systems")?)
    }

    fn elsewhere(&self) -> Result<&dyn Elsewhere, Failure> {
        Ok(self.has(Part::Elsewhere, "outputs in other places")?)
    }

    fn tested_rows(&self) -> Result<&dyn TestedRows, Failure> {
        Ok(self.has(Part::KeptRows, "kept rows of tests")?)
    }

    fn catalog_copies(&self) -> Result<&dyn CatalogCopies, Failure> {
        Ok(self.has(Part::CatalogCopies, "catalog of its own")?)
    }

    fn upkeep(&self) -> Result<&dyn Upkeep, Failure> {
        Ok(self.has(Part::Upkeep, "upkeep of its space")?)
    }

    fn own_file(&self) -> Result<&dyn OwnFile, Failure> {
        Ok(self.has(Part::File, "file of its own")?)
    }
}

#[cfg(feature = "arrow")]
impl Batching for Engine {
    fn query_batches<'a>(
        &'a self,
        query: Query,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Batches, QueryError>> {
        query::query_batches(self, query, cancel).boxed()
    }
}

//! DuckDB behind [`crate::olap::Olap`].
//!
//! [`Engine`] is one database file; [`Parser`] parses without one; [`FileProof`] says whether anybody has written to
//! a file since. How an output comes to be: `engine` lets the work in and hands it a connection, `engine/group` has small builds share a transaction, `build`, `drop` and
//! `rename` plan it from what `names` knows, `schema` writes tags and records, `step` puts rows into a table that stands, `columns` holds theirs against those of the table, `work` is the transaction around it,
//! `trash` keeps what nothing stands for any more, `throw` brings it there and back, `tidy` that within bounds, `retrieve` is it by hand,
//! `checkpoint` keeps the file small, `compact` makes it anew, `closed` lets others at the file, `verify` reads all of it, `sharing` lets other programs have it,
//! `export` writes answers into files, `write_rows` outputs, `write_table` them into other databases, `confine` closes what lies outside a sandbox, `authorities` are whom the engine trusts, `give_back` is about memory. `sys` is the only place that calls the C interface.

mod attach;
mod authorities;
mod build;
#[cfg(feature = "by-hand")]
mod by_hand;
mod check;
mod closed;
mod column_type;
mod columns;
mod compact;
mod conditions;
mod confine;
mod csv_error;
mod drop;
mod engine;
mod export;
mod failure;
mod failures;
mod give_back;
mod hooks;
mod install;
mod json_error;
mod left;
mod migrate;
mod names;
mod no_columns;
mod options;
mod parser;
mod partitions;
mod pool;
mod proof;
mod query;
mod rename;
mod retrieve;
mod running;
mod schema;
mod session;
mod statements;
mod step;
mod sys;
#[cfg(test)]
mod tests;
mod throw;
mod tidy;
mod trash;
mod verify;
mod work;
mod write;
mod write_rows;
mod write_table;

#[cfg(feature = "by-hand")]
pub use by_hand::ByHand;
pub use compact::Compacted;
pub use conditions::Conditions;
pub use engine::Engine;
pub use export::is_unwritten_sheet;
pub use names::OWN_VIEWS;
pub use options::{Access, Options};
pub use parser::Parser;
pub use proof::{FileProof, Stamp};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::olap::{
    Attached, Build, BuildError, Built, Check, DropTable, Dropped, Export, ExportError, Exported, Failure,
    Guard, KeptRows, Left, Migrated, Migration, NamedRow, Object, Olap, Output, PartitionRun, Query,
    QueryError, Rename, RenameError, Renamed, Rows, Session, StageStep, TableError, Tag, TrashLimits,
    Trashed, Verdict, WriteRows, WriteTable,
};

impl Olap for Engine {
    fn build<'a>(
        &'a self,
        build: &'a Build,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Built, BuildError>> {
        self.build_output(build, cancel).boxed()
    }

    fn partitions<'a>(
        &'a self,
        uid: Uuid,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<PartitionRun>, Failure>> {
        self.list_partitions(uid, cancel).boxed()
    }

    fn stage<'a>(
        &'a self,
        steps: &'a [StageStep],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<PartitionRun>, BuildError>> {
        self.stage_partitions(steps, cancel).boxed()
    }

    fn note_partitions<'a>(
        &'a self,
        uid: Uuid,
        notes: Vec<PartitionRun>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Engine::note_partitions(self, uid, notes, cancel).boxed()
    }

    fn give_stage_up<'a>(
        &'a self,
        uid: Uuid,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Engine::give_stage_up(self, uid, cancel).boxed()
    }

    fn check<'a>(
        &'a self,
        checks: &'a [Check],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<Verdict>, Failure>> {
        self.run_checks(checks, cancel).boxed()
    }

    fn keep_failures<'a>(
        &'a self,
        owner: Uuid,
        table: &'a str,
        kept: Vec<KeptRows>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        self.keep_failed_rows(owner, table, kept, cancel).boxed()
    }

    fn rename<'a>(
        &'a self,
        rename: &'a Rename,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Renamed, RenameError>> {
        self.rename_output(rename, cancel).boxed()
    }

    fn drop_output<'a>(
        &'a self,
        uid: Uuid,
        guard: Guard,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Dropped, Failure>> {
        self.drop_owned(uid, guard, cancel).boxed()
    }

    fn trash<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<Trashed>, Failure>> {
        self.list_trash(|_| true, cancel).boxed()
    }

    fn trash_of<'a>(
        &'a self,
        owner: Uuid,
        name: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<Trashed>, Failure>> {
        self.list_trash(move |it| it.concerns(owner, name), cancel)
            .boxed()
    }

    fn limit_trash(&self, limits: TrashLimits) {
        Engine::limit_trash(self, limits);
    }

    fn allow_installs(&self, allowed: bool) {
        Engine::allow_installs(self, allowed);
    }

    fn retag<'a>(
        &'a self,
        from: Tag,
        to: Tag,
        record: &'a [u8],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, Failure>> {
        self.retag_output(from, to, record, cancel).boxed()
    }

    fn outputs<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<Output>, Failure>> {
        self.list_outputs(cancel).boxed()
    }

    fn object<'a>(
        &'a self,
        name: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<Object>, Failure>> {
        async move {
            if !self.is_open() {
                self.open(cancel).await?;
            }
            Ok(self.names().object(name))
        }
        .boxed()
    }

    fn query<'a>(
        &'a self,
        query: Query,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Rows, QueryError>> {
        self.start_query(query, cancel).boxed()
    }

    fn migrate<'a>(
        &'a self,
        migration: &'a Migration,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Left, Failure>> {
        self.run_migration(migration, cancel).boxed()
    }

    fn migrated<'a>(
        &'a self,
        uid: Uuid,
        proof: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<Migrated>, Failure>> {
        self.last_migration(uid, proof, cancel).boxed()
    }

    fn forget_migration<'a>(
        &'a self,
        uid: Uuid,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, Failure>> {
        self.forget_migration_of(uid, cancel).boxed()
    }

    fn begin_with(&self, sessions: Vec<Session>) {
        Engine::begin_with(self, sessions);
    }

    fn open<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>> {
        Engine::open(self, cancel).boxed()
    }

    fn try_database<'a>(
        &'a self,
        database: &'a Attached,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        self.attach_and_detach(database, cancel).boxed()
    }

    fn first_row<'a>(
        &'a self,
        database: &'a Attached,
        sql: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<NamedRow>, Failure>> {
        self.ask_attached(database, sql, cancel).boxed()
    }

    fn changes_by_others(&self) -> u64 {
        Engine::changes_by_others(self)
    }

    fn export<'a>(
        &'a self,
        export: &'a Export,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Exported, ExportError>> {
        self.write_file(export, cancel).boxed()
    }

    fn write_rows<'a>(
        &'a self,
        job: &'a WriteRows,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<u64>, ExportError>> {
        self.write_rows_of(job, cancel).boxed()
    }

    fn write_table<'a>(
        &'a self,
        job: &'a WriteTable,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<u64>, TableError>> {
        self.write_table_of(job, cancel).boxed()
    }

    fn drop_table<'a>(
        &'a self,
        job: &'a DropTable,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, TableError>> {
        self.drop_table_of(job, cancel).boxed()
    }
}

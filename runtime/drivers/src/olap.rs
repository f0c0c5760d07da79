//! An analytical engine as the reconcilers see it: outputs that are ours by tag, each built in one transaction.
//!
//! Everything that Watershed makes in an engine is an [`Output`]: a table or a view with a [`Tag`] that says whose
//! it is and which build made it, and a record that its owner left beside it. Only tagged objects are ever replaced,
//! renamed or dropped; an object without a tag belongs to somebody else and survives whatever is asked here.
//!
//! Tag and record change in the transaction that changes the output. After a crash they say what really happened.

mod build;
mod database;
mod export;
mod failure;
mod hooks;
mod lake;
mod migration;
mod output;
mod partition;
mod query;
mod session;
mod statement;
mod system;
mod table;
mod text;
mod trash;
mod value;

pub use build::{
    Build, BuildError, Built, Check, ColumnsDiffer, Failing, Gravity, KeptRows, NamedRow, NewColumns, Over,
    PutColumns, Rename, RenameError, Renamed, RetypedColumn, StageEnd, StateQuery, Step, Verdict,
};
pub use database::{ATTACHED_PREFIX, Attached, DatabaseCause, DatabaseError, Rights};
pub use export::{Existing, Export, ExportError, Exported, FileFormat, Layout, Look, WriteRows};
pub use failure::{DataPlace, Failure, OpenError, SqlError};
pub use hooks::{HookError, Hooks};
pub use lake::{Lake, Snapshot};
pub use migration::{Left, Migrated, Migration, Thing, ThingKind};
pub use output::{Object, Output, OutputKind, Tag};
pub use partition::{
    PARTITION_COLUMN, Partition, PartitionPhase, PartitionRun, RUN_COLUMN, StageStep, stage_table,
};
pub(crate) use query::{Chunk, RowSink, row_channel};
pub use query::{Column, Query, QueryError, Rows};
pub use session::Session;
pub use statement::{Common, Guess, ReaderOption, Statement, Statements};
pub use system::System;
pub use table::{DropTable, TableError, TableName, WriteTable};
pub(crate) use text::leading_words;
pub use text::{SoleError, TextPosition, sole_statement};
pub use trash::{
    Dropped, Fate, Guard, RetrieveError, TRASH_PREFIX, Thrown, TrashDamage, TrashLimits, Trashed,
    is_in_trash, trash_table,
};
pub use value::Value;
pub(crate) use value::moment;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// An engine that holds outputs.
///
/// Each method is one unit of work: it is done whole or not at all. Cancelling the token interrupts the engine and
/// ends the call with [`Failure::Interrupted`], unless the work was done before the interrupt arrived.
///
/// # Cancel safety
/// Dropping a returned future is the same as cancelling its token, except that nobody learns how it ended: the
/// work is undone or was done whole.
pub trait Olap: Send + Sync + 'static {
    /// Makes or replaces an output, or puts rows into one, with its checks, tag and record in one transaction. Readers
    /// see the old output until the new one is whole.
    ///
    /// What the same uid made under another name before goes in that transaction. Another resource's output of
    /// that name is moved out of the way, not lost. A build that ends out of memory is run once more with nothing
    /// else running.
    fn build<'a>(
        &'a self,
        build: &'a Build,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Built, BuildError>>;

    /// Returns the latest run of each partition of an owner, in the order of the runs.
    fn partitions<'a>(
        &'a self,
        uid: Uuid,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<PartitionRun>, Failure>>;

    /// Builds partitions into the stage of their output, which is made if it does not stand, in one transaction: the first of
    /// them, and others until [`StageStep::BRIEF`] is over. Where one fails, none is built. Where there are several, none of them
    /// has statements around it. Returns the notes of those that are built.
    fn stage<'a>(
        &'a self,
        steps: &'a [StageStep],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<PartitionRun>, BuildError>>;

    /// Leaves notes of runs that brought nothing into the stage, and of earlier ones instead of what was noted of them.
    fn note_partitions<'a>(
        &'a self,
        uid: Uuid,
        notes: Vec<PartitionRun>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Throws the stage of an output away, with the notes that were left for it.
    fn give_stage_up<'a>(
        &'a self,
        uid: Uuid,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Says which conditions hold, in their order, of what stands there now. All of them see the same tables.
    fn check<'a>(
        &'a self,
        checks: &'a [Check],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<Verdict>, Failure>>;

    /// Keeps rows that failed tests in the place of all that was kept of an owner, for people who look for them. `table` is
    /// the name of its output.
    fn keep_failures<'a>(
        &'a self,
        owner: Uuid,
        table: &'a str,
        kept: Vec<KeptRows>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Gives an output another name without reading its rows; another resource's output of that name is moved out of
    /// the way. Views made on the old name are not rewritten: they are to be made anew by their owners.
    fn rename<'a>(
        &'a self,
        rename: &'a Rename,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Renamed, RenameError>>;

    /// Drops everything that is tagged with this uid. Tables go to the trash, if anything is kept there.
    fn drop_output<'a>(
        &'a self,
        uid: Uuid,
        guard: Guard,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Dropped, Failure>>;

    /// Returns what is in the trash, the latest last.
    fn trash<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<Trashed>, Failure>>;

    /// Returns what of the trash [concerns](Trashed::concerns) an owner, the latest last.
    fn trash_of<'a>(
        &'a self,
        owner: Uuid,
        name: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<Trashed>, Failure>>;

    /// Sets the bounds of the trash.
    fn limit_trash(&self, limits: TrashLimits);

    /// Says whether the engine may fetch extensions that a build needs, where its own options allow it.
    fn allow_installs(&self, allowed: bool);

    /// Gives an output that is tagged with `from` another tag and record, rows untouched. Says whether it was there.
    fn retag<'a>(
        &'a self,
        from: Tag,
        to: Tag,
        record: &'a [u8],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, Failure>>;

    /// All outputs, ordered by name.
    fn outputs<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<Output>, Failure>>;

    /// Returns the object at a name, ours or not.
    fn object<'a>(
        &'a self,
        name: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<Object>, Failure>>;

    /// Runs one read-only statement. Its rows arrive in chunks while it runs; memory is bounded whatever it returns.
    fn query<'a>(
        &'a self,
        query: Query,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Rows, QueryError>>;

    /// Runs statements of a person's, and records that in the same transaction together with what they left for
    /// everybody: the difference of the engine's catalog before and after. Returns all that was left by the runs for
    /// this resource.
    fn migrate<'a>(
        &'a self,
        migration: &'a Migration,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Left, Failure>>;

    /// Returns the migration last run for a resource or, if there is none, the equal one run for another.
    fn migrated<'a>(
        &'a self,
        uid: Uuid,
        proof: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<Migrated>, Failure>>;

    /// Forgets what was run for a resource; what that did stays, but for functions that it made: they are dropped.
    /// Returns whether anything was run.
    fn forget_migration<'a>(
        &'a self,
        uid: Uuid,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, Failure>>;

    /// Gives the statements with which everybody's work begins, in place of those that were given before.
    fn begin_with(&self, sessions: Vec<Session>);

    /// Opens what the engine keeps its data in, waiting for another process that has it open. Other work does that by
    /// itself; this is for what must not be counted as begun before.
    fn open<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>>;

    /// Tries whether a database of another system can be attached.
    fn try_database<'a>(
        &'a self,
        database: &'a Attached,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Asks a database of another system: the first row of a query that reads it under its attached name.
    fn first_row<'a>(
        &'a self,
        database: &'a Attached,
        sql: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<NamedRow>, Failure>>;

    /// Returns how often the data was found changed by another process while this one did not hold it: what was known
    /// of outputs before such a change may be wrong.
    fn changes_by_others(&self) -> u64;

    /// Writes the answer to one read-only statement into a file, which appears whole or not at all.
    fn export<'a>(
        &'a self,
        export: &'a Export,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Exported, ExportError>>;

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

//! The interface of analytical engines for reconcilers: outputs owned by tag, each built in one transaction.
//!
//! Everything that Watershed makes in an engine is an [`Output`]: a table or a view with a [`Tag`] that says whose
//! it is and which build made it, and a record that its owner left beside it. Only tagged objects are ever replaced,
//! renamed or dropped; an object without a tag belongs to somebody else and survives whatever is asked here.
//!
//! Tag and record change in the transaction that changes the output. After a crash they say what really happened.

mod access;
#[cfg(feature = "arrow")]
mod batches;
mod build;
mod catalog;
mod catalog_copies;
mod conditions;
mod database;
mod databases;
mod elsewhere;
mod export;
mod failure;
mod group;
mod guarantees;
mod home;
mod hooks;
mod kept_rows;
mod lake;
mod location;
mod migration;
mod output;
mod own_file;
mod parser;
mod part;
mod partition;
mod query;
mod session;
mod stamp;
mod statement;
mod system;
mod table;
mod text;
mod trash;
mod upkeep;
mod value;

pub use access::Access;
#[cfg(feature = "arrow")]
pub use batches::{ArrowStream, Batches, Batching};
pub use build::{
    Build, BuildError, Built, Check, ColumnsDiffer, Failing, Gravity, NamedRow, NewColumns, Over, PutColumns,
    Rename, RenameError, Renamed, RetypedColumn, StageEnd, StateQuery, Step, Verdict,
};
pub use catalog::{Attribute, Catalog, Outline, Relation, Schema, Seen};
pub use catalog_copies::CatalogCopies;
pub use conditions::Conditions;
pub use database::{ATTACHED_PREFIX, Attached, DatabaseCause, DatabaseError, Rights};
pub use databases::Databases;
pub use elsewhere::Elsewhere;
pub use export::{
    Existing, Export, ExportError, Exported, FileFormat, Layout, Look, WriteRows, is_unwritten_sheet,
};
pub use failure::{DataPlace, Failure, OpenError, SqlError};
pub(crate) use group::{Batch, Bounds, Failed, Group};
pub use guarantees::{Cell, Guarantees, Promise};
pub use home::{Home, LakeHome};
pub use hooks::{HookError, Hooks};
pub use kept_rows::{KeptRows, TestedRows};
pub use lake::{Lake, Snapshot};
pub use location::Location;
pub use migration::{Left, Migrated, Migration, Migrations, Thing, ThingKind};
pub use output::{Object, Output, OutputKind, Tag};
pub use own_file::{FileJob, OwnFile};
pub use parser::{Parser, Vocabulary};
pub use part::Part;
pub use partition::{
    PARTITION_COLUMN, Partition, PartitionPhase, PartitionRun, Partitions, RUN_COLUMN, StageStep, stage_table,
};
pub(crate) use query::{Chunk, RowSink, row_channel};
pub use query::{Column, Query, QueryError, Rows};
pub use session::Session;
pub use stamp::Stamp;
pub use statement::{Common, Guess, ReaderOption, Statement, Statements};
pub use system::System;
pub use table::{DropTable, TableError, TableName, WriteTable};
pub use text::{STATEMENTS, SoleError, TextPosition, sole_statement};
pub(crate) use text::{leading_words, reads, without_values};
pub use trash::{
    Dropped, Fate, Guard, RetrieveError, TRASH_PREFIX, Thrown, Trash, TrashDamage, TrashLimits, Trashed,
    is_in_trash, trash_table,
};
pub use upkeep::{Compacted, Upkeep};
pub use value::Value;
pub(crate) use value::moment;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// An engine that holds outputs.
///
/// Each method is one unit of work: it is done whole or not at all. Cancelling the token interrupts the engine and
/// ends the call with [`Failure::Interrupted`], unless the work was done before the interrupt arrived.
///
/// Whatever an engine may lack is a trait of its own, which is asked for by name: one that is missing says so.
///
/// # Cancel safety
/// Dropping a returned future is the same as cancelling its token, except that nobody learns how it ended: the
/// work is undone or was done whole.
pub trait Olap: Send + Sync + 'static {
    /// Returns the guarantees of the engine, and its optional parts.
    fn guarantees(&self) -> Guarantees;

    /// Opens the engine's data, waiting for another process that has it open. Other calls open it themselves; this one
    /// is for callers whose work must not count as started before.
    fn open<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>>;

    /// Takes the data under a leader's epoch, after which holders of earlier epochs can change nothing. If only one
    /// process can have the data open, this opens it.
    fn take<'a>(&'a self, epoch: u64, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>>;

    /// Has the next change [take](Self::take) the data under a leader's epoch, without opening the data now.
    fn lead(&self, _epoch: u64) {}

    /// Returns the newest epoch under which the data had been taken when they were opened; none for data that are not open,
    /// and of an engine that keeps no epochs.
    fn newest_epoch(&self) -> Option<u64> {
        None
    }

    /// Returns what stands for the place of the data: equal for the same place, and nothing can be read from the text. Empty for
    /// a file of the engine's own.
    fn home(&self) -> String {
        String::new()
    }

    /// Returns the stamp of the data by a cheap check without opening it; none if there is no data yet.
    fn stamp(&self) -> BoxFuture<'_, Result<Option<Stamp>, Failure>>;

    /// Waits for running work and closes the data. Returns its stamp; none if there is no data. All later calls fail
    /// with [`Failure::Closed`].
    fn close(&self) -> BoxFuture<'_, Result<Option<Stamp>, Failure>>;

    /// Replaces the statements with which every connection begins.
    fn begin_with(&self, sessions: Vec<Session>);

    /// Permits or forbids the installation of extensions that a build needs, within the engine's own options.
    fn allow_installs(&self, allowed: bool);

    /// Returns how often another process was found to have changed the data while this one did not hold it. Outputs
    /// known from before such a change may be wrong.
    fn changes_by_others(&self) -> u64;

    /// Returns a number that has grown whenever something may have changed since, in the data or in what connections begin
    /// with; none while a change may be under way or the data is not held, and of an engine that does not count.
    fn changes(&self) -> Option<u64> {
        None
    }

    /// Builds outputs or inserts rows into them, each atomically with its checks, tag and record. Readers see the old
    /// output until the new one is complete. Returns the results in order. No build reads the output of another one in
    /// the set.
    ///
    /// What the same uid made under another name before goes with that. Another resource's output of
    /// that name is moved out of the way, not lost. A build that ends out of memory is run once more with nothing
    /// else running.
    fn build_set<'a>(
        &'a self,
        builds: &'a [Build],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Vec<Result<Built, BuildError>>>;

    /// Builds one output, if the engine has the parts that the build needs.
    fn build<'a>(
        &'a self,
        build: &'a Build,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Built, BuildError>> {
        async move {
            build.needs(self)?;
            let mut ends = self.build_set(std::slice::from_ref(build), cancel).await;
            ends.pop().unwrap_or(Err(BuildError::Absent))
        }
        .boxed()
    }

    /// Runs checks against the current outputs and returns their verdicts in order. All of them see the same tables.
    fn check<'a>(
        &'a self,
        checks: &'a [Check],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<Verdict>, Failure>>;

    /// Renames an output without reading its rows; another resource's output of that name is renamed out of the way.
    /// Views of the old name are not rewritten; their owners rebuild them.
    fn rename<'a>(
        &'a self,
        rename: &'a Rename,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Renamed, RenameError>>;

    /// Drops everything tagged with this uid. Tables move to the trash, if the engine keeps one.
    fn drop_output<'a>(
        &'a self,
        uid: Uuid,
        guard: Guard,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Dropped, Failure>>;

    /// Replaces the tag `from` and the record of an output without touching its rows. Returns true if the output
    /// exists.
    fn retag<'a>(
        &'a self,
        from: Tag,
        to: Tag,
        record: &'a [u8],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, Failure>>;

    /// Returns all outputs, ordered by name.
    fn outputs<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<Output>, Failure>>;

    /// Returns the object of a name, whether or not it is ours.
    fn object<'a>(
        &'a self,
        name: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<Object>, Failure>>;

    /// Runs a read-only statement. Its rows arrive in chunks while it runs, with bounded memory.
    fn query<'a>(
        &'a self,
        query: Query,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Rows, QueryError>>;

    /// Writes the result of a read-only statement to a file, which appears atomically.
    fn export<'a>(
        &'a self,
        export: &'a Export,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Exported, ExportError>>;

    /// Returns the part for rows as Arrow batches.
    #[cfg(feature = "arrow")]
    fn batching(&self) -> Result<&dyn Batching, Failure> {
        Err(Failure::lacks("rows as Arrow batches"))
    }

    /// Returns an error unless the engine supports statements around builds.
    fn hooks(&self) -> Result<(), Failure> {
        Err(Failure::lacks("statements around builds"))
    }

    /// Returns the part for building by partitions.
    fn partitions(&self) -> Result<&dyn Partitions, Failure> {
        Err(Failure::lacks("stages of partitions"))
    }

    /// Returns the part for the trash.
    fn trash(&self) -> Result<&dyn Trash, Failure> {
        Err(Failure::lacks("trash"))
    }

    /// Returns the part for migrations.
    fn migrations(&self) -> Result<&dyn Migrations, Failure> {
        Err(Failure::lacks("migrations"))
    }

    /// Returns the part for attaching databases of other systems.
    fn databases(&self) -> Result<&dyn Databases, Failure> {
        Err(Failure::lacks("databases of other systems"))
    }

    /// Returns the part for writing outputs to files and other databases.
    fn elsewhere(&self) -> Result<&dyn Elsewhere, Failure> {
        Err(Failure::lacks("outputs in other places"))
    }

    /// Returns the part for keeping rows that failed tests.
    fn tested_rows(&self) -> Result<&dyn TestedRows, Failure> {
        Err(Failure::lacks("kept rows of tests"))
    }

    /// Returns the part for copies of the engine's catalog.
    fn catalog_copies(&self) -> Result<&dyn CatalogCopies, Failure> {
        Err(Failure::lacks("catalog of its own"))
    }

    /// Returns the part for upkeep of the space that the data take.
    fn upkeep(&self) -> Result<&dyn Upkeep, Failure> {
        Err(Failure::lacks("upkeep of its space"))
    }

    /// Returns the part for the engine's own file.
    fn own_file(&self) -> Result<&dyn OwnFile, Failure> {
        Err(Failure::lacks("file of its own"))
    }
}

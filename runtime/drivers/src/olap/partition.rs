//! Partitions: parts of an output, built one by one into a stage and published together.
//!
//! The stage of an output is a table that nobody reads. Each partition comes into it with a note of its run, in a transaction
//! that it shares with others only where all of them are brief, so a crash costs little beside the partition at work. A [`Build`](super::Build) with a
//! [`StageEnd`](super::StageEnd) publishes what is staged: its rows, its notes and the end of the stage are one transaction.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{BuildError, Failure, Hooks, NewColumns};

/// An engine that can build outputs by partitions.
pub trait Partitions: Send + Sync {
    /// Returns the latest run of each partition of an owner, in the order of the runs.
    fn runs<'a>(
        &'a self,
        uid: Uuid,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<PartitionRun>, Failure>>;

    /// Builds partitions into the stage of their output in one transaction, creating a missing stage: the first, and
    /// further ones until [`StageStep::BRIEF`] has passed. If one fails, none is built. Only a single partition may
    /// have hooks. Returns the notes of the built partitions.
    fn stage<'a>(
        &'a self,
        steps: &'a [StageStep],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<PartitionRun>, BuildError>>;

    /// Writes notes of runs that staged no rows, replacing notes of earlier runs. What earlier runs have staged of partitions
    /// that failed, or that are asked for, is deleted.
    fn note<'a>(
        &'a self,
        uid: Uuid,
        notes: Vec<PartitionRun>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Discards the stage of an output, with its notes.
    fn give_up<'a>(&'a self, uid: Uuid, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>>;
}

/// A part of an output, as its list declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Key of the partition, unique within its output.
    pub key: String,
    /// Row of the list, as a JSON object.
    pub data: String,
    /// Watermark; a changed one causes another build. None for no watermark.
    pub watermark: Option<String>,
}

/// The phase of a partition after its last run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionPhase {
    /// Published: the rows are in the output.
    Done,
    /// Staged: the rows are in the stage.
    Staged,
    /// Failed: rows of an earlier run may be in the output.
    Failed,
    /// Requested by a person to be built again.
    Asked,
    /// Failed and no longer listed. Rows of an earlier run may be in the output.
    Gone,
}

impl PartitionPhase {
    /// All phases, for decoding stored names.
    pub const ALL: [Self; 5] = [Self::Done, Self::Staged, Self::Failed, Self::Asked, Self::Gone];

    /// Returns the name that is stored and displayed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Staged => "staged",
            Self::Failed => "failed",
            Self::Asked => "asked",
            Self::Gone => "gone",
        }
    }
}

/// The note of a partition's last run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionRun {
    /// The partition as of the run.
    pub partition: Partition,
    /// Phase after the run.
    pub phase: PartitionPhase,
    /// Id of the stage; empty once published.
    pub stage: String,
    /// Number of the run, ascending within the output.
    pub number: u64,
    /// Time of the run, in milliseconds since 1970.
    pub at_ms: i64,
    /// Duration of the run, in milliseconds.
    pub took_ms: u64,
    /// Number of rows that the run yielded; none if unknown.
    pub rows: Option<u64>,
    /// Error of a failed run; none if it succeeded.
    pub error: Option<String>,
}

/// A partition to build into the stage of an output.
#[derive(Debug, Clone)]
pub struct StageStep {
    /// Uid of the output's owner.
    pub uid: Uuid,
    /// A single SELECT that yields the rows.
    pub sql: String,
    /// Statements to run before and after. If one after fails, the rows are removed from the stage.
    pub hooks: Hooks,
    /// Treatment of columns that the stage does not have.
    pub columns: NewColumns,
    /// Columns whose values must be unique among the rows; empty for none.
    pub key: Vec<String>,
    /// True if the stage may already contain rows of the partition.
    pub again: bool,
    /// Note to write, completed by duration and number of rows.
    pub note: PartitionRun,
}

impl StageStep {
    /// Time after which a transaction accepts no more partitions, so that a crash loses little work.
    pub const BRIEF: Duration = Duration::from_millis(50);
}

/// Column of the stage with the partition's key.
pub const PARTITION_COLUMN: &str = "_watershed_partition";
/// Column of the stage with the number of the row's run.
pub const RUN_COLUMN: &str = "_watershed_run";

/// Returns the SQL name of the table that holds an owner's stage.
#[must_use]
pub fn stage_table(uid: Uuid) -> String {
    format!("_watershed.stage_{}", uid.simple())
}

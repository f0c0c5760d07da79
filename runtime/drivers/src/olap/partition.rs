//! Partitions: parts of an output that are built one by one into a stage, and published together.
//!
//! The stage of an output is a table that nobody reads. Each partition comes into it with a note of its run, in a transaction
//! that it shares with others only where all of them are brief, so a crash costs little beside the partition at work. A [`Build`](super::Build) with a
//! [`StageEnd`](super::StageEnd) publishes what is staged: its rows, its notes and the end of the stage are one transaction.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{BuildError, Failure, Hooks, NewColumns};

/// An engine that builds outputs by partitions.
pub trait Partitions: Send + Sync {
    /// Returns the latest run of each partition of an owner, in the order of the runs.
    fn runs<'a>(
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
    fn note<'a>(
        &'a self,
        uid: Uuid,
        notes: Vec<PartitionRun>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Throws the stage of an output away, with the notes that were left for it.
    fn give_up<'a>(&'a self, uid: Uuid, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>>;
}

/// A part of an output, as its list has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Its key, unique among those of one output.
    pub key: String,
    /// The row of the list, as a JSON object.
    pub data: String,
    /// Another watermark than before has it built again.
    pub watermark: Option<String>,
}

/// The phase of a partition after its last run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionPhase {
    /// Its rows are in the output.
    Done,
    /// Its rows are in the stage.
    Staged,
    /// Its last run failed. Rows of an earlier one may be in the output.
    Failed,
    /// A person asked for it to be built again.
    Asked,
    /// Its last run failed, and it is listed no more. Rows of an earlier run may be in the output.
    Gone,
}

impl PartitionPhase {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Done, Self::Staged, Self::Failed, Self::Asked, Self::Gone];

    /// As it is stored and shown.
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
    /// The partition as it was then.
    pub partition: Partition,
    /// The phase after the run.
    pub phase: PartitionPhase,
    /// The stage that the run was for; empty once that is published.
    pub stage: String,
    /// The number of the run among those of its output: a later one has a higher number.
    pub number: u64,
    /// The time of the run, milliseconds since the epoch.
    pub at_ms: i64,
    /// Its duration, milliseconds.
    pub took_ms: u64,
    /// Rows that it yielded.
    pub rows: Option<u64>,
    /// The error of a run that failed.
    pub error: Option<String>,
}

/// One partition to build into the stage of an output.
#[derive(Debug, Clone)]
pub struct StageStep {
    /// The owner of the output.
    pub uid: Uuid,
    /// One SELECT.
    pub sql: String,
    /// The statements around it. Its rows are taken out of the stage again when one after it fails.
    pub hooks: Hooks,
    /// The fate of columns that the stage does not have.
    pub columns: NewColumns,
    /// Columns of which no two of its rows have the same values; empty for none.
    pub key: Vec<String>,
    /// Rows of the partition may be in the stage already.
    pub again: bool,
    /// The note to leave. Its duration and rows are filled in.
    pub note: PartitionRun,
}

impl StageStep {
    /// The time after which no more partitions come into a transaction: a crash costs the work of one, and of this time.
    pub const BRIEF: Duration = Duration::from_millis(50);
}

/// The column of the stage that holds a partition's key.
pub const PARTITION_COLUMN: &str = "_watershed_partition";
/// The column of the stage that holds the number of the run that a row comes of.
pub const RUN_COLUMN: &str = "_watershed_run";

/// Returns the table that holds the stage of an owner, as SQL names it.
#[must_use]
pub fn stage_table(uid: Uuid) -> String {
    format!("_watershed.stage_{}", uid.simple())
}

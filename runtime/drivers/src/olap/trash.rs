//! The trash: outputs that no resource refers to any more, kept for a while.
//!
//! An output comes here when its resource goes or when a build takes its place. It keeps its rows, its record and the
//! notes of its partitions; only its name is another. A [`Build`](super::Build) takes it back
//! ([`Step::TakeBack`](super::Step::TakeBack)) without running its statement.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use thiserror::Error;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Failure, OutputKind, Tag};

/// Prefix of the names of tables in the trash. They are in the schema of outputs, since the engine moves no table to
/// another schema.
pub const TRASH_PREFIX: &str = "_watershed_trash_";

/// Returns true if a name is that of a table in the trash.
#[must_use]
pub fn is_in_trash(name: &str) -> bool {
    name.get(..TRASH_PREFIX.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(TRASH_PREFIX))
}

/// Returns the name of a build's output in the trash.
#[must_use]
pub fn trash_table(build: Uuid) -> String {
    format!("{TRASH_PREFIX}{}", build.simple())
}

/// An engine that can keep a trash.
pub trait Trash: Send + Sync {
    /// Returns the outputs in the trash, the latest last.
    fn list<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<Trashed>, Failure>>;

    /// Returns the outputs in the trash that [concern](Trashed::concerns) an owner, the latest last.
    fn concerning<'a>(
        &'a self,
        owner: Uuid,
        name: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<Trashed>, Failure>>;

    /// Returns the outputs in the trash with their sizes, the latest last.
    fn weigh<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<Trashed>, Failure>>;

    /// Sets the limits of the trash, enforced from now on.
    fn limit(&self, limits: TrashLimits);

    /// Returns the limits of the trash, or the defaults if none were set.
    fn limits(&self) -> TrashLimits;

    /// Gives a table in the trash to a person under a name; no resource owns the table any more. On failure it stays in
    /// the trash.
    fn retrieve<'a>(
        &'a self,
        build: Uuid,
        name: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), RetrieveError>>;

    /// Deletes tables in the trash for good and returns their number. If one can't be dropped, the earlier ones are
    /// gone.
    fn empty<'a>(
        &'a self,
        builds: Vec<Uuid>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<usize, Failure>>;

    /// Enforces the limits of the trash now, while no other work runs.
    fn tidy<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>>;

    /// Returns inconsistencies between the trash's tables and its notes.
    fn damage<'a>(
        &'a self,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<TrashDamage>, Failure>>;

    /// Repairs inconsistencies of the trash: removes notes of missing tables, and adds notes of unknown ones, so that
    /// they can be retrieved. Returns the inconsistencies.
    fn mend<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<TrashDamage>, Failure>>;
}

/// An output in the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trashed {
    /// Last owner, and the build, which identifies the output in the trash.
    pub tag: Tag,
    /// Former name of the output.
    pub name: String,
    /// Reason why the output is in the trash.
    pub why: Thrown,
    /// Time at which the output entered the trash, in milliseconds since 1970.
    pub at_ms: i64,
    /// Number of rows; none if unknown.
    pub rows: Option<u64>,
    /// Size in the file, in bytes; none if not measured.
    pub bytes: Option<u64>,
    /// The owner's record; none if there was none.
    pub record: Option<Arc<[u8]>>,
    /// True if other outputs can't displace this one before its retention ends.
    pub protected: bool,
}

impl Trashed {
    /// Returns true if the output belonged to an owner, or had this name.
    #[must_use]
    pub fn concerns(&self, owner: Uuid, name: &str) -> bool {
        self.tag.uid == owner || self.name.eq_ignore_ascii_case(name)
    }
}

/// The reason why an output is in the trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thrown {
    /// Another build replaced the output.
    Replaced,
    /// The output's resource was deleted.
    Deleted,
}

impl Thrown {
    /// All reasons, for decoding stored names.
    pub const ALL: [Self; 2] = [Self::Replaced, Self::Deleted];

    /// Returns the name that is stored and displayed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Replaced => "replaced",
            Self::Deleted => "deleted",
        }
    }
}

impl fmt::Display for Thrown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The limits on size and age of the trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrashLimits {
    /// The most bytes in the file; 0 to keep nothing.
    pub bytes: u64,
    /// Retention of an output.
    pub keep: Duration,
}

impl Default for TrashLimits {
    /// Returns the default limits: 5 GB and a week, enough for some hundred ordinary tables, and little disk space for
    /// projects with large ones.
    fn default() -> Self {
        Self {
            bytes: 5_000_000_000,
            keep: Duration::from_secs(7 * 24 * 60 * 60),
        }
    }
}

/// The fate of an output that a build replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Dropped, with all rows lost.
    Gone,
    /// Moved to the trash if it is a table. A view is dropped, since its definition can be built again as fast.
    Trash,
}

/// The rule for a drop whose tables don't fit into the trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Drop them for good.
    Free,
    /// Refuse the drop.
    Held,
}

/// The result of a drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// Nothing to drop.
    Nothing,
    /// Dropped; tables are in the trash, if one is kept.
    Done,
    /// Refused, because the trash has too little room.
    NoRoom {
        /// Size of the tables, in bytes.
        needs: u64,
        /// Available room in the trash, in bytes.
        room: u64,
    },
}

/// The error of retrieving a table from the trash.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RetrieveError {
    /// The table is no longer in the trash.
    #[error("it is not in the trash any more")]
    Absent,
    /// Another object has the requested name.
    #[error("a {kind} named `{name}` is there already")]
    NameTaken {
        /// Name that is already taken.
        name: String,
        /// Type of the object that has the name.
        kind: OutputKind,
    },
    /// The engine failed for a reason that any call may have.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// An inconsistency of the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrashDamage {
    /// The table of a note is missing.
    Missing {
        /// Build that made the table.
        build: Uuid,
        /// Former name of the output.
        name: String,
    },
    /// A table has no note.
    Unknown {
        /// Name of the table in the engine.
        table: String,
        /// Tag of the table; none if it has none.
        tag: Option<Tag>,
    },
}

impl fmt::Display for TrashDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { name, .. } => {
                write!(
                    f,
                    "the table of `{name}` is not in the trash any more, where a record says it is"
                )
            }
            Self::Unknown { table, .. } => {
                write!(f, "the table `{table}` is in the trash without a record of it")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_the_trash_is_known_by_its_name() {
        assert!(is_in_trash(&trash_table(Uuid::from_u128(7))));
        assert!(is_in_trash("_WATERSHED_trash_x"));
        assert!(!is_in_trash("trash") && !is_in_trash("_watershed_aside_1") && !is_in_trash("é"));
    }
}

//! The trash: outputs that nothing stands for any more, kept for a while.
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

/// The beginning of the names of tables in the trash. They stand beside the outputs, for the engine moves no table to
/// another schema.
pub const TRASH_PREFIX: &str = "_watershed_trash_";

/// Returns whether a name is one of the trash.
#[must_use]
pub fn is_in_trash(name: &str) -> bool {
    name.get(..TRASH_PREFIX.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(TRASH_PREFIX))
}

/// Returns the name that the output of a build has in the trash.
#[must_use]
pub fn trash_table(build: Uuid) -> String {
    format!("{TRASH_PREFIX}{}", build.simple())
}

/// An engine that keeps a trash.
pub trait Trash: Send + Sync {
    /// Returns what is in the trash, the latest last.
    fn list<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<Trashed>, Failure>>;

    /// Returns what of the trash [concerns](Trashed::concerns) an owner, the latest last.
    fn concerning<'a>(
        &'a self,
        owner: Uuid,
        name: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<Trashed>, Failure>>;

    /// Returns everything in the trash with its size, the latest last.
    fn weigh<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<Trashed>, Failure>>;

    /// Sets the bounds of the trash, by which it is tidied from now on.
    fn limit(&self, limits: TrashLimits);

    /// Returns the bounds of the trash, those in use where none were set.
    fn limits(&self) -> TrashLimits;

    /// Gives a table of the trash to a person: it gets a name, and is nobody's output any more. A table that can't be given is in
    /// the trash then as it was.
    fn retrieve<'a>(
        &'a self,
        build: Uuid,
        name: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), RetrieveError>>;

    /// Lets go of tables of the trash for good. Returns how many there were. Where one can't be dropped, those before it are gone.
    fn empty<'a>(
        &'a self,
        builds: Vec<Uuid>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<usize, Failure>>;

    /// Tidies the trash now, with nobody else at work.
    fn tidy<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>>;

    /// Returns what of the trash does not hold together.
    fn damage<'a>(
        &'a self,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<TrashDamage>, Failure>>;

    /// Mends what does not hold together: forgets what is not there, and notes what is, so that it can be given back. Returns what
    /// was found.
    fn mend<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<TrashDamage>, Failure>>;
}

/// An output in the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trashed {
    /// Its last owner, and the build that made it. The build is its identity here.
    pub tag: Tag,
    /// The name that it had.
    pub name: String,
    /// The reason why it is here.
    pub why: Thrown,
    /// The time when it came, milliseconds since the epoch.
    pub at_ms: i64,
    /// Its rows.
    pub rows: Option<u64>,
    /// Its size in the file, if that was looked at.
    pub bytes: Option<u64>,
    /// The record that its owner had left beside it.
    pub record: Option<Arc<[u8]>>,
    /// Nothing else takes its room before its time is over.
    pub protected: bool,
}

impl Trashed {
    /// Returns whether it may be one for an owner whose output is to have this name.
    #[must_use]
    pub fn concerns(&self, owner: Uuid, name: &str) -> bool {
        self.tag.uid == owner || self.name.eq_ignore_ascii_case(name)
    }
}

/// The reason why an output is in the trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thrown {
    /// Another build took its place.
    Replaced,
    /// Its resource is gone.
    Deleted,
}

impl Thrown {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Replaced, Self::Deleted];

    /// As it is stored and shown.
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

/// The bounds of the trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrashLimits {
    /// Bytes in the file. None: nothing is kept.
    pub bytes: u64,
    /// The time for which an output is kept.
    pub keep: Duration,
}

impl Default for TrashLimits {
    /// 5 GB for a week: some hundred ordinary tables, and little on the disk of anybody who has large ones.
    fn default() -> Self {
        Self {
            bytes: 5_000_000_000,
            keep: Duration::from_secs(7 * 24 * 60 * 60),
        }
    }
}

/// The fate of an output that a build takes the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is dropped.
    Gone,
    /// It goes to the trash, if it is a table. A view is its definition, and made again as fast.
    Trash,
}

/// The rule for a drop that the trash has no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Rows that do not fit are let go.
    Free,
    /// Then nothing is dropped.
    Held,
}

/// The end of a drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// There was nothing.
    Nothing,
    /// It is gone; its tables are in the trash, if that keeps anything.
    Done,
    /// It stands as it stood.
    NoRoom {
        /// Bytes of its tables.
        needs: u64,
        /// Bytes that the trash has for them.
        room: u64,
    },
}

/// The errors of giving a table of the trash to a person.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RetrieveError {
    /// It is in the trash no more.
    #[error("it is not in the trash any more")]
    Absent,
    /// Something has the name that it is to get.
    #[error("a {kind} named `{name}` is there already")]
    NameTaken {
        /// The name.
        name: String,
        /// The kind of the object that has it.
        kind: OutputKind,
    },
    /// The engine did not move it.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// A part of the trash that does not hold together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrashDamage {
    /// The table of a record is not there.
    Missing {
        /// The build that made it.
        build: Uuid,
        /// The name that it had.
        name: String,
    },
    /// A table has no record.
    Unknown {
        /// Its name in the engine.
        table: String,
        /// Its tag, if it has one.
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

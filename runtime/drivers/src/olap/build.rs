//! Making and renaming outputs: what is asked and how it can end.

use thiserror::Error;
use uuid::Uuid;

use super::{Failure, OutputKind, SqlError, Tag};

/// An output to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// The name that it is to have.
    pub name: String,
    /// Table or view.
    pub kind: OutputKind,
    /// One SELECT.
    pub sql: String,
    /// The checks that must pass before anybody sees the output.
    pub checks: Vec<Check>,
    /// The owner, and the number of this build.
    pub tag: Tag,
    /// The owner's record, stored beside the output; opaque here.
    pub record: Vec<u8>,
}

/// A condition on an output, looked at within the transaction that makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// One SELECT that returns no row when the condition holds.
    pub sql: String,
    /// The consequence of rows that it returns.
    pub gravity: Gravity,
}

/// The consequence of a check that returns rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gravity {
    /// The build is undone.
    Undoes,
    /// The build stands, and its verdicts say so.
    Warns,
}

/// The verdict of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// No row came back.
    Holds,
    /// Rows came back.
    Fails(Failing),
    /// The engine could not run it. Its places count in the check's SQL.
    Broken(SqlError),
    /// It was not run: an earlier one ended the transaction.
    NotRun,
}

impl Verdict {
    /// Returns true if the build is undone because of it. A check that can't be run undoes it whatever its gravity.
    pub fn undoes(&self, gravity: Gravity) -> bool {
        match self {
            Self::Holds => false,
            Self::Fails(_) => gravity == Gravity::Undoes,
            Self::Broken(_) | Self::NotRun => true,
        }
    }
}

/// The rows that a check returned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failing {
    /// Their number.
    pub rows: u64,
    /// Counting ended there, and there are more.
    pub more: bool,
    /// The first of them: `a = 1, b = x`.
    pub first: Vec<String>,
}

/// A finished build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The rows written; `None` for a view.
    pub rows: Option<u64>,
    /// Times that the statement was run: 2 when the first ended out of memory.
    pub attempts: u32,
    /// The verdicts of the checks, in their order. None undoes the build.
    pub verdicts: Vec<Verdict>,
}

/// The errors of a build. The output of the build before is left as it was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BuildError {
    /// An object that is not ours has that name.
    #[error("a {kind} named `{name}` exists that watershed did not make")]
    NameTaken {
        /// The name.
        name: String,
        /// The kind of the object that has it.
        kind: OutputKind,
    },
    /// Checks undo it: what each came to, in their order.
    #[error("checks undo the build")]
    Undone(Vec<Verdict>),
    /// The engine did not make it.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// An output that is to have another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// The owner of the output.
    pub uid: Uuid,
    /// Its new name. A name that differs in case only is a rename too.
    pub to: String,
    /// Replaces the record, if given.
    pub record: Option<Vec<u8>>,
}

/// A finished rename.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Renamed {
    /// Indexes that a person had made on the table. The engine renames no table that has one, and the next build
    /// would have dropped them too, so they are gone.
    pub dropped_indexes: Vec<String>,
}

/// The errors of a rename. The output is left as it was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RenameError {
    /// Nothing is tagged with that uid: it was dropped by hand, or never built.
    #[error("nothing in the engine belongs to this resource")]
    Absent,
    /// An object that is not ours has the new name.
    #[error("a {kind} named `{name}` exists that watershed did not make")]
    NameTaken {
        /// The name.
        name: String,
        /// The kind of the object that has it.
        kind: OutputKind,
    },
    /// The engine did not rename it.
    #[error(transparent)]
    Failed(#[from] Failure),
}

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
    /// For messages.
    pub name: String,
    /// One SELECT that returns no row when the condition holds.
    pub sql: String,
}

/// A finished build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Built {
    /// The rows written; `None` for a view.
    pub rows: Option<u64>,
    /// Times that the statement was run: 2 when the first ended out of memory.
    pub attempts: u32,
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
    /// A check returned rows.
    #[error("check `{check}` failed: {found}")]
    Check {
        /// The check.
        check: String,
        /// The first row that it returned.
        found: String,
    },
    /// A check could not be run.
    #[error("check `{check}` can't be run: {error}")]
    CheckSql {
        /// The check.
        check: String,
        /// Its places count in the check's SQL.
        error: SqlError,
    },
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

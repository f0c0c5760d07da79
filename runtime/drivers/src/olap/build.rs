//! Making and renaming outputs: what is asked and how it can end.

use std::time::Duration;

use thiserror::Error;
use uuid::Uuid;

use crate::data_file::Form;

use super::{Attached, Failure, Fate, HookError, Hooks, Olap, OutputKind, SqlError, Tag, Value};

/// An output to make, or rows to put into one.
#[derive(Debug, Clone)]
pub struct Build {
    /// The name that it is to have.
    pub name: String,
    /// Table or view.
    pub kind: OutputKind,
    /// One SELECT.
    pub sql: String,
    /// The order in which the rows of a table are written, as ORDER BY takes it.
    pub order_by: Option<String>,
    /// The statements around it.
    pub hooks: Hooks,
    /// The databases of other systems that its statement reads.
    pub databases: Vec<Attached>,
    /// The effect of its rows on those that are there.
    pub step: Step,
    /// It is not known to take longer than [`BRIEF`](Self::BRIEF): it may be committed together with others.
    pub is_brief: bool,
    /// Columns of which no two rows of the statement have the same values; empty for none.
    pub key: Vec<String>,
    /// The checks that must pass before anybody sees the output.
    pub checks: Vec<Check>,
    /// The query whose first row belongs into the record.
    pub state: Option<StateQuery>,
    /// The owner, and the number of this build.
    pub tag: Tag,
    /// The owner's record, stored beside the output; opaque here.
    pub record: Vec<u8>,
    /// The fate of the output that it takes the place of.
    pub replaced: Fate,
    /// The stage whose rows the statement reads, which ends with the build.
    pub stage: Option<StageEnd>,
    /// The number of the build before and its record, which stay where a step brings no rows.
    pub unless_rows: Option<(Uuid, Vec<u8>)>,
    /// Puts names and types of the output's columns into the record. None where nobody asks for them: of a view that costs as
    /// much as to make it.
    pub put_columns: Option<PutColumns>,
    /// The form of the files or objects that the statement reads and does nothing else with: an answer without columns of
    /// their own is refused.
    pub reads: Option<Form>,
}

impl Build {
    /// The longest that a build may take in company, since the others wait for it.
    pub const BRIEF: Duration = Duration::from_millis(50);

    /// A build of a statement alone: nothing around it, no checks, and nothing kept of what it takes the place of.
    #[must_use]
    pub fn of_statement(
        tag: Tag,
        record: Vec<u8>,
        kind: OutputKind,
        name: impl Into<String>,
        sql: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            kind,
            sql: sql.into(),
            order_by: None,
            hooks: Hooks::default(),
            databases: Vec::new(),
            step: Step::Replace,
            is_brief: true,
            key: Vec::new(),
            checks: Vec::new(),
            state: None,
            tag,
            record,
            replaced: Fate::Gone,
            stage: None,
            unless_rows: None,
            put_columns: None,
            reads: None,
        }
    }

    /// Says whether an engine has what the build needs beside a statement.
    pub(super) fn needs(&self, engine: &(impl Olap + ?Sized)) -> Result<(), Failure> {
        if !self.hooks.is_empty() {
            engine.hooks()?;
        }
        if !self.databases.is_empty() {
            engine.databases()?;
        }
        if self.stage.is_some() {
            engine.partitions()?;
        }
        if matches!(self.step, Step::TakeBack(_)) {
            engine.trash()?;
        }
        Ok(())
    }
}

/// The effect of a statement's rows on the rows that are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// They take the place of all.
    Replace,
    /// None are made: the output of this build in the trash takes the place.
    TakeBack(Uuid),
    /// They are put into the table that stands there.
    Into {
        /// The rows that they take the place of.
        over: Over,
        /// The fate of columns that the table does not have.
        columns: NewColumns,
    },
}

/// The rows that new rows take the place of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Over {
    /// None: they are added.
    Nothing,
    /// Those with the same [key](Build::key).
    SameKey,
    /// Those of the partitions that are staged, by their keys. The table holds them in a column of its own.
    Partitions,
    /// All for which an expression has a value that it has for one of the new rows.
    SameValue(String),
}

/// The fate of columns of new rows that the table does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewColumns {
    /// They are an error, as are columns of the table that new rows do not have.
    Refuse,
    /// They are left out; what new rows do not have is NULL.
    Leave,
    /// The table gets them; what rows do not have is NULL. Its columns become wider where the new rows need that.
    Add,
}

/// The end of a stage, as part of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageEnd {
    /// The stage to publish.
    pub stage: String,
    /// The notes of earlier runs go with the rows that they are about.
    pub whole: bool,
}

/// A row: columns by name, in their order.
pub type NamedRow = Vec<(String, Value)>;

/// Puts names and types of columns into a record.
pub type PutColumns = fn(&[u8], Vec<(String, String)>) -> Vec<u8>;

/// A query run after a step, in its transaction: its first row is put into the record.
#[derive(Debug, Clone)]
pub struct StateQuery {
    /// One SELECT.
    pub sql: String,
    /// Puts a row, columns by name, into a record. Without rows the record stays as it is.
    pub put: fn(&[u8], NamedRow) -> Vec<u8>,
}

/// A condition on an output, looked at within the transaction that makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// One SELECT that returns no row when the condition holds.
    pub sql: String,
    /// Another SELECT for the same, run where the engine refuses the first.
    pub otherwise: Option<String>,
    /// The consequence of rows that it returns.
    pub gravity: Gravity,
    /// The most of those rows that are kept.
    pub keep: usize,
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
    /// As many of them as are kept, each as a JSON object.
    pub kept: Vec<String>,
}

/// A finished build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The rows of the output; `None` for a view.
    pub rows: Option<u64>,
    /// The tag of the output: another than was asked for where a step brought no rows.
    pub tag: Tag,
    /// The record beside the output.
    pub record: Vec<u8>,
    /// Times that the statement was run: 2 when the first ended out of memory.
    pub attempts: u32,
    /// The time that the engine worked on it, without what it waited for.
    pub took: Duration,
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
    /// A step is to put rows into a table that is not there, or to take one back that is not in the trash.
    #[error("the table that rows are put into is not there")]
    Absent,
    /// The columns of the new rows are not those of the table.
    #[error("{}", .0)]
    Columns(ColumnsDiffer),
    /// The input of the statement has neither values nor names of columns.
    #[error("what is read is empty, which is no answer: not even the names of its columns are there")]
    NoColumns,
    /// Two of the new rows have one key.
    #[error("two new rows have the same key: {first}")]
    SameKey {
        /// The key: `a = 1, b = 2`.
        first: String,
    },
    /// The query of the state can't be run.
    #[error("the query of the state fails: {}", .0.message)]
    State(SqlError),
    /// The order of the rows can't be had.
    #[error("the rows can't be ordered: {}", .0.message)]
    Order(SqlError),
    /// A statement before the build failed, and the build did not begin.
    #[error("a statement before the build failed: {}", .0.error.message)]
    Before(HookError),
    /// A statement after the build failed.
    #[error("a statement after the build failed: {}", .hook.error.message)]
    After {
        /// The statement.
        hook: HookError,
        /// The error of the build itself. If there is none, the output is the new one.
        build: Option<Box<BuildError>>,
    },
    /// Checks undo it: what each came to, in their order.
    #[error("checks undo the build")]
    Undone(Vec<Verdict>),
    /// The engine did not make it.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl BuildError {
    /// Returns the error of the build itself, whatever became of the statements after it.
    #[must_use]
    pub fn build_error(&self) -> &Self {
        match self {
            Self::After {
                build: Some(build), ..
            } => build.build_error(),
            error => error,
        }
    }
}

/// The columns in which new rows and the table differ.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ColumnsDiffer {
    /// Those that the table does not have.
    pub added: Vec<String>,
    /// Those that the new rows do not have.
    pub missing: Vec<String>,
    /// Those of which the table's type does not hold the new values.
    pub retyped: Vec<RetypedColumn>,
}

/// A column of another type than the table's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetypedColumn {
    /// Its name.
    pub name: String,
    /// Its type in the table.
    pub old: String,
    /// Its type in the new rows.
    pub new: String,
}

impl std::fmt::Display for ColumnsDiffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = |columns: &[String]| format!("`{}`", columns.join("`, `"));
        f.write_str("the columns of the new rows are not those of the table: ")?;
        let mut said = Vec::new();
        if !self.added.is_empty() {
            said.push(format!("the table has no {}", named(&self.added)));
        }
        if !self.missing.is_empty() {
            said.push(format!("the new rows have no {}", named(&self.missing)));
        }
        said.extend(self.retyped.iter().map(|RetypedColumn { name, old, new }| {
            format!("`{name}` is {old} in the table and {new} in the new rows")
        }));
        f.write_str(&said.join(", "))
    }
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

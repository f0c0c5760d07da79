//! Builds and renames of outputs: requests, results and errors.

use std::time::Duration;

use thiserror::Error;
use uuid::Uuid;

use crate::data_file::Form;

use super::{Attached, Failure, Fate, HookError, Hooks, Olap, OutputKind, SqlError, Tag, Value};

/// A request to build an output, or to insert rows into one.
#[derive(Debug, Clone)]
pub struct Build {
    /// Name that the output gets in the engine.
    pub name: String,
    /// Type of the output: table or view.
    pub kind: OutputKind,
    /// A single SELECT that yields the output.
    pub sql: String,
    /// Order in which the rows of a table are written, as in ORDER BY; none for any order.
    pub order_by: Option<String>,
    /// Statements to run before and after the build.
    pub hooks: Hooks,
    /// Databases of other systems that the statement reads.
    pub databases: Vec<Attached>,
    /// Effect of the new rows on existing ones.
    pub step: Step,
    /// Duration of the last build, by which one that is known to take long shares no transaction; none if unknown.
    pub took: Option<Duration>,
    /// Columns whose values must be unique among the new rows; empty for none.
    pub key: Vec<String>,
    /// Checks that must pass before readers see the output.
    pub checks: Vec<Check>,
    /// Query whose first row is stored in the record; none without a state.
    pub state: Option<StateQuery>,
    /// Owner, and id of this build.
    pub tag: Tag,
    /// The owner's record, stored beside the output; opaque to the engine.
    pub record: Vec<u8>,
    /// Fate of the replaced output.
    pub replaced: Fate,
    /// Stage that the statement reads and that ends with the build; none without partitions.
    pub stage: Option<StageEnd>,
    /// Id of the previous build and its record, which remain if the step yields no rows; none to replace them in any
    /// case.
    pub unless_rows: Option<(Uuid, Vec<u8>)>,
    /// Function that stores the names and types of the output's columns in the record; none if not needed, since
    /// describing a view costs as much as making it.
    pub put_columns: Option<PutColumns>,
    /// Format of the files that the statement does nothing but read, so that a result without real columns is refused;
    /// none for other statements.
    pub reads: Option<Form>,
}

impl Build {
    /// Creates a build of a statement alone: without hooks and checks, and with the replaced output dropped.
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
            took: None,
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

    /// Returns an error unless the engine has the parts that the build needs.
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

/// The effect of a statement's rows on existing rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Replace all existing rows.
    Replace,
    /// Restore the output of this build from the trash, without new rows.
    TakeBack(Uuid),
    /// Insert the rows into the existing table.
    Into {
        /// Existing rows that the new ones replace.
        over: Over,
        /// Treatment of columns that the table does not have.
        columns: NewColumns,
    },
}

/// The existing rows that new rows replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Over {
    /// Nothing is replaced: the new rows are appended.
    Nothing,
    /// Rows with the same [key](Build::key).
    SameKey,
    /// Rows of the staged partitions, by the table's column of partition keys.
    Partitions,
    /// Rows for which an expression has the same value as for a new row.
    SameValue(String),
}

/// The treatment of new rows' columns that the table does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewColumns {
    /// Refuse them, as well as missing columns.
    Refuse,
    /// Drop them; missing columns are NULL.
    Leave,
    /// Add them to the table, with NULL in other rows. Types of existing columns are widened as needed.
    Add,
}

/// The publication and end of a stage, as part of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageEnd {
    /// Id of the stage to publish.
    pub stage: String,
    /// True if notes of earlier runs are deleted together with their rows.
    pub whole: bool,
}

/// A row as pairs of column name and value, in order.
pub type NamedRow = Vec<(String, Value)>;

/// A function that stores the names and types of columns in a record.
pub type PutColumns = fn(&[u8], Vec<(String, String)>) -> Vec<u8>;

/// A query that runs after a step in its transaction, and whose first row is stored in the record.
#[derive(Debug, Clone)]
pub struct StateQuery {
    /// A single SELECT, which may read the new output.
    pub sql: String,
    /// Function that stores a row in a record. Without rows, the record stays as it is.
    pub put: fn(&[u8], NamedRow) -> Vec<u8>,
}

/// A condition on an output, checked within the transaction of the build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// A single SELECT that returns the violating rows.
    pub sql: String,
    /// Alternative SELECT that runs if the engine refuses the first; none for no alternative.
    pub otherwise: Option<String>,
    /// Consequence for the build if the check returns rows.
    pub gravity: Gravity,
    /// The most violating rows that are kept.
    pub keep: usize,
}

/// The consequence of a failing check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gravity {
    /// The build is rolled back.
    Undoes,
    /// The build remains, and the verdict is reported.
    Warns,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The check returned no rows.
    Holds,
    /// The check returned violating rows.
    Fails(Failing),
    /// The check could not run. Positions in the error are relative to the check's SQL.
    Broken(SqlError),
    /// The check did not run, because an earlier one aborted the transaction.
    NotRun,
}

impl Verdict {
    /// Returns true if the verdict rolls the build back. A check that can't run always does.
    pub fn undoes(&self, gravity: Gravity) -> bool {
        match self {
            Self::Holds => false,
            Self::Fails(_) => gravity == Gravity::Undoes,
            Self::Broken(_) | Self::NotRun => true,
        }
    }
}

/// The violating rows of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failing {
    /// Number of violating rows.
    pub rows: u64,
    /// True if counting stopped at the limit, and there are more rows.
    pub more: bool,
    /// The first rows as text: `a = 1, b = x`.
    pub first: Vec<String>,
    /// Rows to keep, each as a JSON object.
    pub kept: Vec<String>,
}

/// The result of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// Number of rows of the output; `None` for a view.
    pub rows: Option<u64>,
    /// Tag of the output, which is the previous one if a step had no rows.
    pub tag: Tag,
    /// Record that is now stored beside the output.
    pub record: Vec<u8>,
    /// Number of times that the statement ran: 2 if the first attempt ran out of memory.
    pub attempts: u32,
    /// Time that the engine worked on the build, without waiting.
    pub took: Duration,
    /// Verdicts of the checks in order. No verdict here rolls the build back.
    pub verdicts: Vec<Verdict>,
}

/// The error of a build. The previous output stays as it was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BuildError {
    /// An object that is not ours has the name.
    #[error("a {kind} named `{name}` exists that watershed did not make")]
    NameTaken {
        /// Name that is taken, as spelled in the engine.
        name: String,
        /// Type of the object that has the name.
        kind: OutputKind,
    },
    /// The table to insert into does not exist, or the output to restore is not in the trash.
    #[error("the table that rows are put into is not there")]
    Absent,
    /// The columns of the new rows differ from those of the table.
    #[error("{}", .0)]
    Columns(ColumnsDiffer),
    /// The input of the statement has neither values nor column names.
    #[error("the input is empty: even the names of its columns are missing")]
    NoColumns,
    /// Two of the new rows have the same key.
    #[error("two new rows have the same key: {first}")]
    SameKey {
        /// A duplicate key: `a = 1, b = 2`.
        first: String,
    },
    /// The query of the state can't run.
    #[error("the query of the state fails: {}", .0.message)]
    State(SqlError),
    /// The rows can't be sorted as requested.
    #[error("the rows can't be ordered: {}", .0.message)]
    Order(SqlError),
    /// A statement before the build failed, so the build did not start.
    #[error("a statement before the build failed: {}", .0.error.message)]
    Before(HookError),
    /// A statement after the build failed.
    #[error("a statement after the build failed: {}", .hook.error.message)]
    After {
        /// Failed statement and its error.
        hook: HookError,
        /// Error of the build itself; none if the build succeeded and the output is the new one.
        build: Option<Box<BuildError>>,
    },
    /// Checks rolled the build back; the verdicts of all checks, in order.
    #[error("checks undo the build")]
    Undone(Vec<Verdict>),
    /// The engine failed for a reason that any call may have.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl BuildError {
    /// Returns the error of the build itself, if statements after the build failed too.
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

/// The differences between the columns of new rows and table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ColumnsDiffer {
    /// Columns that the table does not have.
    pub added: Vec<String>,
    /// Columns that the new rows do not have.
    pub missing: Vec<String>,
    /// Columns whose type in the table can't hold the new values.
    pub retyped: Vec<RetypedColumn>,
}

/// A column whose type differs from the table's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetypedColumn {
    /// Name of the column in the table.
    pub name: String,
    /// Type in the table.
    pub old: String,
    /// Type in the new rows.
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

/// A request to rename an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// The owner of the output.
    pub uid: Uuid,
    /// New name. A change of case alone is a rename too.
    pub to: String,
    /// New record; none to keep the current one.
    pub record: Option<Vec<u8>>,
}

/// The result of a rename.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Renamed {
    /// Indexes that a person had made on the table and that were dropped, since the engine renames no table with an
    /// index. The next build would drop them too.
    pub dropped_indexes: Vec<String>,
}

/// The error of a rename. The output stays as it was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RenameError {
    /// No output has this uid in its tag: it was dropped by hand, or never built.
    #[error("nothing in the engine belongs to this resource")]
    Absent,
    /// An object that is not ours has the new name.
    #[error("a {kind} named `{name}` exists that watershed did not make")]
    NameTaken {
        /// Name that is taken, as spelled in the engine.
        name: String,
        /// Type of the object that has the name.
        kind: OutputKind,
    },
    /// The engine failed for a reason that any call may have.
    #[error(transparent)]
    Failed(#[from] Failure),
}

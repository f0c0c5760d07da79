//! Questions to an engine whose words differ between engines: values, of which its driver makes statements.

use uuid::Uuid;
use watershed_dialect::{DataFormat, Dialect, Literal};

use super::{Snapshot, System, TableName, Value};
use crate::objects::Access;

/// A statement whose text is the driver's.
#[derive(Debug, Clone, Copy)]
pub enum Statement<'a> {
    /// All rows of files.
    Files {
        /// Their format.
        format: DataFormat,
        /// A path, an address or a pattern of either; or a list of them.
        paths: &'a Literal,
        /// The ways in which they are read.
        options: &'a [ReaderOption],
    },
    /// One row: the ways in which a file of CSV is taken to be written.
    Guesses {
        /// The path, in which no sign stands for others.
        path: &'a str,
        /// The ways that are known.
        options: &'a [ReaderOption],
        /// Those that are asked for, in the order of the columns.
        asked: &'a [Guess],
    },
    /// All rows of a table of an attached database.
    Table {
        /// The name under which it is attached.
        database: &'a str,
        /// The table, with points between the parts of its name.
        table: &'a str,
    },
    /// The rows with which an attached database answers a query in its own language.
    Query {
        /// The name under which it is attached.
        database: &'a str,
        /// The system that keeps it; one that [answers queries](System::answers_queries).
        system: System,
        /// The query.
        sql: &'a str,
    },
    /// The rows of a query whose time is at most so long before the latest of them.
    Latest {
        /// The query.
        sql: &'a str,
        /// Its column of times.
        column: &'a str,
        /// The length of the time.
        seconds: u32,
    },
    /// One row, about what became of a part of an attached lake: `id` and `made_ns`, the number and the time of the state that
    /// would be read now; `then_ns`, the time of the state `then`; `later`, how many there are since; `touched`, whether one of
    /// these may have changed what is read.
    Changes {
        /// The name under which the lake is attached.
        lake: &'a str,
        /// The table; none for whatever a query reads.
        table: Option<&'a TableName>,
        /// The state that is read, if it is not the newest.
        snapshot: Option<&'a Snapshot>,
        /// The number of the state that was read before; -1 for none.
        then: i64,
    },
    /// All that [`Statements::not_one_expression`] needs to know of texts; none of them is evaluated.
    Expressions(&'a [&'a str]),
    /// Has sessions reach a store for the addresses that begin so; empty if that needs no statement. Whatever is secret in it is
    /// kept in memory alone.
    Access {
        /// The connector, by whose name the access is known.
        connector: &'a str,
        /// The store and the login.
        access: &'a Access,
        /// The beginnings.
        prefixes: &'a [String],
    },
    /// The names and types of a query's columns, a row for each. The query stands at the end as it is, so that places of errors are
    /// places in it plus a constant.
    Columns(&'a str),
    /// The names of functions with equal values for equal arguments, and of types, as far as the engine has them by itself.
    Steady,
    /// The engine's version.
    Version,
    /// The tables and views of a project with their columns and types, a row for each column.
    Catalog,
    /// No row, with the columns of a table.
    Empty(&'a str),
    /// The rows of an output's stage without our columns. Where partitions have rows in common, those of the later run count.
    Staged {
        /// The owner of the output.
        uid: Uuid,
        /// The rows that partitions may have in common.
        common: Common<'a>,
    },
    /// One row if all times of some columns would be others with day and month swapped, and would be times; else none.
    Swappable {
        /// The table.
        table: &'a str,
        /// Its columns of times.
        columns: &'a [&'a str],
    },
    /// Those of some names that match a regular expression.
    Matching {
        /// The names.
        names: &'a [String],
        /// The expression.
        pattern: &'a str,
    },
}

/// The rows that partitions of a stage have in common.
#[derive(Debug, Clone, Copy)]
pub enum Common<'a> {
    /// None.
    None,
    /// Those that agree in these columns.
    Key(&'a [String]),
    /// Those that agree in these expressions of the author's.
    Expressions(&'a str),
    /// Whoever replaces partitions looks himself: the column of partitions is among the others.
    ByPartition,
}

/// A way in which files are read.
#[derive(Debug, Clone, PartialEq)]
pub enum ReaderOption {
    /// An option that all know by this name.
    Known(String, Literal),
    /// An option of the engine, and what its author writes in the engine's own words.
    Own(String, String),
}

/// A way in which files of CSV are written, as far as an engine guesses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guess {
    /// The sign between values.
    Delimiter,
    /// The sign around values.
    Quote,
    /// The first row has names.
    Header,
    /// The form of dates.
    Dates,
    /// The form of times.
    Times,
    /// The form of dates, or that of times where there are no dates.
    DatesOrTimes,
    /// The rows before the first.
    Skipped,
}

/// A driver's way to write statements.
pub trait Statements: Dialect {
    /// Writes a statement.
    fn write(&self, statement: &Statement<'_>) -> String;

    /// Returns those of some texts that are not exactly one expression, given the rows of [`Statement::Expressions`] of the same
    /// texts. One of which the rows say nothing is none.
    fn not_one_expression<'t>(&self, texts: &[&'t str], rows: &[Vec<Value>]) -> Vec<&'t str>;
}

//! Abstract statements whose SQL differs between engines, rendered by the driver.

use uuid::Uuid;
use watershed_dialect::{DataFormat, Dialect, Literal};

use super::{Snapshot, System, TableName, Value};
use crate::objects::Access;

/// An abstract statement, rendered by the driver.
#[derive(Debug, Clone, Copy)]
pub enum Statement<'a> {
    /// All rows of files.
    Files {
        /// Format in which the files are read.
        format: DataFormat,
        /// A path, address or pattern, or a list of them.
        paths: &'a Literal,
        /// Options for the reader, such as a delimiter.
        options: &'a [ReaderOption],
    },
    /// The detected format of a CSV file, as one row.
    Guesses {
        /// Path of the file, without patterns.
        path: &'a str,
        /// Options that are already known.
        options: &'a [ReaderOption],
        /// Properties to detect, in the order of the columns.
        asked: &'a [Guess],
    },
    /// All rows of a table in an attached database.
    Table {
        /// Name under which the database is attached.
        database: &'a str,
        /// Qualified name of the table, with dots between its parts.
        table: &'a str,
    },
    /// The rows of a query that an attached database executes in its own language.
    Query {
        /// Name under which the database is attached.
        database: &'a str,
        /// Type of the database, which [answers queries](System::answers_queries).
        system: System,
        /// Query in the database's language.
        sql: &'a str,
    },
    /// The rows of a query whose time is within an interval before the latest time.
    Latest {
        /// SQL of the query whose latest rows are wanted.
        sql: &'a str,
        /// Name of the column of times.
        column: &'a str,
        /// Length of the interval, in seconds.
        seconds: u32,
    },
    /// Changes of an attached lake, as one row: `id` and `made_ns`, number and time of the snapshot that would be read
    /// now; `then_ns`, the time of snapshot `then`; `later`, the number of snapshots since; `touched`, true if any of
    /// them may have changed the rows that are read.
    Changes {
        /// Name under which the lake is attached.
        lake: &'a str,
        /// Schema of the lake in the database of its catalog; none for the usual one.
        schema: Option<&'a str>,
        /// Table that is read; none for a query.
        table: Option<&'a TableName>,
        /// Snapshot that is read; none for the newest.
        snapshot: Option<&'a Snapshot>,
        /// Number of the snapshot read before; -1 for none.
        then: i64,
    },
    /// Rows that [`Statements::not_one_expression`] needs to know about texts, without evaluating them.
    Expressions(&'a [&'a str]),
    /// A statement that gives sessions access to a store for some addresses; empty if none is needed. Secrets are kept
    /// in memory only.
    Access {
        /// Name of the connector, which identifies the access.
        connector: &'a str,
        /// Store and credentials.
        access: &'a Access,
        /// Prefixes of the addresses to which the access applies.
        prefixes: &'a [String],
    },
    /// A row with name and type for each column of a query. The query is the unchanged end of the text, so that
    /// positions of errors differ by a constant.
    Columns(&'a str),
    /// Names of the engine's deterministic built-in functions, and of its types.
    Steady,
    /// Names of functions and macros that are not built in, each with the name of the database; one row with no function
    /// if there are none.
    Macros,
    /// The version of the engine.
    Version,
    /// A row for each column of the project's tables and views, with its type.
    Catalog,
    /// A row for each of these tables and views, in lower case: its name, and the names and types of its columns.
    Described(&'a [String]),
    /// The columns of a table, without rows.
    Empty(&'a str),
    /// Columns of these names and types of the engine, without rows.
    NoRows(&'a [(String, String)]),
    /// The rows of a query. What is computed from these rows is computed after them, and of no other row.
    Sealed(&'a str),
    /// The rows of an output's stage without our own columns. Of rows that several partitions have in common, those of
    /// the latest run count.
    Staged {
        /// Uid of the output's owner.
        uid: Uuid,
        /// Rule for rows that partitions have in common.
        common: Common<'a>,
    },
    /// A check for swapped dates: one row if all times in some columns would also be valid, and different, with day and
    /// month swapped; otherwise none.
    Swappable {
        /// Name of the table with the times.
        table: &'a str,
        /// Columns of times in the table.
        columns: &'a [&'a str],
    },
    /// A value of a column of texts that has none of a type, as one row; no row if none of the column's values has.
    Unlike {
        /// Name of the table.
        table: &'a str,
        /// Name of the column.
        column: &'a str,
        /// Type, as the engine writes it.
        data_type: &'a str,
    },
    /// The names that match a regular expression.
    Matching {
        /// Names to be matched by the expression.
        names: &'a [String],
        /// The regular expression that names must match.
        pattern: &'a str,
    },
}

/// The rule by which rows of several partitions count as the same.
#[derive(Debug, Clone, Copy)]
pub enum Common<'a> {
    /// No rows are the same.
    None,
    /// Rows with equal values in these columns.
    Key(&'a [String]),
    /// Rows with equal values of these SQL expressions.
    Expressions(&'a str),
    /// All rows are returned with the column of partition keys, by which the caller replaces partitions.
    ByPartition,
}

/// An option for reading files, such as a delimiter.
#[derive(Debug, Clone, PartialEq)]
pub enum ReaderOption {
    /// An option with a name that all engines share, and its value.
    Known(String, Literal),
    /// An option of this engine, and its value as SQL.
    Own(String, String),
}

/// A property of a CSV file's format that an engine can detect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guess {
    /// Separator between values.
    Delimiter,
    /// The character that encloses quoted values.
    Quote,
    /// Presence of a header with column names.
    Header,
    /// Format of dates.
    Dates,
    /// Format of times.
    Times,
    /// Format of dates, or of times if there are no dates.
    DatesOrTimes,
    /// Number of rows skipped before the first.
    Skipped,
}

/// Rendering of abstract statements as SQL of an engine.
pub trait Statements: Dialect {
    /// Renders a statement as SQL.
    fn write(&self, statement: &Statement<'_>) -> String;

    /// Returns the texts that are not exactly one expression, from the rows of [`Statement::Expressions`] for the same
    /// texts. Includes texts without a row.
    fn not_one_expression<'t>(&self, texts: &[&'t str], rows: &[Vec<Value>]) -> Vec<&'t str>;
}

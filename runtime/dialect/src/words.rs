//! Words of an engine's statements, for whoever finds out what a statement reads.

use crate::{DataFormat, Dialect};

/// The meaning of the first argument of a function that is called in a table's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFunction {
    /// Paths of files.
    Files(FileFunction),
    /// Names of tables.
    Table,
    /// A statement.
    Query,
    /// Nothing that is known.
    Other,
}

/// The part of files that a function reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFunction {
    /// Their rows, whatever their names end with.
    Rows(DataFormat),
    /// Documents of JSON, without a look at their values.
    Documents,
    /// Something else: their texts, their names, or what is said of them.
    Whole,
}

/// The words of an engine that statements are read by.
pub trait Words: Dialect {
    /// Returns the meaning of a call in a table's place.
    fn table_function(&self, name: &str) -> TableFunction;

    /// Returns true if a table's name is a path that the engine reads as a file when no table has the name.
    fn names_file(&self, table: &str) -> bool;

    /// Returns true if a type is that of texts.
    fn is_text_type(&self, name: &str) -> bool;

    /// Returns true if a type, as the engine writes it, is one of days or points in time.
    fn is_time_type(&self, name: &str) -> bool;

    /// Returns true if a name without quotes is a value that the engine computes.
    fn is_computed(&self, name: &str) -> bool;

    /// Returns true if statements that begin with a word, in capitals, yield no rows of a table.
    fn yields_no_rows(&self, word: &str) -> bool;
}

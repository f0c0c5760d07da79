//! Keywords and functions by which statements are analysed, for finding out what a statement reads.

use crate::{DataFormat, Dialect};

/// Meaning of the first argument of a table function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFunction {
    /// Paths or patterns of files.
    Files(FileFunction),
    /// The name of a table, as text.
    Table,
    /// A statement as text.
    Query,
    /// No known meaning.
    Other,
}

/// The part of files that a table function reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFunction {
    /// The rows of files, in this format whatever the extension.
    Rows(DataFormat),
    /// Whole JSON documents, without reading their values.
    Documents,
    /// Anything else: texts, names or metadata of files.
    Whole,
}

/// The vocabulary of an engine, by which its statements are analysed.
pub trait Words: Dialect {
    /// Returns the meaning of the first argument of a table function.
    fn table_function(&self, name: &str) -> TableFunction;

    /// Returns true if a table's name is a path that the engine reads as a file when no table has the name.
    fn names_file(&self, table: &str) -> bool;

    /// Returns true if a type holds texts.
    fn is_text_type(&self, name: &str) -> bool;

    /// Returns true if a type, as the engine writes it, holds days or times.
    fn is_time_type(&self, name: &str) -> bool;

    /// Returns true if an unquoted name stands for a value that the engine computes, such as `current_date`.
    fn is_computed(&self, name: &str) -> bool;

    /// Returns true if statements with this first keyword, in capitals, yield no rows of a table.
    fn yields_no_rows(&self, word: &str) -> bool;
}

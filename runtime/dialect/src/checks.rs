//! Questions about rows, for tests of models: compilers write them, where no driver is at hand.

use crate::Dialect;

/// Questions whose rows are those that a test must not find. Names and texts in them are quoted by whoever asks; an answer stands
/// alone as a statement unless it says otherwise.
pub trait Checks: Dialect {
    /// Asks for the values of a column, with their numbers of rows, that are none of some texts, each read as a value of the column's
    /// type. A text that the type does not have, or would have as another value, is that of no row.
    fn unaccepted(&self, table: &str, column: &str, texts: &[String]) -> String;

    /// Asks for the values of a column, with their numbers of rows, that no row of `other` has in its column `key`, whose values are read
    /// as those of the column's type.
    fn unrelated(&self, table: &str, column: &str, other: &str, key: &str) -> String;

    /// Asks, behind a `WITH` that names both, for the rows that only one of two queries yields, each with the word for its side.
    fn difference(&self, expected: &str, actual: &str) -> String;

    /// Returns what gives rows before it the columns of a table that they lack, without a value in any of them.
    fn with_columns_of(&self, table: &str) -> String;

    /// Asks for all rows of a file of CSV as it is found to be written.
    fn file(&self, path: &str) -> String;
}

//! SQL of data tests, which compilers write without a driver at hand.

use crate::Dialect;

/// Queries whose rows are the violations that a data test must not find. The caller quotes names and texts in them;
/// each query is a whole statement unless its method says otherwise.
pub trait Checks: Dialect {
    /// Returns a query for the values of a column that are not among the accepted texts, with their numbers of rows.
    ///
    /// Each text is read as a value of the column's type; a text that the type does not have, or would have as another
    /// value, matches no row.
    fn unaccepted(&self, table: &str, column: &str, texts: &[String]) -> String;

    /// Returns a query for the values of a column that are missing in column `key` of `other`, with their numbers of
    /// rows. The values of `key` are read as the column's type.
    fn unrelated(&self, table: &str, column: &str, other: &str, key: &str) -> String;

    /// Returns a query, to stand behind a `WITH` that names both sides, for the rows that only one of two queries
    /// yields, each with the word for its side.
    fn difference(&self, expected: &str, actual: &str) -> String;

    /// Returns a suffix that adds the missing columns of a table, all null, to the rows of the query before it. Its `columns`, a
    /// list if any, have to be columns of the table.
    fn with_columns_of(&self, table: &str, columns: &str) -> String;

    /// Returns a query for all rows of a CSV file, whose format is detected.
    fn file(&self, path: &str) -> String;
}

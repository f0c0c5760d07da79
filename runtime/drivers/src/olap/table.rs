//! Writing of an output's rows into a table of another database.

use thiserror::Error;
use uuid::Uuid;

use super::{Attached, Failure, Tag};

/// The name of a table in another database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// Name of the schema; none for the database's default.
    pub schema: Option<String>,
    /// Name of the table in its schema.
    pub table: String,
}

impl TableName {
    /// Parses `table` or `schema.table`; none for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('.').collect();
        let (schema, table) = match parts[..] {
            [table] => (None, table),
            [schema, table] => (Some(schema), table),
            _ => return None,
        };
        let whole = !table.is_empty() && schema.is_none_or(|schema| !schema.is_empty());
        whole.then(|| Self {
            schema: schema.map(str::to_owned),
            table: table.to_owned(),
        })
    }
}

/// A request to write an output's rows to a table elsewhere.
#[derive(Debug, Clone)]
pub struct WriteTable {
    /// Name of the output whose rows are written.
    pub output: String,
    /// Database, attached for writing.
    pub database: Attached,
    /// Name of the table in the database.
    pub name: TableName,
    /// Owner and identity of the rows, written to the table's comment.
    pub tag: Tag,
}

/// A request to drop a table elsewhere, if its owner wrote it.
#[derive(Debug, Clone)]
pub struct DropTable {
    /// Database, attached for writing.
    pub database: Attached,
    /// Name of the table in the database.
    pub name: TableName,
    /// Uid of the resource that must have written the table.
    pub owner: Uuid,
}

/// The error of writing or dropping a table of another database, which stays as it was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TableError {
    /// An object without the owner's tag has the name.
    #[error("there is a {kind} that was not written by this model")]
    Taken {
        /// Word for the kind of object, such as a view.
        kind: String,
    },
    /// The schema does not exist.
    #[error("there is no schema \"{0}\"")]
    NoSchema(String),
    /// The database has no type for a column.
    #[error("column \"{column}\" has type {data_type}, for which the database has no type")]
    Type {
        /// Name of the column that can't be written.
        column: String,
        /// Engine's name of the column's type.
        data_type: String,
    },
    /// The database refused a statement; its message.
    #[error("{0}")]
    Refused(String),
    /// The engine, or the connection, failed.
    #[error(transparent)]
    Failed(#[from] Failure),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_part_or_two() {
        let name = |schema: Option<&str>, table: &str| {
            let (schema, table) = (schema.map(str::to_owned), table.to_owned());
            Some(TableName { schema, table })
        };
        assert_eq!(TableName::parse("days"), name(None, "days"));
        assert_eq!(TableName::parse("out.Da\"ys"), name(Some("out"), "Da\"ys"));
        for text in ["", ".", "a.", ".b", "a.b.c"] {
            assert_eq!(TableName::parse(text), None, "{text}");
        }
    }
}

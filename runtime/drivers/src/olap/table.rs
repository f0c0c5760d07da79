//! Writing the rows of an output into a table of another database.

use thiserror::Error;
use uuid::Uuid;

use super::{Attached, Failure, Tag};

/// The name of a table in another database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// The schema; none for the database's usual one.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
}

impl TableName {
    /// Reads `table` or `schema.table`; none if it is neither.
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

/// The rows of an output that are to be a table elsewhere.
#[derive(Debug, Clone)]
pub struct WriteTable {
    /// The output.
    pub output: String,
    /// The database, attached to be written to.
    pub database: Attached,
    /// The table there.
    pub name: TableName,
    /// The owner and what the rows are made of, which the table bears as its comment.
    pub tag: Tag,
}

/// A table that is to go, if it is its owner's.
#[derive(Debug, Clone)]
pub struct DropTable {
    /// The database, attached to be written to.
    pub database: Attached,
    /// The table there.
    pub name: TableName,
    /// The owner.
    pub owner: Uuid,
}

/// The reason why a table of another database was not written or dropped. It is as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TableError {
    /// Something stands there that does not bear the owner's tag.
    #[error("there is a {kind} that was not written by this model")]
    Taken {
        /// The sort of thing.
        kind: String,
    },
    /// There is no such schema.
    #[error("there is no schema \"{0}\"")]
    NoSchema(String),
    /// The database has no type for a column.
    #[error("column \"{column}\" has type {data_type}, for which the database has no type")]
    Type {
        /// The column.
        column: String,
        /// Its type.
        data_type: String,
    },
    /// The database refuses a statement.
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

//! A catalog in the shape of Postgres': small, in memory, and apart from all data.

use std::collections::BTreeSet;
use std::fmt::Debug;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{Failure, Query, QueryError, Rows};

/// The things that a caller sees in a catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Name of the caller.
    pub user: String,
    /// Name of the database that is looked at.
    pub database: String,
    /// All databases, with their numbers.
    pub databases: Vec<(u32, String)>,
    /// Tables and views.
    pub relations: Vec<Relation>,
}

/// A schema of a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// `main`: the outputs of a project.
    Main,
    /// `metrics`: its metrics views.
    Metrics,
}

/// A table or view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// Number of the relation, which no other one has.
    pub oid: u32,
    /// The schema in which the relation stands.
    pub schema: Schema,
    /// Name of the relation.
    pub name: String,
    /// Meaning of the relation, in its author's words; empty if there are none.
    pub description: String,
    /// True for a view.
    pub is_view: bool,
    /// Number of rows; none if it is unknown.
    pub rows: Option<u64>,
    /// Columns in their order.
    pub columns: Vec<Attribute>,
}

/// A column of a relation, with the type that clients are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Name of the column.
    pub name: String,
    /// Meaning of the column, in its author's words; empty if there are none.
    pub description: String,
    /// Number of the type.
    pub oid: u32,
    /// Bytes of a value; -1 for a type of varying length.
    pub size: i16,
    /// Precision and scale in one number; -1 without.
    pub modifier: i32,
}

/// A table without rows, which stands for an output or a metrics view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The schema in which the table stands.
    pub schema: Schema,
    /// Name of the table.
    pub name: String,
    /// Names and types of the columns.
    pub columns: Vec<(String, String)>,
}

/// A catalog that was made. It reaches no file and no other data, whatever it is asked.
pub trait Catalog: Debug + Send + Sync {
    /// Returns the names of the relations, in lower case. Those of `information_schema` begin with that and `_`.
    fn relations(&self) -> &BTreeSet<String>;

    /// Returns the names of the functions of Postgres that are there, in lower case. The engine knows them by
    /// [`function`](Self::function).
    fn functions(&self) -> &BTreeSet<String>;

    /// Returns the engine's name of a function of Postgres.
    fn function(&self, name: &str) -> String;

    /// Returns a statement as text, from the document of its syntax tree. Blocks for less than a millisecond.
    ///
    /// # Errors
    /// When the document is none of a statement.
    fn text(&self, document: &str) -> Result<String, Failure>;

    /// Runs a read-only statement.
    fn query<'a>(
        &'a self,
        query: Query,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Rows, QueryError>>;
}

//! The part of an engine for work with attached databases of other systems.

use std::path::Path;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{Attached, Failure, NamedRow, QueryError, Session, Value};

/// An engine that can attach databases of other systems, which builds may then read.
pub trait Databases: Send + Sync {
    /// Tests the connection to a database by attaching it.
    fn try_out<'a>(
        &'a self,
        database: &'a Attached,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Returns the first row of a query on a database under its attached name.
    fn first_row<'a>(
        &'a self,
        database: &'a Attached,
        sql: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<NamedRow>, Failure>>;

    /// Opens a database file of the engine read-only, and runs the statements for the start of its connections. Returns
    /// the version of the engine.
    fn try_file<'a>(
        &'a self,
        file: &'a Path,
        session: Option<Session>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<Value>, QueryError>>;
}

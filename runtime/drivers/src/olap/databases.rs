//! Work to which databases of other systems are attached.

use std::path::Path;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{Attached, Failure, NamedRow, QueryError, Session, Value};

/// An engine to which databases of other systems can be attached. Builds may read them then.
pub trait Databases: Send + Sync {
    /// Tries whether a database can be attached.
    fn try_out<'a>(
        &'a self,
        database: &'a Attached,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Asks a database: the first row of a query that reads it under its attached name.
    fn first_row<'a>(
        &'a self,
        database: &'a Attached,
        sql: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<NamedRow>, Failure>>;

    /// Opens a file of the engine's own system, which is only looked at, with statements that its connections begin with. Returns
    /// the version of the engine.
    fn try_file<'a>(
        &'a self,
        file: &'a Path,
        session: Option<Session>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<Value>, QueryError>>;
}

//! Work to which databases of other systems are attached.

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{Attached, Failure, NamedRow};

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
}

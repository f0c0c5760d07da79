//! Rows that failed tests, kept for people who look for them.

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Failure;

/// Rows that failed a test, to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRows {
    /// The test.
    pub test: String,
    /// Each as a JSON object.
    pub rows: Vec<String>,
}

/// An engine that keeps the rows that failed tests.
pub trait TestedRows: Send + Sync {
    /// Keeps rows in the place of all that was kept of an owner. `table` is the name of its output.
    fn keep<'a>(
        &'a self,
        owner: Uuid,
        table: &'a str,
        kept: Vec<KeptRows>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Forgets rows that are older than the trash keeps tables.
    fn forget_old<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>>;
}

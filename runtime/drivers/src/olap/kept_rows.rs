//! Rows that failed tests, kept for people to examine.

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Failure;

/// Rows to keep that failed one test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRows {
    /// Name of the data test that the rows failed.
    pub test: String,
    /// Rows, each as a JSON object.
    pub rows: Vec<String>,
}

/// An engine that can keep rows that failed tests.
pub trait TestedRows: Send + Sync {
    /// Replaces all kept rows of an owner. `table` is the name of the owner's output.
    fn keep<'a>(
        &'a self,
        owner: Uuid,
        table: &'a str,
        kept: Vec<KeptRows>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Deletes rows older than the retention of the trash.
    fn forget_old<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>>;
}

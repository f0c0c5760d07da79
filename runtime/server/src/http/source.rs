//! The source of an instance's files, where they are fetched as a whole and not written by callers.

use futures::future::BoxFuture;
use watershed_api::Problem;

/// The files of a commit that were put in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Id of the commit.
    pub commit: String,
    /// True if the files are others than before.
    pub is_changed: bool,
}

/// A source of files, such as a repository with a revision. Neither is chosen by a caller.
pub trait Source: Send + Sync + 'static {
    /// Fetches the files and puts them in the place of those of before, as a whole.
    ///
    /// # Errors
    /// When they can't be fetched or must not be put in place. Then the files of before stay.
    fn checkout(&self) -> BoxFuture<'_, Result<Fetched, Problem>>;

    /// Returns true if `signature` is that of a body under the secret of the source. Without a secret nothing is signed.
    /// Compares in constant time.
    fn is_signed(&self, body: &[u8], signature: &str) -> bool;
}

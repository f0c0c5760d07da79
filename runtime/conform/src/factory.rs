//! Interfaces that a driver implements for the suite: engines on fresh data, and access to the data past the engine.

use std::sync::Arc;

use futures::future::BoxFuture;
use watershed_dialect::Quoting;
use watershed_drivers::olap::{Guarantees, Olap, OutputKind};

/// Opens engines of one driver, and supplies the parts of statements that differ between engines.
pub trait Factory: Send + Sync {
    /// Returns the promises that the engine is held to.
    fn guarantees(&self) -> Guarantees;

    /// Creates a place for data that no other test uses. Dropping the value removes the data.
    fn scratch(&self) -> BoxFuture<'_, Result<Box<dyn Scratch>, String>>;

    /// Returns the quotes of the engine.
    fn quoting(&self) -> &dyn Quoting;

    /// Returns a SELECT whose one column `x` counts from 0 to below `rows`.
    fn numbers(&self, rows: u64) -> String;

    /// Returns a SELECT with a column `x` that runs longer than any test lasts.
    fn endless(&self) -> String;
}

/// The data of one test, and access to them.
pub trait Scratch: Send + Sync {
    /// Opens an engine on these data, as a newly started process would.
    fn open(&self) -> Arc<dyn Olap>;

    /// Closes all engines of these data in an orderly way.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Returns a person who works on these data with the engine's own program; all engines must be closed.
    ///
    /// # Errors
    /// The reason for which nobody can.
    fn person(&self) -> Result<Box<dyn Person>, NotTried>;

    /// Lets another process take ownership of these data under an epoch and build a table there. Fails with the reason for
    /// which there can be none.
    fn rival<'a>(&'a self, epoch: u64, table: &'a str) -> BoxFuture<'a, Result<Rival, NotTried>>;

    /// Starts to take images of the data, as a kill would leave them, at each point where a process could die. None if
    /// the driver knows no such points.
    fn images(&self) -> Option<Box<dyn Images>>;
}

/// The reason for which a case can't be tried on the data at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotTried(pub &'static str);

/// Result of another process's attempt to take the data and build a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rival {
    /// The other process built its table.
    Built,
    /// The engine refused the other process.
    Refused,
}

/// A person who changes the data without Watershed.
pub trait Person {
    /// Makes a table or view, with or without a comment.
    ///
    /// # Errors
    /// The engine's words against it.
    fn make(&self, name: &str, kind: OutputKind, sql: &str, comment: Option<&str>) -> Result<(), String>;

    /// Returns the names of all tables and views in the schema of outputs, sorted.
    ///
    /// # Errors
    /// The engine's words against it.
    fn objects(&self) -> Result<Vec<String>, String>;
}

/// A running series of images of the data.
pub trait Images: Send {
    /// Stops taking images and returns them in order of time.
    fn take(self: Box<Self>) -> Vec<Image>;
}

/// The data as a kill at one point would have left them.
pub struct Image {
    /// Name of the point at which the kill would have happened.
    pub point: String,
    /// True if the call's effect was already committed at that point.
    pub is_after: bool,
    /// A copy of the data as of that point.
    pub scratch: Box<dyn Scratch>,
}

//! The means of a test: engines on fresh data, and what others than the engine do with those data.

use std::sync::Arc;

use futures::future::BoxFuture;
use watershed_dialect::Quoting;
use watershed_drivers::olap::{Guarantees, Olap, OutputKind};

/// Opens engines of one driver, and knows what of a statement is the engine's own.
pub trait Factory: Send + Sync {
    /// Returns the promises that the engine is held to.
    fn guarantees(&self) -> Guarantees;

    /// Makes room for data that nobody else uses. It goes with the value.
    fn scratch(&self) -> BoxFuture<'_, Result<Box<dyn Scratch>, String>>;

    /// Returns the quotes of the engine.
    fn quoting(&self) -> &dyn Quoting;

    /// Returns a SELECT whose one column `x` counts from 0 to below `rows`.
    fn numbers(&self, rows: u64) -> String;

    /// Returns a SELECT of a column `x` that goes on for longer than any test lasts.
    fn endless(&self) -> String;
}

/// Data of one test, and whoever works on them.
pub trait Scratch: Send + Sync {
    /// Returns an engine on these data, as a process has it that starts now.
    fn open(&self) -> Arc<dyn Olap>;

    /// Closes in order all engines that were opened here.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Returns a person who works on these data with the engine's own program, while no engine is open here.
    fn person(&self) -> Box<dyn Person>;

    /// Has another process take these data under an epoch, and make a table of this name there.
    fn rival<'a>(&'a self, epoch: u64, table: &'a str) -> BoxFuture<'a, Rival>;

    /// Begins to keep the data as a kill would leave them, at each point where a process could die. None where no such points are known.
    fn images(&self) -> Option<Box<dyn Images>>;
}

/// The end of another process's try to take data and to build there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rival {
    /// It has built.
    Built,
    /// It was refused.
    Refused,
}

/// A person beside the engine.
pub trait Person {
    /// Makes an object with a comment, or without.
    ///
    /// # Errors
    /// The engine's words against it.
    fn make(&self, name: &str, kind: OutputKind, sql: &str, comment: Option<&str>) -> Result<(), String>;

    /// Returns the names of all tables and views that stand where outputs do, ordered.
    ///
    /// # Errors
    /// The engine's words against it.
    fn objects(&self) -> Result<Vec<String>, String>;
}

/// Images that are being kept.
pub trait Images: Send {
    /// Ends it, and returns what was kept in the order of time.
    fn take(self: Box<Self>) -> Vec<Image>;
}

/// Data as a kill at some point would have left them.
pub struct Image {
    /// The point.
    pub point: String,
    /// The work that the call is about was done there.
    pub is_after: bool,
    /// The data.
    pub scratch: Box<dyn Scratch>,
}

//! Parser of an engine, usable without data.

use std::fmt::Debug;

use super::Failure;

/// The parser of an engine, which executes no statement.
pub trait Parser: Debug + Send + Sync {
    /// Returns the engine's name and version, which determine how statements are parsed.
    fn version(&self) -> String;

    /// Returns a document for each statement in order: its syntax tree or its error. Blocks for about 0.2 ms per
    /// statement, on several threads if there are many.
    ///
    /// # Errors
    /// How the engine itself failed, whatever the statements are.
    fn documents(&self, statements: &[&str]) -> Result<Vec<String>, Failure>;
}

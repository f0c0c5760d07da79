//! An engine's parser, without any data.

use std::fmt::Debug;

use super::Failure;

/// The parser of an engine. Executes nothing.
pub trait Parser: Debug + Send + Sync {
    /// Returns the engine's name and version, which decide how statements are read.
    fn version(&self) -> String;

    /// Returns a document for each statement, in order: its tree, or what is wrong with it. Blocks for about 0.2 ms a
    /// statement, on as many threads as there are cores if there are many.
    ///
    /// # Errors
    /// How the engine itself failed, whatever the statements are.
    fn documents(&self, statements: &[&str]) -> Result<Vec<String>, Failure>;
}

//! Parser of an engine, usable without data.

use std::collections::BTreeSet;
use std::fmt::Debug;

use super::Failure;

/// The built-in names of an engine that a statement may use without reading or changing anything outside of its tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vocabulary {
    /// Functions and macros, in lower case: pure ones, and those that read the clock or draw a random number.
    pub functions: BTreeSet<String>,
    /// Those of the functions that make one value of many rows, in lower case.
    pub aggregates: BTreeSet<String>,
    /// Types, in lower case.
    pub types: BTreeSet<String>,
}

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

    /// Returns the built-in names of an engine without extensions. Blocks for about 20 ms.
    ///
    /// # Errors
    /// How the engine itself failed.
    fn vocabulary(&self) -> Result<Vocabulary, Failure>;
}

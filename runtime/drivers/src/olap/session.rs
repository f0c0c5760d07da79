//! Statements for the start of the engine's connections.

use std::path::PathBuf;

/// The statements of one connector, which run on every connection before any other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Session {
    /// The connector's name, for errors.
    pub connector: String,
    /// The statements, one or more.
    pub sql: String,
    /// True if failures are ignored; work that needs the statements then fails by itself.
    pub optional: bool,
    /// PEM file with authorities that the engine trusts beside public ones, if any.
    pub authorities: Option<PathBuf>,
}

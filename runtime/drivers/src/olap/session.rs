//! Statements with which work in the engine begins.

use std::path::PathBuf;

/// The statements of one connector: they are run on every connection before anything else is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Session {
    /// The connector's name, for errors.
    pub connector: String,
    /// One or more statements.
    pub sql: String,
    /// Work begins even if they fail: what needs them fails by itself.
    pub optional: bool,
    /// A file of certificates (PEM) of authorities that the engine trusts beside the public ones.
    pub authorities: Option<PathBuf>,
}

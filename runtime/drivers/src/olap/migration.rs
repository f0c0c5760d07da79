//! SQL that is run once, with the record that says so.

use uuid::Uuid;

/// SQL to be run once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// The resource.
    pub uid: Uuid,
    /// The version that it is run for.
    pub version: u32,
    /// Stands for what is run.
    pub proof: String,
    /// One or more statements.
    pub sql: String,
}

/// The migration that was run last for a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migrated {
    /// The version that it was run for.
    pub version: u32,
    /// Stands for what was run.
    pub proof: String,
}

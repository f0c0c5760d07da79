//! The engine as another program would use it, for tests that tamper with a file or compare it with a database of their
//! own.

use std::path::Path;
use std::sync::Arc;

use super::sys::{Connection, Database, RawError};
use crate::olap::Value;

/// A database opened without Watershed's settings, tags and records.
///
/// Methods panic with the engine's message where the engine refuses, unless they are tries: it serves tests only.
pub struct ByHand(Connection, Arc<Database>);

impl ByHand {
    /// Opens a file that no other process has open, creating a missing one.
    #[must_use]
    #[track_caller]
    pub fn open(file: &Path) -> Self {
        Self::connect(Some(file))
    }

    /// Opens a file; none if another process has it open.
    #[must_use]
    pub fn try_open(file: &Path) -> Option<Self> {
        connect(Some(file)).ok()
    }

    /// Creates an empty in-memory database.
    #[must_use]
    #[track_caller]
    pub fn in_memory() -> Self {
        Self::connect(None)
    }

    /// Opens another connection to the same database.
    #[must_use]
    #[track_caller]
    pub fn beside(&self) -> Self {
        let connection = Connection::new(&self.1);
        let connection = connection.unwrap_or_else(|RawError(message)| panic!("{message}"));
        Self(connection, Arc::clone(&self.1))
    }

    /// Runs statements and returns the rows of the last one.
    #[track_caller]
    pub fn run(&self, sql: &str) -> Vec<Vec<Value>> {
        self.try_run(sql)
            .unwrap_or_else(|message| panic!("{message}\nin: {sql}"))
    }

    /// Runs statements as [`run`](Self::run) does, but returns errors.
    ///
    /// # Errors
    /// The engine's words against them.
    pub fn try_run(&self, sql: &str) -> Result<Vec<Vec<Value>>, String> {
        let answer = self.0.run(sql, &[]).and_then(|answer| answer.collect());
        answer.map_err(|RawError(message)| message)
    }

    /// Runs statements as [`run`](Self::run) does, and returns each row as text with `|` between the values.
    #[track_caller]
    pub fn lines(&self, sql: &str) -> Vec<String> {
        let line = |row: Vec<Value>| {
            let values = row.iter().map(ToString::to_string);
            values.collect::<Vec<_>>().join("|")
        };
        self.run(sql).into_iter().map(line).collect()
    }

    #[track_caller]
    fn connect(file: Option<&Path>) -> Self {
        connect(file).unwrap_or_else(|RawError(message)| panic!("{message}"))
    }
}

fn connect(file: Option<&Path>) -> Result<ByHand, RawError> {
    let database = Database::open(file, &[])?;
    Ok(ByHand(Connection::new(&database)?, database))
}

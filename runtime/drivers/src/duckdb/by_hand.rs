//! The engine as another program would use it: for tests that meddle with a file, or compare it with one of their own.

use std::path::Path;

use super::sys::{Connection, Database, RawError};
use crate::olap::Value;

/// A database that is opened with no setting of ours and knows nothing of tags and records.
///
/// Every method panics with the engine's message where the engine refuses: it serves tests only.
pub struct ByHand(Connection);

impl ByHand {
    /// Opens a file that nobody else has open; makes it where there is none.
    #[must_use]
    #[track_caller]
    pub fn open(file: &Path) -> Self {
        Self::connect(Some(file))
    }

    /// Opens a file, unless another process has it open.
    #[must_use]
    pub fn try_open(file: &Path) -> Option<Self> {
        let connection = Database::open(Some(file), &[]).and_then(|database| Connection::new(&database));
        connection.ok().map(Self)
    }

    /// An empty database in memory.
    #[must_use]
    #[track_caller]
    pub fn in_memory() -> Self {
        Self::connect(None)
    }

    /// Runs one or more statements; gives back the rows of the last.
    #[track_caller]
    pub fn run(&self, sql: &str) -> Vec<Vec<Value>> {
        let answer = self.0.run(sql, &[]).and_then(|answer| answer.collect());
        answer.unwrap_or_else(|RawError(message)| panic!("{message}\nin: {sql}"))
    }

    /// As [`run`](Self::run), each row as text, its values parted by `|`.
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
        let connection = Database::open(file, &[]).and_then(|database| Connection::new(&database));
        Self(connection.unwrap_or_else(|RawError(message)| panic!("{message}")))
    }
}

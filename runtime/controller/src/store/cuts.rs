//! The common part of stores of rows: reasons why commits fail, and the times at which history is cut to its bounds.

use rustc_hash::FxBuildHasher;
use watershed_core::{CommitError, HistoryRow, Uid};

use super::ColumnError;

/// Entries of history that a resource may have beyond its bound before they are looked for: the search costs more
/// than the entries.
const HISTORY_SLACK: u32 = 32;

/// The interval between two looks for old history, by the times of the entries: an hour.
const AGE_INTERVAL_MS: i64 = 60 * 60 * 1000;

/// The times at which the history of an instance was last cut to its bounds.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    /// By resource, entries written since. One that is not here was not cut by us yet.
    since: std::collections::HashMap<Uid, u32, FxBuildHasher>,
    aged_at: Option<i64>,
}

impl Cuts {
    /// The resources whose history may be longer than its bound.
    pub(super) fn due(&self, history: &[HistoryRow]) -> Vec<Uid> {
        let mut uids: Vec<Uid> = history.iter().map(|entry| entry.uid).collect();
        uids.sort_unstable();
        uids.dedup();
        uids.retain(|uid| {
            self.since
                .get(uid)
                .is_none_or(|written| *written >= HISTORY_SLACK)
        });
        uids
    }

    /// The time of the commit if it is time to look for old history.
    pub(super) fn age_due(&self, history: &[HistoryRow]) -> Option<i64> {
        let now = history.last()?.ended_at.0;
        self.aged_at
            .is_none_or(|last| now - last > AGE_INTERVAL_MS)
            .then_some(now)
    }

    /// A commit with this history is through, and with it what was cut.
    pub(super) fn done(&mut self, history: &[HistoryRow], cut: &[Uid], aged: Option<i64>) {
        for entry in history {
            *self.since.entry(entry.uid).or_default() += 1;
        }
        for uid in cut {
            self.since.insert(*uid, 0);
        }
        self.aged_at = aged.or(self.aged_at);
    }
}

/// The reason why a commit was not written.
#[derive(Debug)]
pub(super) enum Failure {
    LeaseLost,
    /// The disk has no room: of the databases, SQLite alone says so.
    #[cfg_attr(
        not(feature = "sqlite"),
        expect(dead_code, reason = "the other databases don't tell")
    )]
    Full(String),
    Failed(String),
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        #[cfg(feature = "sqlite")]
        if super::codes::is_full(&error) {
            return Self::Full(error.to_string());
        }
        Self::Failed(error.to_string())
    }
}

impl From<ColumnError> for Failure {
    fn from(error: ColumnError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<Failure> for CommitError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::LeaseLost => CommitError::LeaseLost,
            Failure::Full(message) => CommitError::Full(message),
            Failure::Failed(message) => CommitError::Failed(message),
        }
    }
}

impl Failure {
    /// The epoch is checked where the revision moves: no row moves without the lease.
    pub(super) fn unless_moved(rows: u64) -> Result<(), Self> {
        if rows == 1 { Ok(()) } else { Err(Self::LeaseLost) }
    }
}

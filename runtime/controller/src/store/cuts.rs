//! The common part of SQL stores: reasons why commits fail, and the schedule for cutting history to its bounds.

use rustc_hash::FxBuildHasher;
use watershed_core::{CommitError, HistoryRow, Uid};

use super::ColumnError;

/// Number of history entries that a resource may have beyond its bound before a cut, because a search costs more than
/// the entries.
const HISTORY_SLACK: u32 = 32;

/// Interval between cuts of old history, by the times of the entries: an hour, in milliseconds.
const AGE_INTERVAL_MS: i64 = 60 * 60 * 1000;

/// Record of the last cuts of an instance's history.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    /// Number of entries written since the last cut, by resource. A missing resource was not cut by this process yet.
    since: std::collections::HashMap<Uid, u32, FxBuildHasher>,
    aged_at: Option<i64>,
}

impl Cuts {
    /// Returns the resources whose history may exceed its bound.
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

    /// Returns the commit's time, in ms, if old history is due to be cut.
    pub(super) fn age_due(&self, history: &[HistoryRow]) -> Option<i64> {
        let now = history.last()?.ended_at.0;
        self.aged_at
            .is_none_or(|last| now - last > AGE_INTERVAL_MS)
            .then_some(now)
    }

    /// Records a commit with this history, and the cuts made with it.
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

/// Reason why a commit was not written.
#[derive(Debug)]
pub(super) enum Failure {
    LeaseLost,
    /// The disk is full. SQLite is the only database that reports this.
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
    /// Returns an error unless one row was changed: the statement moves the revision only with the right epoch, so no
    /// commit succeeds without the lease.
    pub(super) fn unless_moved(rows: u64) -> Result<(), Self> {
        if rows == 1 { Ok(()) } else { Err(Self::LeaseLost) }
    }
}

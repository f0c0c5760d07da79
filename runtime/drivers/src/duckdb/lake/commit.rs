//! The end of a transaction: what became of it is asked of the lake, whatever the commit said.
//!
//! A commit after a statement that failed succeeds although everything was rolled back, and one whose connection breaks may
//! have done all. So the newest snapshot of this engine tells: it moved, or it did not.

use super::epoch::{Begun, roll_back};
use super::{Lake, Stop, integer, run};
use crate::duckdb::failure::classify;
use crate::duckdb::sys::{Connection, RawError};
use crate::olap::Failure;

/// Newest snapshot that this engine committed.
const LAST: &str = "SELECT id FROM ducklake_last_committed_snapshot('watershed')";

/// Has the commits of a connection tried once.
const ONCE: &str = "SET SESSION ducklake_max_retry_count = 0";
/// Has them tried again as often as usual: the connection may write to other lakes.
const OFTEN: &str = "RESET SESSION ducklake_max_retry_count";

/// Phrases in messages about transactions that lost against another one.
const CONFLICTS: [&str; 5] = [
    "ransaction conflict",
    "database is locked",
    "could not serialize",
    "deadlock detected",
    "duplicate key value violates unique constraint",
];

/// Phrases in messages about connections that are gone.
const LOST: [&str; 11] = [
    "server closed the connection",
    "no connection to the server",
    "connection to server",
    "terminating connection",
    "could not receive data from server",
    "could not send data to server",
    "connection has been closed",
    "onnection reset",
    "Broken pipe",
    "Unable to connect to Postgres",
    // Of statements after the one that found this out.
    "Current transaction is aborted",
];

/// Returns true for a message about a connection that is gone.
pub(in crate::duckdb) fn is_lost(message: &str) -> bool {
    LOST.iter().any(|words| message.contains(words))
}

impl Lake {
    /// Commits a transaction. One that appended no record appends a row for the sake of the fence.
    pub(in crate::duckdb) fn commit(
        &self,
        connection: &Connection,
        begun: Begun,
        is_recorded: bool,
    ) -> Result<(), Stop> {
        if !is_recorded {
            let appended = begun.append_nothing(connection, self.epoch().unwrap_or_default());
            appended.inspect_err(|_| roll_back(connection))?;
        }
        self.settle(connection, begun)
    }

    /// Commits the open transaction, and finds out what became of it.
    pub(super) fn settle(&self, connection: &Connection, begun: Begun) -> Result<(), Stop> {
        run(connection, ONCE).inspect_err(|_| roll_back(connection))?;
        let ended = run(connection, "COMMIT");
        if ended.is_err() {
            roll_back(connection);
        }
        // Failing here says nothing of the commit.
        let _ = run(connection, OFTEN);
        let last = run(connection, LAST).map(|rows| integer(rows.first().and_then(|row| row.first())));
        match (ended, last) {
            (_, Ok(Some(last))) if last > begun.snapshot => {
                let is_next = last == begun.snapshot + 1;
                let mut known = self.known();
                // Otherwise somebody else came between, whose changes are not known.
                let was_known = known.snapshot == Some(begun.snapshot);
                known.snapshot = (is_next && was_known).then_some(last);
                Ok(())
            }
            (Ok(_), Ok(_)) => Err(Stop::RolledBack),
            // The catalog has answered that it did not take all of it.
            (Err(raw), Ok(_)) if matches!(classify(&raw, None).0, Failure::DiskFull { .. }) => {
                self.known().snapshot = None;
                Err(Stop::Raw(raw))
            }
            // A server may say so in any language.
            (Err(raw), Ok(_)) if is_conflict(&raw) || self.is_past(connection, begun) => {
                Err(self.lost_against(connection))
            }
            (Err(raw), _) | (Ok(_), Err(raw)) => {
                let mut known = self.known();
                // Whatever of it is still on its way loses against a take.
                known.must_take = true;
                known.snapshot = None;
                Err(Stop::Unknown(raw))
            }
        }
    }

    /// Returns true if somebody committed since a transaction began.
    fn is_past(&self, connection: &Connection, begun: Begun) -> bool {
        self.snapshot(connection)
            .is_ok_and(|newest| newest != begun.snapshot)
    }

    /// Returns the reason for which a transaction lost: another owner, or anybody's change.
    fn lost_against(&self, connection: &Connection) -> Stop {
        self.known().snapshot = None;
        let is_taking = {
            let known = self.known();
            known.must_take || known.epoch.is_none()
        };
        if is_taking {
            return Stop::Conflict;
        }
        match self.look(connection).map(|seen| self.refuse_others(&seen)) {
            Ok(Err(stop)) => stop,
            Ok(Ok(())) | Err(_) => Stop::Conflict,
        }
    }
}

fn is_conflict(raw: &RawError) -> bool {
    !is_lost(&raw.0) && CONFLICTS.iter().any(|words| raw.0.contains(words))
}

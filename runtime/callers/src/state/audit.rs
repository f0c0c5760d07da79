//! The audit log: operations with effects, with their callers.
//!
//! A call is stored before it is carried out, and completed with its outcome before it is answered. A call without an outcome
//! was interrupted by the end of the process.

use serde::{Deserialize, Serialize};
use sqlx::{Row as _, SqliteConnection};

use super::{State, StateError};

/// Retention of an entry in milliseconds: ninety days.
const KEPT_MS: i64 = 90 * 24 * 3_600_000;
/// The most calls that are kept, so that a flood can't fill the disk.
const CALLS_MAX: i64 = 1_000_000;
/// The most refused calls that are kept.
const REFUSED_MAX: i64 = 100_000;
/// The number of entries after which surplus ones are counted and deleted.
const BETWEEN_COUNTS: i64 = 1_000;

/// An audited operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Time of the call, in milliseconds since 1970.
    pub at_ms: i64,
    /// Caller: a person's e-mail address, or a token's id.
    pub principal: String,
    /// Protocol of the call, such as `http`.
    pub protocol: String,
    /// Instance of the call; none for operations of the service itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Name of the operation.
    pub operation: String,
    /// Resources, file or id that the operation concerns; none if it concerns the whole instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Id of the stored request, if the operation goes on after its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// `done` or the code of the problem; none if the process ended before the outcome was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

/// A page of audit entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditPage {
    /// Entries of the page, the newest first.
    pub entries: Vec<AuditEntry>,
    /// Number before which the next page begins; none on the last page.
    pub next: Option<i64>,
}

/// The kind of an audited call, each with a bound of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audited {
    /// The call is carried out.
    CarriedOut,
    /// The call was refused before anything was done.
    Refused,
}

impl State {
    /// Stores an audit entry and returns its number, and deletes entries that are too old or too many.
    ///
    /// # Errors
    /// When the state can't be written.
    pub async fn audit(&self, entry: &AuditEntry, kind: Audited) -> Result<i64, StateError> {
        let mut connection = self.connection().await;
        let number = sqlx::query("INSERT INTO audit (at_ms, entry, refused) VALUES (?, ?, ?)")
            .bind(entry.at_ms)
            .bind(serde_json::to_string(entry)?)
            .bind(kind == Audited::Refused)
            .execute(&mut *connection)
            .await?
            .last_insert_rowid();
        sqlx::query("DELETE FROM audit WHERE at_ms <= ? - ?")
            .bind(entry.at_ms)
            .bind(KEPT_MS)
            .execute(&mut *connection)
            .await?;
        if number % BETWEEN_COUNTS == 0 {
            keep_last(&mut connection, Audited::CarriedOut, CALLS_MAX).await?;
            keep_last(&mut connection, Audited::Refused, REFUSED_MAX).await?;
        }
        Ok(number)
    }

    /// Completes an audit entry with its outcome.
    ///
    /// # Errors
    /// When the state can't be written.
    pub async fn audit_outcome(&self, number: i64, entry: &AuditEntry) -> Result<(), StateError> {
        let mut connection = self.connection().await;
        sqlx::query("UPDATE audit SET entry = ? WHERE number = ?")
            .bind(serde_json::to_string(entry)?)
            .bind(number)
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    /// Returns the page of entries before a number, the newest first, at most `limit`.
    ///
    /// # Errors
    /// When the state can't be read.
    pub async fn audited(&self, before: Option<i64>, limit: u32) -> Result<AuditPage, StateError> {
        let mut connection = self.connection().await;
        let rows =
            sqlx::query("SELECT number, entry FROM audit WHERE number < ? ORDER BY number DESC LIMIT ?")
                .bind(before.unwrap_or(i64::MAX))
                .bind(i64::from(limit) + 1)
                .fetch_all(&mut *connection)
                .await?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let kept = rows.iter().take(limit);
        let entries = kept.map(|row| Ok(serde_json::from_str(row.try_get("entry")?)?));
        let entries = entries.collect::<Result<Vec<AuditEntry>, StateError>>()?;
        let next = match rows.len() > limit {
            true => rows
                .get(limit.saturating_sub(1))
                .map(|row| row.try_get("number"))
                .transpose()?,
            false => None,
        };
        Ok(AuditPage { entries, next })
    }
}

/// Deletes all entries of a kind but the last ones.
async fn keep_last(connection: &mut SqliteConnection, kind: Audited, most: i64) -> Result<(), StateError> {
    let is_refused = kind == Audited::Refused;
    sqlx::query(
        "DELETE FROM audit WHERE refused = ? AND number <= \
         (SELECT number FROM audit WHERE refused = ? ORDER BY number DESC LIMIT 1 OFFSET ?)",
    )
    .bind(is_refused)
    .bind(is_refused)
    .bind(most)
    .execute(connection)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn s_api20_a_flood_of_refused_calls_pushes_out_no_call_that_was_carried_out() {
        let state = State::in_memory().await.unwrap();
        let entry = |operation: String| AuditEntry {
            at_ms: 5,
            principal: "token:1".into(),
            protocol: "http".into(),
            instance: None,
            operation,
            subject: None,
            request: None,
            outcome: None,
        };
        for number in 0..4 {
            let refused = entry(format!("refused {number}"));
            state.audit(&refused, Audited::Refused).await.unwrap();
            let done = entry(format!("done {number}"));
            state.audit(&done, Audited::CarriedOut).await.unwrap();
        }
        let mut connection = state.connection().await;
        keep_last(&mut connection, Audited::Refused, 1).await.unwrap();
        keep_last(&mut connection, Audited::CarriedOut, 3).await.unwrap();
        drop(connection);
        let kept = state.audited(None, 10).await.unwrap().entries;
        let kept: Vec<&str> = kept.iter().map(|entry| entry.operation.as_str()).collect();
        assert_eq!(kept, ["done 3", "refused 3", "done 2", "done 1"]);
    }
}

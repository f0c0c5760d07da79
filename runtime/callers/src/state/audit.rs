//! The audit log: operations with effects, with their callers.

use serde::{Deserialize, Serialize};
use sqlx::Row as _;

use super::{State, StateError};

/// Retention of an entry in milliseconds: ninety days.
const KEPT_MS: i64 = 90 * 24 * 3_600_000;
/// The most entries that are kept, so that a flood can't fill the disk.
const ENTRIES_MAX: i64 = 1_000_000;

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
    /// Resource, file or id that the operation concerns; none if it concerns no single one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Problem code of the refusal; none if the operation was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A page of audit entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditPage {
    /// Entries of the page, the newest first.
    pub entries: Vec<AuditEntry>,
    /// Number before which the next page begins; none on the last page.
    pub next: Option<i64>,
}

impl State {
    /// Stores an audit entry, and deletes entries that are too old or too many.
    ///
    /// # Errors
    /// When the state can't be written.
    pub async fn audit(&self, entry: &AuditEntry) -> Result<(), StateError> {
        let mut connection = self.connection().await;
        let number = sqlx::query("INSERT INTO audit (at_ms, entry) VALUES (?, ?)")
            .bind(entry.at_ms)
            .bind(serde_json::to_string(entry)?)
            .execute(&mut *connection)
            .await?
            .last_insert_rowid();
        sqlx::query("DELETE FROM audit WHERE at_ms <= ? - ? OR number <= ? - ?")
            .bind(entry.at_ms)
            .bind(KEPT_MS)
            .bind(number)
            .bind(ENTRIES_MAX)
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

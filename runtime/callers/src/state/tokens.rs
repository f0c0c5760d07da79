//! Stored tokens.

use serde::Serialize;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::{State, StateError};
use crate::token::Token;

/// The most tokens that are stored.
pub const TOKENS_MAX: i64 = 10_000;
/// The shortest interval between two updates of a token's last use, in milliseconds, which bounds the writes.
pub(crate) const BETWEEN_NOTES_MS: i64 = 60_000;

/// A stored token with its history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// The stored token, without its secret.
    pub token: Token,
    /// Time of creation, in milliseconds since 1970.
    pub made_ms: i64,
    /// Name of the caller who created the token.
    pub made_by: String,
    /// Time of the last use in milliseconds since 1970, updated at most once a minute; none if never used.
    pub used_ms: Option<i64>,
    /// Time of revocation, in milliseconds since 1970; none if not revoked.
    pub revoked_ms: Option<i64>,
}

fn listed(row: &SqliteRow) -> Result<Listed, StateError> {
    Ok(Listed {
        token: serde_json::from_str(row.try_get("token")?)?,
        made_ms: row.try_get("made_ms")?,
        made_by: row.try_get("made_by")?,
        used_ms: row.try_get("used_ms")?,
        revoked_ms: row.try_get("revoked_ms")?,
    })
}

impl State {
    /// Stores a token. Returns false if [`TOKENS_MAX`] are stored already.
    ///
    /// # Errors
    /// When the state can't be written.
    pub async fn add_token(&self, token: &Token, made_by: &str, now_ms: i64) -> Result<bool, StateError> {
        let mut connection = self.connection().await;
        let added = sqlx::query(
            "INSERT INTO tokens (id, token, made_ms, made_by) SELECT ?, ?, ?, ? WHERE (SELECT count(*) FROM tokens) < ?",
        )
        .bind(&token.id)
        .bind(serde_json::to_string(token)?)
        .bind(now_ms)
        .bind(made_by)
        .bind(TOKENS_MAX)
        .execute(&mut *connection)
        .await?;
        Ok(added.rows_affected() == 1)
    }

    /// Returns the token with an id, also if revoked; none if the id is unknown.
    ///
    /// # Errors
    /// When the state can't be read.
    pub async fn token(&self, id: &str) -> Result<Option<Listed>, StateError> {
        let mut connection = self.connection().await;
        let row = sqlx::query("SELECT * FROM tokens WHERE id = ?")
            .bind(id)
            .fetch_optional(&mut *connection)
            .await?;
        row.as_ref().map(listed).transpose()
    }

    /// Returns all tokens, the newest first.
    ///
    /// # Errors
    /// When the state can't be read.
    pub async fn tokens(&self) -> Result<Vec<Listed>, StateError> {
        let mut connection = self.connection().await;
        let rows = sqlx::query("SELECT * FROM tokens ORDER BY made_ms DESC, id")
            .fetch_all(&mut *connection)
            .await?;
        rows.iter().map(listed).collect()
    }

    /// Revokes a token for good. Returns false if the id is unknown or the token was revoked before.
    ///
    /// # Errors
    /// When the state can't be written.
    pub async fn revoke_token(&self, id: &str, now_ms: i64) -> Result<bool, StateError> {
        let mut connection = self.connection().await;
        let revoked = sqlx::query("UPDATE tokens SET revoked_ms = ? WHERE id = ? AND revoked_ms IS NULL")
            .bind(now_ms)
            .bind(id)
            .execute(&mut *connection)
            .await?;
        Ok(revoked.rows_affected() == 1)
    }

    /// Records the use of a token, at most once a minute.
    ///
    /// # Errors
    /// When the state can't be written.
    pub async fn note_use(&self, id: &str, now_ms: i64) -> Result<(), StateError> {
        let mut connection = self.connection().await;
        sqlx::query("UPDATE tokens SET used_ms = ? WHERE id = ? AND (used_ms IS NULL OR used_ms <= ? - ? OR used_ms > ?)")
            .bind(now_ms)
            .bind(id)
            .bind(now_ms)
            .bind(BETWEEN_NOTES_MS)
            .bind(now_ms)
            .execute(&mut *connection)
            .await?;
        Ok(())
    }
}

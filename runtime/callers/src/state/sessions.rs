//! Sessions of people who have signed in, by the digests of their cookies.

use sqlx::Row as _;

use super::{State, StateError};
use crate::jwt::Claims;
use crate::verifier::Digest;

/// The most sessions that are stored.
pub const SESSIONS_MAX: i64 = 10_000;

/// A stored session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Digest of the cookie's secret.
    pub digest: Digest,
    /// Claims of the person's sign-in.
    pub claims: Claims,
    /// Time of its end, in milliseconds since 1970.
    pub ends_ms: i64,
}

impl State {
    /// Stores a session, and removes those that have ended. Returns false if [`SESSIONS_MAX`] go on.
    ///
    /// # Errors
    /// When the state can't be written.
    pub async fn add_session(&self, session: &Session, now_ms: i64) -> Result<bool, StateError> {
        let claims = serde_json::to_string(&session.claims)?;
        let mut connection = self.connection().await;
        sqlx::query("DELETE FROM sessions WHERE ends_ms <= ?")
            .bind(now_ms)
            .execute(&mut *connection)
            .await?;
        let added = sqlx::query(
            "INSERT INTO sessions (digest, claims, ends_ms) SELECT ?, ?, ? WHERE (SELECT count(*) FROM sessions) < ?",
        )
        .bind(session.digest.to_hex())
        .bind(claims)
        .bind(session.ends_ms)
        .bind(SESSIONS_MAX)
        .execute(&mut *connection)
        .await?;
        Ok(added.rows_affected() == 1)
    }

    /// Removes a session.
    ///
    /// # Errors
    /// When the state can't be written.
    pub async fn end_session(&self, digest: Digest) -> Result<(), StateError> {
        let mut connection = self.connection().await;
        sqlx::query("DELETE FROM sessions WHERE digest = ?")
            .bind(digest.to_hex())
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    /// Returns the sessions that go on.
    ///
    /// # Errors
    /// When the state can't be read.
    pub async fn sessions(&self, now_ms: i64) -> Result<Vec<Session>, StateError> {
        let mut connection = self.connection().await;
        let rows = sqlx::query("SELECT digest, claims, ends_ms FROM sessions WHERE ends_ms > ?")
            .bind(now_ms)
            .fetch_all(&mut *connection)
            .await?;
        let mut sessions = Vec::with_capacity(rows.len());
        for row in rows {
            let digest: String = row.try_get("digest")?;
            // A row that was altered by hand is nobody's.
            let Some(digest) = Digest::from_hex(&digest) else {
                continue;
            };
            sessions.push(Session {
                digest,
                claims: serde_json::from_str(row.try_get("claims")?)?,
                ends_ms: row.try_get("ends_ms")?,
            });
        }
        Ok(sessions)
    }
}

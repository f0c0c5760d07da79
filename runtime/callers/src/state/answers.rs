//! Stored responses by idempotency key, returned again when a call is repeated.

use sqlx::Row as _;

use super::{State, StateError};

/// Retention of an answer in milliseconds: a day, within which jobs retry.
const KEPT_MS: i64 = 24 * 3_600_000;
/// The longest idempotency key, in bytes.
pub const KEY_MAX: usize = 255;
/// The most idempotency keys that are kept for a principal.
pub const KEYS_MAX: i64 = 10_000;
/// The most bytes of answers that are kept for a principal.
const BYTES_MAX: i64 = 64 << 20;

/// A call with an idempotency key.
#[derive(Debug, Clone, Copy)]
pub struct CallKey<'a> {
    /// Principal that makes the call.
    pub principal: &'a str,
    /// Idempotency key, chosen by the caller.
    pub key: &'a str,
    /// Digest of verb, path and body, by which another call under the same key is detected.
    pub call: &'a [u8],
}

/// The response to a call, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status of the response.
    pub status: u16,
    /// Stored headers of the response, as JSON.
    pub headers: String,
    /// Body of the response.
    pub body: Vec<u8>,
}

/// The state of an idempotency key at the arrival of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// The key is new, or the former attempt died with its process: carry out the call.
    Now,
    /// The call was answered before, with this response.
    Before(Answer),
    /// The call is still being carried out.
    Working,
    /// The key was used for another call.
    Another,
    /// The principal has [`KEYS_MAX`] keys already, or answers to them that are too large together.
    TooMany,
}

impl State {
    /// Records the beginning of a call under its key. `is_working` tells whether this process carries out the call; an
    /// unanswered call of an earlier process is begun again.
    ///
    /// # Errors
    /// When the state can't be read or written.
    pub async fn begin(
        &self,
        call: CallKey<'_>,
        is_working: impl FnOnce() -> bool,
        now_ms: i64,
    ) -> Result<Begun, StateError> {
        let mut connection = self.connection().await;
        sqlx::query("DELETE FROM answers WHERE begun_ms <= ? - ?")
            .bind(now_ms)
            .bind(KEPT_MS)
            .execute(&mut *connection)
            .await?;
        let found =
            sqlx::query("SELECT call, status, headers, body FROM answers WHERE principal = ? AND key = ?")
                .bind(call.principal)
                .bind(call.key)
                .fetch_optional(&mut *connection)
                .await?;
        if let Some(row) = found {
            let known: Vec<u8> = row.try_get("call")?;
            let status: Option<u16> = row.try_get("status")?;
            return Ok(match status {
                _ if known != call.call => Begun::Another,
                Some(status) => Begun::Before(Answer {
                    status,
                    headers: row.try_get("headers")?,
                    body: row.try_get("body")?,
                }),
                None if is_working() => Begun::Working,
                None => Begun::Now,
            });
        }
        let added = sqlx::query(
            "INSERT INTO answers (principal, key, call, begun_ms) SELECT ?, ?, ?, ? \
             WHERE (SELECT count(*) < ? AND coalesce(sum(length(body)), 0) < ? FROM answers WHERE principal = ?)",
        )
        .bind(call.principal)
        .bind(call.key)
        .bind(call.call)
        .bind(now_ms)
        .bind(KEYS_MAX)
        .bind(BYTES_MAX)
        .bind(call.principal)
        .execute(&mut *connection)
        .await?;
        Ok(if added.rows_affected() == 1 {
            Begun::Now
        } else {
            Begun::TooMany
        })
    }

    /// Stores the response to a call.
    ///
    /// # Errors
    /// When the state can't be written.
    pub async fn answered(&self, call: CallKey<'_>, answer: &Answer) -> Result<(), StateError> {
        let mut connection = self.connection().await;
        sqlx::query("UPDATE answers SET status = ?, headers = ?, body = ? WHERE principal = ? AND key = ? AND call = ?")
            .bind(answer.status)
            .bind(&answer.headers)
            .bind(&answer.body)
            .bind(call.principal)
            .bind(call.key)
            .bind(call.call)
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    /// Forgets a call that was not answered, so that its key may be used again.
    ///
    /// # Errors
    /// When the state can't be written.
    pub async fn forget(&self, call: CallKey<'_>) -> Result<(), StateError> {
        let mut connection = self.connection().await;
        sqlx::query("DELETE FROM answers WHERE principal = ? AND key = ? AND call = ? AND status IS NULL")
            .bind(call.principal)
            .bind(call.key)
            .bind(call.call)
            .execute(&mut *connection)
            .await?;
        Ok(())
    }
}

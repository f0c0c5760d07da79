//! First answers to calls that came with a key, given again when the call is repeated.

use sqlx::Row as _;

use super::{State, StateError};

/// Milliseconds for which an answer is kept: a nightly job's retry comes within a day.
const KEPT_MS: i64 = 24 * 3_600_000;
/// The longest key, in bytes.
pub const KEY_MAX: usize = 255;
/// The most keys that one principal has at a time.
pub const KEYS_MAX: i64 = 10_000;

/// A call under a key of its caller's.
#[derive(Debug, Clone, Copy)]
pub struct CallKey<'a> {
    /// The caller.
    pub principal: &'a str,
    /// The key.
    pub key: &'a str,
    /// The digest of verb, path and body: another call under the same key is told from a repeated one.
    pub call: &'a [u8],
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Headers that belong to the answer, as JSON.
    pub headers: String,
    /// The body.
    pub body: Vec<u8>,
}

/// The state of a key when a call comes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// The key is new, or its process died before the answer: the work is to be done.
    Now,
    /// The work was done: this was the answer.
    Before(Answer),
    /// The call is being worked on.
    Working,
    /// The key belongs to another call.
    Another,
    /// The principal has [`KEYS_MAX`] keys.
    TooMany,
}

impl State {
    /// Notes that work begins under a key. `is_working` tells whether this process works on the key: what was begun before the
    /// process started, and has no answer, died with its process.
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
             WHERE (SELECT count(*) FROM answers WHERE principal = ?) < ?",
        )
        .bind(call.principal)
        .bind(call.key)
        .bind(call.call)
        .bind(now_ms)
        .bind(call.principal)
        .bind(KEYS_MAX)
        .execute(&mut *connection)
        .await?;
        Ok(if added.rows_affected() == 1 {
            Begun::Now
        } else {
            Begun::TooMany
        })
    }

    /// Keeps the answer to a call.
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
}

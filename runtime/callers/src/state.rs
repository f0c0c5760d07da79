//! The state of a service in its own SQLite file: tokens, attributes of people, responses by idempotency key, and the
//! audit log.
//!
//! One process has the file at a time. A commit that returned survives `kill -9` and a power cut (WAL, `synchronous=FULL`). A file of
//! a newer version is refused and stays as it is; an older one is brought up to date in one transaction.

mod answers;
mod audit;
mod people;
mod sessions;
mod tokens;

use std::path::{Path, PathBuf};

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteLockingMode, SqliteSynchronous,
};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use thiserror::Error;
use tokio::sync::{Mutex, MutexGuard};

pub use answers::{Answer, Begun, CallKey, KEY_MAX, KEYS_MAX};
pub use audit::{AuditEntry, AuditPage, Audited};
pub use sessions::{SESSIONS_MAX, Session};
pub(crate) use tokens::BETWEEN_NOTES_MS;
pub use tokens::{Listed, TOKENS_MAX};

/// Migration scripts of the schema, one for each version.
const MIGRATIONS: [&str; 3] = [
    include_str!("state/v1.sql"),
    include_str!("state/v2.sql"),
    include_str!("state/v3.sql"),
];

/// An error of opening, reading or writing the state.
#[derive(Debug, Error)]
pub enum StateError {
    /// Another process has opened the file.
    #[error("another process has `{path}` open")]
    InUse {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file has a newer schema than this program supports.
    #[error("`{path}` is of version {version}, and this program knows {known} at most")]
    Newer {
        /// Path of the file.
        path: PathBuf,
        /// Schema version of the file.
        version: u32,
        /// Newest supported schema version.
        known: u32,
    },
    /// SQLite has returned an error.
    #[error("the state of the service: {0}")]
    Database(#[from] sqlx::Error),
    /// A row can't be decoded.
    #[error("the state of the service: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// The file can't be created.
    #[error("`{path}`: {error}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
}

/// The open state file of a service.
///
/// # Cancel safety
/// Each call is one transaction: a dropped call has done all of its work or nothing.
pub struct State {
    // One writer at a time is SQLite's rule; all tables here are small, and are asked once for each call at most.
    connection: Mutex<SqliteConnection>,
}

impl State {
    /// Opens or creates the state file, exclusively for this process.
    ///
    /// # Errors
    /// When another process has it, when it is newer than this program, and when it can't be read or written.
    pub async fn open(path: &Path) -> Result<Self, StateError> {
        make_private(path).map_err(|error| StateError::Io {
            path: path.to_owned(),
            error,
        })?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .locking_mode(SqliteLockingMode::Exclusive)
            .foreign_keys(true)
            .busy_timeout(std::time::Duration::ZERO);
        Self::begin_with(options, path).await
    }

    /// Creates a state that ends with the process.
    ///
    /// # Errors
    /// When SQLite has no memory.
    pub async fn in_memory() -> Result<Self, StateError> {
        Self::begin_with(SqliteConnectOptions::new(), Path::new(":memory:")).await
    }

    /// Connects, locks the file for this process, and brings the schema up to date.
    async fn begin_with(options: SqliteConnectOptions, path: &Path) -> Result<Self, StateError> {
        let in_use = |error: sqlx::Error| match is_busy(&error) {
            true => StateError::InUse {
                path: path.to_owned(),
            },
            false => error.into(),
        };
        let mut connection = options.connect().await.map_err(in_use)?;
        // The lock is taken by the first transaction that writes, and kept.
        sqlx::query("BEGIN IMMEDIATE")
            .execute(&mut connection)
            .await
            .map_err(in_use)?;
        let version: u32 = sqlx::query_scalar("PRAGMA user_version")
            .fetch_one(&mut connection)
            .await?;
        let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
        if version > known {
            sqlx::query("ROLLBACK").execute(&mut connection).await?;
            connection.close().await?;
            return Err(StateError::Newer {
                path: path.to_owned(),
                version,
                known,
            });
        }
        for migration in MIGRATIONS.iter().skip(version as usize) {
            sqlx::raw_sql(AssertSqlSafe(*migration))
                .execute(&mut connection)
                .await?;
        }
        let noted = format!("PRAGMA user_version = {known}");
        sqlx::query(AssertSqlSafe(noted)).execute(&mut connection).await?;
        sqlx::query("COMMIT").execute(&mut connection).await?;
        Ok(Self {
            connection: Mutex::new(connection),
        })
    }

    /// Closes the state file.
    ///
    /// # Errors
    /// When SQLite can't move its journal into the file; nothing is lost then either.
    pub async fn close(self) -> Result<(), StateError> {
        Ok(self.connection.into_inner().close().await?)
    }

    async fn connection(&self) -> MutexGuard<'_, SqliteConnection> {
        self.connection.lock().await
    }
}

/// Creates the file with access for its owner only, unless it exists.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
        let file = options.mode(0o600).open(path)?;
        file.set_permissions(std::fs::Permissions::from_mode(0o600))
    }
    #[cfg(not(unix))]
    options.open(path).map(drop)
}

fn is_busy(error: &sqlx::Error) -> bool {
    // SQLITE_BUSY, and its extended codes.
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| code.parse::<u32>().is_ok_and(|code| code & 0xff == 5))
}

#[cfg(test)]
mod tests;

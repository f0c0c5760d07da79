//! Inspection of a catalog before anything is written to it, and the migration of older ones.
//!
//! A damaged or a newer catalog must stay as it is, byte for byte. SQLite writes on many occasions (recovering a
//! journal, switching to WAL, a checkpoint at close), so a file is first read through a connection that can't write,
//! and only a file that this version understands is opened for good.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row, SqliteConnection};

use super::lock::beside;
use super::schema::{MIGRATIONS_TABLE, Migration};
use super::{StoreError, TablePrefix, database};

/// First bytes of a SQLite database.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Number of rows that a connection's thread reads ahead of the decoder: with few, the two threads would wake each
/// other for every handful. About a megabyte in all.
const ROWS_AHEAD: usize = 512;

/// Result of inspecting the path of a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CatalogFile {
    /// No file, or an empty database.
    Nothing,
    /// A sound catalog with this schema version.
    Version(u32),
}

/// Thoroughness of an inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    /// Checks every page.
    Whole,
    /// Checks only the pages that are read for the version.
    Version,
}

/// Returns true if a journal with contents lies beside the catalog.
pub(super) fn has_journal(path: &Path) -> bool {
    fs::metadata(beside(path, "-wal")).is_ok_and(|meta| meta.len() > 0)
}

/// Inspects the file at `path` without changing it, and checks that it is sound.
pub(super) async fn inspect(path: &Path, prefix: &TablePrefix) -> Result<CatalogFile, StoreError> {
    look_into(path, prefix, has_journal(path), Check::Whole).await
}

/// Reads the schema version of the file at `path` without changing it.
pub(super) async fn inspect_version(
    path: &Path,
    prefix: &TablePrefix,
    journal: bool,
) -> Result<CatalogFile, StoreError> {
    look_into(path, prefix, journal, Check::Version).await
}

async fn look_into(
    path: &Path,
    prefix: &TablePrefix,
    journal: bool,
    check: Check,
) -> Result<CatalogFile, StoreError> {
    let io = |source| StoreError::Io {
        path: path.to_owned(),
        source,
    };
    let mut header = Vec::new();
    match File::open(path) {
        Ok(file) => file
            .take(MAGIC.len() as u64)
            .read_to_end(&mut header)
            .map_err(io)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(CatalogFile::Nothing),
        Err(error) => return Err(io(error)),
    };
    if header.is_empty() {
        return Ok(CatalogFile::Nothing);
    }
    let damaged = |message: String| StoreError::Damaged {
        path: path.to_owned(),
        message,
    };
    if header != MAGIC {
        return Err(damaged("it does not begin like a database".to_owned()));
    }
    let result = read_version(path, prefix, journal, check).await;
    result.map_err(|error| match error {
        Unsound::Contents(message) => damaged(message),
        Unsound::Database(error) if is_damage(&error) => damaged(error.to_string()),
        Unsound::Database(error) => database("look into the catalog")(error),
    })
}

/// Reason why a file that begins like a database has no schema version.
enum Unsound {
    Contents(String),
    Database(sqlx::Error),
}

impl From<sqlx::Error> for Unsound {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

async fn read_version(
    path: &Path,
    prefix: &TablePrefix,
    journal: bool,
    check: Check,
) -> Result<CatalogFile, Unsound> {
    // Without a journal beside it the file is all there is, and SQLite need not make its side files either.
    let mut connection = reading(path).immutable(!journal).connect().await?;
    if check == Check::Whole {
        let verdict: String = sqlx::query_scalar("PRAGMA quick_check(1)")
            .fetch_one(&mut connection)
            .await?;
        if verdict != "ok" {
            return Err(Unsound::Contents(verdict));
        }
    }
    let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema")
        .fetch_one(&mut connection)
        .await?;
    let version = version(&mut connection, prefix).await?;
    connection.close().await?;
    match (version, tables) {
        (Some(version), _) => Ok(CatalogFile::Version(version)),
        (None, 0) => Ok(CatalogFile::Nothing),
        (None, _) => Err(Unsound::Contents("it is a database of something else".to_owned())),
    }
}

/// Returns the schema version in the migrations table; none if there is no such table.
pub(super) async fn version(
    connection: &mut SqliteConnection,
    prefix: &TablePrefix,
) -> Result<Option<u32>, sqlx::Error> {
    let table = prefix.apply("{p}migrations");
    let there = sqlx::query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?")
        .bind(table)
        .fetch_optional(&mut *connection)
        .await?;
    if there.is_none() {
        return Ok(None);
    }
    let highest = prefix.apply("SELECT coalesce(max(version), 0) FROM {p}migrations");
    let row = sqlx::query(AssertSqlSafe(highest)).fetch_one(connection).await?;
    row.try_get::<u32, _>(0).map(Some)
}

/// Opens the file for reading and writing, creating it if it is missing.
///
/// With WAL and `synchronous=FULL` a commit that returned survives a power cut.
pub(super) async fn connect(path: &Path) -> Result<SqliteConnection, StoreError> {
    writable(path)
        .connect()
        .await
        .map_err(database("open the catalog"))
}

fn writable(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .row_buffer_size(ROWS_AHEAD)
}

/// Returns options for connections that only read, beside the writer.
pub(super) fn reading(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .read_only(true)
}

/// Copies an older catalog to `<path>.v<version>.bak` before it is migrated.
///
/// What is still in the journal is moved into the file first, so that the copy is whole; the copy comes under its
/// name by a rename, so that a crash leaves no half of one.
pub(super) async fn back_up(path: &Path, version: u32) -> Result<(), StoreError> {
    let mut connection = connect(path).await?;
    let moved = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
        .execute(&mut connection)
        .await;
    moved.map_err(database("move the journal into the catalog"))?;
    connection.close().await.map_err(database("close the catalog"))?;

    let copy = beside(path, &format!(".v{version}.bak"));
    let partial = beside(path, &format!(".v{version}.bak.partial"));
    let io = |source| StoreError::Io {
        path: copy.clone(),
        source,
    };
    fs::copy(path, &partial).map_err(io)?;
    File::open(&partial)
        .and_then(|file| file.sync_all())
        .map_err(io)?;
    fs::rename(&partial, &copy).map_err(io)
}

/// Runs the migrations that the database lacks, in one transaction.
///
/// A database of a newer version is refused and stays as it is.
pub(super) async fn migrate(
    connection: &mut SqliteConnection,
    prefix: &TablePrefix,
    steps: &[Migration],
    now_ms: i64,
) -> Result<(), StoreError> {
    let known = steps.last().map_or(0, |step| step.version);
    let found = version(connection, prefix)
        .await
        .map_err(database("read the catalog's version"))?
        .unwrap_or(0);
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    if found == known {
        return Ok(());
    }
    let failed = database("migrate the catalog");
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(&failed)?;
    run(&mut transaction, prefix.apply(MIGRATIONS_TABLE))
        .await
        .map_err(&failed)?;
    for step in steps.iter().filter(|step| step.version > found) {
        run(&mut transaction, prefix.apply(step.sql))
            .await
            .map_err(&failed)?;
        let record = prefix.apply("INSERT INTO {p}migrations (version, name, applied_at) VALUES (?, ?, ?)");
        let record = sqlx::query(AssertSqlSafe(record))
            .bind(step.version)
            .bind(step.name)
            .bind(now_ms);
        record.execute(&mut *transaction).await.map_err(&failed)?;
    }
    transaction.commit().await.map_err(failed)
}

async fn run(connection: &mut SqliteConnection, sql: String) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(connection)
        .await
        .map(drop)
}

/// Returns true if an error says that the file is not a sound database (SQLITE_CORRUPT, SQLITE_NOTADB).
fn is_damage(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    // Extended codes keep the primary code in their lowest byte.
    code.and_then(|code| code.parse::<u32>().ok())
        .is_some_and(|code| matches!(code & 0xff, 11 | 26))
}

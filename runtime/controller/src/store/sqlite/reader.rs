//! Reads of a catalog file by programs that don't own it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use sqlx::{AssertSqlSafe, ConnectOptions, Connection, SqliteConnection};
use watershed_core::{HistoryRow, Stored, Uid};

use super::open::{self, CatalogFile};
use super::schema::{MIGRATIONS, OLDEST_READABLE};
use super::statements::Statements;
use super::{StoreError, TablePrefix, database, load};

/// Number of attempts to read a file that its owner keeps using.
const LOOKS: usize = 3;

/// A reader of a catalog file: takes no lease, raises no epoch, writes nothing, and neither needs an owner nor disturbs
/// one. Each call sees the committed data of one moment.
///
/// See [`SqliteStore`](super::SqliteStore) for an example.
#[derive(Debug)]
pub struct SqliteReader {
    path: PathBuf,
    statements: Statements,
}

/// Size and modification time of a file, to tell whether it was written to.
type Stamp = Option<(u64, SystemTime)>;

impl SqliteReader {
    /// Creates a reader of the file at `path`. A missing file is an empty catalog.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            statements: Statements::new(&TablePrefix::default()),
        }
    }

    /// Reads the catalog of an instance, with the latest epoch.
    ///
    /// # Errors
    /// When the file is damaged, of another version, or can't be read.
    pub async fn read(&self, instance: &str) -> Result<Stored, StoreError> {
        let statements = &self.statements;
        self.look(async |connection, version| {
            let load = statements.load_of(version);
            let known = sqlx::query(AssertSqlSafe(Arc::clone(&statements.instance))).bind(instance);
            let known = known.fetch_optional(&mut *connection).await;
            match known.map_err(database("read the catalog"))? {
                Some(row) => load::stored(connection, load, instance, &row).await,
                None => Ok(Stored::default()),
            }
        })
        .await
    }

    /// Reads the newest history entries of a resource, newest first, even after its removal.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn history(&self, instance: &str, uid: Uid, limit: u32) -> Result<Vec<HistoryRow>, StoreError> {
        self.look(async |connection, _| {
            load::history(connection, &self.statements, instance, uid, limit).await
        })
        .await
    }

    /// Reads the newest history entries of the instance, newest first, including entries of removed resources.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn recent(&self, instance: &str, limit: u32) -> Result<Vec<HistoryRow>, StoreError> {
        self.look(async |connection, _| load::recent(connection, &self.statements, instance, limit).await)
            .await
    }

    /// Lists the faults that SQLite finds in the file, such as torn pages or wrong indexes; empty if there are none.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn integrity(&self) -> Result<Vec<String>, StoreError> {
        self.look(async |connection, _| {
            let found = sqlx::query_scalar::<_, String>("PRAGMA integrity_check");
            let found = found.fetch_all(&mut *connection).await;
            let found = found.map_err(database("check the catalog's file"))?;
            Ok(found.into_iter().filter(|line| line != "ok").collect())
        })
        .await
    }

    /// Copies the catalog, as of one moment, into a new file without a journal; its owner may go on writing.
    ///
    /// # Errors
    /// When the file can't be read, or the copy can't be written; what there is of that is left.
    pub async fn copy_into(&self, to: &Path) -> Result<(), StoreError> {
        let failed = database("copy the catalog");
        let journal = open::has_journal(&self.path);
        let options = open::reading(&self.path).immutable(!journal);
        let mut connection = options.connect().await.map_err(&failed)?;
        let copied = sqlx::query("VACUUM INTO ?")
            .bind(to.to_string_lossy().into_owned())
            .execute(&mut connection)
            .await;
        connection.close().await.map_err(&failed)?;
        copied.map(drop).map_err(failed)
    }

    /// Reads through a connection that can't write. `read` receives the catalog's schema version.
    ///
    /// Without a journal the file is all there is, and SQLite is told so, for it would make side files otherwise.
    /// Should somebody begin to write meanwhile, the look is taken again.
    async fn look<T: Default>(
        &self,
        read: impl AsyncFn(&mut SqliteConnection, u32) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        for _ in 0..LOOKS {
            let before = self.stamp();
            if before.is_none() {
                return Ok(T::default());
            }
            let journal = open::has_journal(&self.path);
            let result = self.look_once(journal, &read).await;
            let undisturbed = !open::has_journal(&self.path) && self.stamp() == before;
            if journal || undisturbed {
                return result;
            }
        }
        self.look_once(true, &read).await
    }

    async fn look_once<T: Default>(
        &self,
        journal: bool,
        read: &impl AsyncFn(&mut SqliteConnection, u32) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let found = open::inspect_version(&self.path, &TablePrefix::default(), journal).await?;
        let known = MIGRATIONS.last().map_or(0, |step| step.version);
        let version = match found {
            CatalogFile::Nothing => return Ok(T::default()),
            CatalogFile::Version(found) if found > known => return Err(StoreError::Newer { found, known }),
            CatalogFile::Version(found) if found < OLDEST_READABLE => {
                return Err(StoreError::Older { found, known });
            }
            CatalogFile::Version(found) => found,
        };
        let failed = database("read the catalog");
        let options = open::reading(&self.path).immutable(!journal);
        let mut connection = options.connect().await.map_err(&failed)?;
        let mut transaction = connection.begin().await.map_err(&failed)?;
        let result = read(&mut transaction, version).await;
        transaction.rollback().await.map_err(&failed)?;
        connection.close().await.map_err(failed)?;
        result
    }

    fn stamp(&self) -> Stamp {
        stamp(&self.path)
    }
}

fn stamp(path: &Path) -> Stamp {
    let meta = fs::metadata(path).ok()?;
    Some((meta.len(), meta.modified().ok()?))
}

//! Catalogs in SQLite: in a file of their own, or in tables of the embedder's database.
//!
//! A file is opened with WAL and `synchronous=FULL`, and held by a lock of the operating system, so one process at a
//! time uses it and a commit that returned survives `kill -9` and a power cut. A damaged file or one of a newer
//! version is refused and stays as it is, byte for byte; an older one is copied to `<file>.v<N>.bak` and migrated.
//!
//! There is one writing connection, because SQLite has one writer at a time anyway. Every commit checks the epoch in
//! the same transaction, so a controller that lost its lease can't write.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::sync::Unpoisoned;
use sqlx::pool::PoolOptions;
use sqlx::sqlite::{SqliteConnection, SqlitePool};
use sqlx::{AssertSqlSafe, Connection};
use tokio::sync::Mutex;
use watershed_core::{Commit, CommitError, Epoch, HistoryRow, Revision, Stored, Uid};

mod commit;
mod dialect;
mod load;
mod lock;
mod open;
mod reader;
mod schema;
mod statements;
#[cfg(test)]
mod tests;

pub use super::TablePrefix;
pub use reader::SqliteReader;

use self::commit::Writer;
use self::lock::Lock;
use self::open::CatalogFile;
use self::schema::{MIGRATIONS, Migration};
use self::statements::Statements;
use super::columns::{integer, unreadable, value};
use super::{BoxFuture, Catalog, HISTORY_AT_ONCE, Opened, Store, StoreError};
use crate::failpoints::{LEASE_AFTER, LEASE_BEFORE, crash_point};

/// Number of connections that read history beside the writer, for a catalog in a file of its own.
const READERS: u32 = 2;

/// A database with catalogs.
///
/// ```
/// # use watershed_controller::{Context, Error, Outcome, Reconciler};
/// # struct Pages;
/// # impl Reconciler for Pages {
/// #     type Spec = Page;
/// #     type State = Page;
/// #     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
/// #         let page = Page(context.spec().0.clone());
/// #         context.set_state(&page).await?;
/// #         Ok(Outcome::default())
/// #     }
/// # }
/// # #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// # struct Page(String);
/// # watershed_controller::json_message!(Page, format = 1);
/// use watershed_controller::store::{SqliteReader, SqliteStore};
/// use watershed_controller::{Controller, KindOptions, Resource};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("catalog.db");
/// let store = SqliteStore::open(&path).await?;
/// let controller = Controller::builder().store(store).kind(KindOptions::new("page"), Pages).start().await?;
/// controller.create(Resource::declare("page", "home", &Page("hello".into()))?).await?;
///
/// // Anybody may look, also in another process.
/// let stored = SqliteReader::new(&path).read("default").await?;
/// assert_eq!(stored.rows.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SqliteStore {
    database: Arc<Database>,
}

/// State that the store and its open catalogs share; the last owner closes it.
struct Database {
    writer: Mutex<Option<Writer>>,
    readers: SqlitePool,
    statements: Statements,
    ownership: Ownership,
}

/// Owner of the database.
#[derive(Debug)]
enum Ownership {
    /// This store: the file stays locked until the connections are closed.
    Own { _lock: Lock },
    /// The embedder, who also closes it.
    Guest,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("ownership", &self.ownership)
            .finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens a catalog file, creating it if it is missing, and locks other processes out.
    ///
    /// The folder must exist. The lock is on `<path>.lock`.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path.as_ref(), MIGRATIONS).await
    }

    async fn open_with(path: &Path, migrations: &[Migration]) -> Result<Self, StoreError> {
        let prefix = TablePrefix::default();
        let lock = Lock::take(path)?;
        let known = migrations.last().map_or(0, |step| step.version);
        match open::inspect(path, &prefix).await? {
            CatalogFile::Version(found) if found > known => return Err(StoreError::Newer { found, known }),
            CatalogFile::Version(found) if found < known => open::back_up(path, found).await?,
            CatalogFile::Version(_) | CatalogFile::Nothing => {}
        }
        let mut connection = open::connect(path).await?;
        open::migrate(&mut connection, &prefix, migrations, now_ms()).await?;
        let readers = PoolOptions::new()
            .max_connections(READERS)
            .connect_lazy_with(open::reading(path));
        Ok(Self::new(
            connection,
            readers,
            &prefix,
            Ownership::Own { _lock: lock },
        ))
    }

    /// Opens catalogs in the embedder's database, in tables whose names begin with `prefix`, with a migrations table of
    /// their own. Takes one connection out of the pool for writing.
    ///
    /// The embedder keeps other processes out if it must, and decides on the journal mode; commits are made with
    /// `synchronous=FULL` whatever the pool says. Copying an older catalog before it is migrated is the embedder's.
    pub async fn with_pool(pool: SqlitePool, prefix: TablePrefix) -> Result<Self, StoreError> {
        let connection = pool.acquire().await.map_err(database("take a connection"))?;
        let mut connection = connection.detach();
        let full = sqlx::query("PRAGMA synchronous = FULL")
            .execute(&mut connection)
            .await;
        full.map_err(database("ask for durable commits"))?;
        open::migrate(&mut connection, &prefix, MIGRATIONS, now_ms()).await?;
        Ok(Self::new(connection, pool, &prefix, Ownership::Guest))
    }

    fn new(
        connection: SqliteConnection,
        readers: SqlitePool,
        prefix: &TablePrefix,
        ownership: Ownership,
    ) -> Self {
        let writer = Mutex::new(Some(Writer::new(connection)));
        let database = Database {
            writer,
            readers,
            statements: Statements::new(prefix),
            ownership,
        };
        Self {
            database: Arc::new(database),
        }
    }

    /// Closes the database if none of its catalogs is open. Dropping the store does the same, without waiting.
    pub async fn close(self) {
        release(self.database).await;
    }
}

/// Releases one reference to the database. The last one closes it, and then releases the lock.
async fn release(shared: Arc<Database>) {
    let Some(last) = Arc::into_inner(shared) else {
        return;
    };
    if let Ownership::Own { .. } = last.ownership {
        last.readers.close().await;
    }
    if let Some(writer) = last.writer.into_inner() {
        // What was committed is durable already; closing only tidies the journal up.
        let _ = writer.connection.close().await;
    }
}

impl Store for SqliteStore {
    fn open<'a>(&'a self, instance: &'a str) -> BoxFuture<'a, Result<Opened, StoreError>> {
        self.open_above(instance, Epoch::default())
    }

    fn open_above<'a>(&'a self, instance: &'a str, seen: Epoch) -> BoxFuture<'a, Result<Opened, StoreError>> {
        Box::pin(async move {
            let mut writer = self.database.writer.lock().await;
            let writer = writer.as_mut().ok_or_else(closed)?;
            let taken = take_lease(writer, &self.database.statements, instance, seen).await;
            if taken.is_err() {
                writer.undo().await;
            }
            let (stored, last_removal) = taken?;
            let database = StdMutex::new(Some(Arc::clone(&self.database)));
            Ok(Opened {
                stored,
                catalog: Box::new(SqliteCatalog {
                    database,
                    instance: Arc::from(instance),
                    last_removal,
                }),
            })
        })
    }
}

/// Raises the epoch and reads the rows in one transaction: a catalog that can't be read is not changed.
async fn take_lease(
    writer: &mut Writer,
    statements: &Statements,
    instance: &str,
    seen: Epoch,
) -> Result<(Stored, Revision), StoreError> {
    crash_point(LEASE_BEFORE);
    let failed = database("take the lease");
    writer.begin().await.map_err(&failed)?;
    let connection = &mut writer.connection;
    let lease = sqlx::query(AssertSqlSafe(Arc::clone(&statements.open)))
        .bind(instance)
        .bind(integer(seen.0));
    let lease = lease.fetch_one(&mut *connection).await.map_err(&failed)?;
    let stored = load::stored(connection, &statements.load, instance, &lease).await?;
    let removed = value(&lease, 2).map_err(unreadable("read the catalog"))?;
    writer.end().await.map_err(failed)?;
    crash_point(LEASE_AFTER);
    Ok((stored, removed))
}

/// The open catalog of one instance.
#[derive(Debug)]
struct SqliteCatalog {
    /// The database; none once the catalog is closed.
    database: StdMutex<Option<Arc<Database>>>,
    instance: Arc<str>,
    last_removal: Revision,
}

impl SqliteCatalog {
    fn database(&self) -> Option<Arc<Database>> {
        self.database.lock().unpoisoned().clone()
    }
}

impl Catalog for SqliteCatalog {
    fn commit<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, Result<(), CommitError>> {
        Box::pin(async move {
            let closed = || CommitError::Failed(closed().to_string());
            let database = self.database().ok_or_else(closed)?;
            let mut writer = database.writer.lock().await;
            let writer = writer.as_mut().ok_or_else(closed)?;
            writer.commit(&database.statements, &self.instance, commit).await
        })
    }

    fn read(&self) -> BoxFuture<'_, Result<Stored, StoreError>> {
        Box::pin(async move {
            let shared = self.database().ok_or_else(closed)?;
            let failed = database("read the catalog");
            let mut reader = shared.readers.acquire().await.map_err(&failed)?;
            let mut transaction = reader.begin().await.map_err(&failed)?;
            let query = sqlx::query(AssertSqlSafe(Arc::clone(&shared.statements.instance)));
            let found = query.bind(&*self.instance).fetch_one(&mut *transaction).await;
            let found = found.map_err(&failed)?;
            let stored =
                load::stored(&mut transaction, &shared.statements.load, &self.instance, &found).await?;
            transaction.rollback().await.map_err(failed)?;
            Ok(stored)
        })
    }

    fn history<'a>(&'a self, uid: Uid, limit: u32) -> BoxFuture<'a, Result<Vec<HistoryRow>, StoreError>> {
        Box::pin(async move {
            let shared = self.database().ok_or_else(closed)?;
            let mut reader = shared
                .readers
                .acquire()
                .await
                .map_err(database("read the history"))?;
            load::history(&mut reader, &shared.statements, &self.instance, uid, limit).await
        })
    }

    fn recent(&self, limit: u32) -> BoxFuture<'_, Result<Vec<HistoryRow>, StoreError>> {
        Box::pin(async move {
            let shared = self.database().ok_or_else(closed)?;
            let mut reader = shared
                .readers
                .acquire()
                .await
                .map_err(database("read the history"))?;
            load::recent(&mut reader, &shared.statements, &self.instance, limit).await
        })
    }

    fn last_removal(&self) -> Option<Revision> {
        Some(self.last_removal)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let database = self.database.lock().unpoisoned().take();
        Box::pin(async move {
            if let Some(database) = database {
                release(database).await;
            }
        })
    }
}

/// Returns a converter of database errors to store errors, with the failed operation.
fn database(doing: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |source| StoreError::Database {
        doing,
        source: Box::new(source),
    }
}

fn closed() -> StoreError {
    StoreError::Database {
        doing: "use the catalog",
        source: "it is closed".into(),
    }
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

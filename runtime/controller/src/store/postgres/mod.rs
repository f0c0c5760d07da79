//! Catalogs in Postgres: any number of instances, shared by any number of processes.
//!
//! An instance has one holder at a time, by a lease that runs out unless it is renewed. Whoever opens an instance that
//! is held waits: until the holder gives it back, which is announced, or until its lease has run out. Taking the lease
//! raises the epoch, and every commit is conditional on it in its own transaction, so a holder that was away for too
//! long can't write, whatever it believes.
//!
//! All times of leases are the server's. A holder counts from before it asked, so it gives up before anybody can take
//! over.

use std::fmt;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use crate::sync::Unpoisoned;
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, Row as _};
use tokio::sync::Mutex;
use tokio::time::Instant;
use uuid::Uuid;
use watershed_core::{Commit, CommitError, Epoch, HistoryRow, Revision, Stored, Uid};

mod commit;
mod dialect;
mod events;
mod exchange;
mod load;
mod reader;
mod schema;
mod statements;
mod transaction;

pub use reader::{PostgresReader, Revisions};

use self::events::{Event, Events};
use self::exchange::PostgresExchange;
use self::statements::Statements;
use super::columns::{integer, unreadable, value};
use super::cuts::Cuts;
use super::{
    Answers, BoxFuture, Catalog, Exchange, HISTORY_AT_ONCE, Lease, LeaseStatus, Opened, Store, StoreError,
    TablePrefix,
};

/// Default term of a lease: short enough that people hardly notice a takeover, long enough for a database that pauses.
pub const TERM: Duration = Duration::from_secs(10);

/// Default interval at which the lease of a held instance is tried again, in case a notification was lost.
pub const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Reaction to an instance that another process holds.
///
/// See [`PostgresStore`] for an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenHeld {
    /// Waits until the lease is free.
    #[default]
    Wait,
    /// Fails with [`StoreError::Held`].
    Refuse,
}

/// A database with catalogs. Clones count as the same holder of leases.
///
/// ```no_run
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
/// use std::time::Duration;
/// use watershed_controller::store::postgres::WhenHeld;
/// use watershed_controller::store::{PostgresStore, TablePrefix};
/// use watershed_controller::{Controller, KindOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = sqlx::PgPool::connect("postgres://localhost/shop").await?;
/// let store = PostgresStore::new(pool, TablePrefix::default()).await?;
/// let store = store.term(Duration::from_secs(5)).when_held(WhenHeld::Wait);
/// let stored = store.reader().read("default").await?;
/// println!("revision {}, {} resources", stored.revision, stored.rows.len());
///
/// // The code is the same in every process: one of them holds the instance, all can ask.
/// let controller = Controller::builder().store(store).kind(KindOptions::new("page"), Pages).join().await?;
/// # drop(controller);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct PostgresStore {
    database: Arc<Database>,
    term: Duration,
    when_held: WhenHeld,
    look_again: Duration,
}

/// State that the store and its open catalogs share.
struct Database {
    pool: PgPool,
    statements: Statements,
    events: Events,
    /// Identity of this store as a holder of leases.
    holder: Uuid,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("holder", &self.holder)
            .finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens catalogs in the embedder's database, in tables whose names begin with `prefix`, which are created or
    /// migrated now.
    ///
    /// The pool is the embedder's. A commit takes one of its connections for its time, and so does a read; one more is
    /// made beside the pool for announcements, while somebody waits for them.
    ///
    /// # Errors
    /// When the database can't be reached, or its catalog was written by a newer version.
    pub async fn new(pool: PgPool, prefix: TablePrefix) -> Result<Self, StoreError> {
        schema::migrate(&pool, &prefix).await?;
        let database = Database {
            statements: Statements::new(&prefix),
            events: Events::new(pool.clone(), prefix.apply("{p}events")),
            pool,
            holder: Uuid::now_v7(),
        };
        Ok(Self {
            database: Arc::new(database),
            term: TERM,
            when_held: WhenHeld::default(),
            look_again: LOOK_AGAIN,
        })
    }

    /// Sets the term of leases; [`TERM`] unless set. A holder without a renewal starts nothing after half of the term,
    /// and stops after two thirds.
    #[must_use]
    pub fn term(mut self, term: Duration) -> Self {
        self.term = term;
        self
    }

    /// Sets the reaction to an instance that another process holds; waits by default.
    #[must_use]
    pub fn when_held(mut self, when_held: WhenHeld) -> Self {
        self.when_held = when_held;
        self
    }

    /// Sets the interval at which the lease of a held instance is tried again; [`LOOK_AGAIN`] unless set. A leader that
    /// shuts down announces that, so nobody waits this long.
    #[must_use]
    pub fn look_again(mut self, interval: Duration) -> Self {
        self.look_again = interval;
        self
    }

    /// Returns a reader of catalogs that takes no lease.
    pub fn reader(&self) -> PostgresReader {
        PostgresReader::new(Arc::clone(&self.database))
    }
}

impl Store for PostgresStore {
    fn open<'a>(&'a self, instance: &'a str) -> BoxFuture<'a, Result<Opened, StoreError>> {
        self.open_above(instance, Epoch::default())
    }

    fn open_above<'a>(&'a self, instance: &'a str, seen: Epoch) -> BoxFuture<'a, Result<Opened, StoreError>> {
        Box::pin(async move {
            let ClaimedCall {
                since,
                epoch,
                last_removal,
            } = self.campaign(instance, seen).await?;
            let catalog = PostgresCatalog {
                database: Arc::clone(&self.database),
                exchange: self.exchange_of(instance),
                instance: Arc::from(instance),
                epoch,
                last_removal,
                lease: StdMutex::new(Lease {
                    term: self.term,
                    since,
                }),
                cuts: Mutex::default(),
            };
            match catalog.load().await {
                Ok(stored) => Ok(Opened {
                    stored,
                    catalog: Box::new(catalog),
                }),
                Err(error) => {
                    catalog.close().await;
                    Err(error)
                }
            }
        })
    }

    fn exchange(&self, instance: &str) -> Option<Arc<dyn Exchange>> {
        Some(Arc::new(self.exchange_of(instance)))
    }
}

/// A lease that was just taken.
struct ClaimedCall {
    /// Time at which the lease was requested.
    since: Instant,
    epoch: Epoch,
    last_removal: Revision,
}

impl PostgresStore {
    fn exchange_of(&self, instance: &str) -> PostgresExchange {
        PostgresExchange {
            database: Arc::clone(&self.database),
            instance: Arc::from(instance),
            term: self.term,
        }
    }

    /// Takes the lease, now or once it is free.
    async fn campaign(&self, instance: &str, seen: Epoch) -> Result<ClaimedCall, StoreError> {
        if let Some(taken) = self.take(instance, seen).await? {
            return Ok(taken);
        }
        if self.when_held == WhenHeld::Refuse {
            let for_ms = self.held_for(instance).await?.as_millis();
            return Err(StoreError::Held {
                instance: instance.to_owned(),
                for_ms: u64::try_from(for_ms).unwrap_or(u64::MAX),
            });
        }
        let mut events = self.database.events.follow(instance);
        loop {
            // Looked at after the subscription, so that no announcement falls in between.
            if let Some(taken) = self.take(instance, seen).await? {
                return Ok(taken);
            }
            let wait = self.held_for(instance).await?.min(self.look_again);
            let released = |event: &Event| *event == Event::Released(instance.to_owned());
            // Whether it was released, ran out or is merely looked at again: the next take tells.
            let _ = tokio::time::timeout(wait, events.until(released)).await;
        }
    }

    async fn take(&self, instance: &str, seen: Epoch) -> Result<Option<ClaimedCall>, StoreError> {
        let failed = database("take the lease");
        let asked = Instant::now();
        let sql = AssertSqlSafe(Arc::clone(&self.database.statements.take));
        let taken = sqlx::query(sql)
            .bind(instance)
            .bind(self.database.holder)
            .bind(milliseconds(self.term))
            .bind(integer(seen.0))
            .fetch_optional(&self.database.pool)
            .await
            .map_err(&failed)?;
        let Some(row) = taken else { return Ok(None) };
        let unreadable = unreadable("read the catalog");
        Ok(Some(ClaimedCall {
            since: asked,
            epoch: value(&row, 0).map_err(&unreadable)?,
            last_removal: value(&row, 2).map_err(unreadable)?,
        }))
    }

    /// Returns the time until the present lease expires unless it is renewed.
    async fn held_for(&self, instance: &str) -> Result<Duration, StoreError> {
        let sql = AssertSqlSafe(Arc::clone(&self.database.statements.held_for));
        let row = sqlx::query(sql)
            .bind(instance)
            .fetch_optional(&self.database.pool);
        let row = row.await.map_err(database("look at the lease"))?;
        let left = row.map_or(Ok(0), |row| row.try_get::<i64, _>(0));
        let left = left.map_err(database("look at the lease"))?;
        // A millisecond more, so that it has run out when it is looked at again.
        Ok(Duration::from_millis(u64::try_from(left).unwrap_or(0) + 1))
    }
}

/// The open catalog of one instance.
#[derive(Debug)]
struct PostgresCatalog {
    database: Arc<Database>,
    exchange: PostgresExchange,
    instance: Arc<str>,
    epoch: Epoch,
    last_removal: Revision,
    lease: StdMutex<Lease>,
    cuts: Mutex<Cuts>,
}

impl PostgresCatalog {
    /// Reads the rows, and renews the lease meanwhile, because a large catalog takes a while.
    async fn load(&self) -> Result<Stored, StoreError> {
        let load = load::stored(&self.database, &self.instance);
        tokio::pin!(load);
        loop {
            let renew_in = self.lease().term / 4;
            match tokio::time::timeout(renew_in, &mut load).await {
                Ok(stored) => return self.still_ours(stored?.0),
                Err(_) => self.keep().await?,
            };
        }
    }

    async fn keep(&self) -> Result<(), StoreError> {
        match self.renewed().await {
            Ok(true) => Ok(()),
            Ok(false) => Err(taken()),
            Err(error) => Err(database("keep the lease")(error)),
        }
    }

    fn still_ours(&self, stored: Stored) -> Result<Stored, StoreError> {
        if stored.epoch == self.epoch {
            Ok(stored)
        } else {
            Err(taken())
        }
    }

    /// Renews the lease; returns false if it is lost.
    async fn renewed(&self) -> Result<bool, sqlx::Error> {
        let asked = Instant::now();
        let sql = AssertSqlSafe(Arc::clone(&self.database.statements.renew));
        let renewed = sqlx::query(sql)
            .bind(&*self.instance)
            .bind(integer(self.epoch.0))
            .bind(milliseconds(self.lease().term))
            .execute(&self.database.pool)
            .await?;
        let is_ours = renewed.rows_affected() == 1;
        if is_ours {
            self.lease.lock().unpoisoned().since = asked;
        }
        Ok(is_ours)
    }

    fn lease(&self) -> Lease {
        *self.lease.lock().unpoisoned()
    }

    /// Releases the lease and notifies waiting processes, in one statement.
    async fn release(&self) -> Result<(), sqlx::Error> {
        let sql = AssertSqlSafe(Arc::clone(&self.database.statements.release));
        let released = sqlx::query(sql)
            .bind(&*self.instance)
            .bind(integer(self.epoch.0))
            .bind(Event::Released(self.instance.to_string()).to_payload());
        released.execute(&self.database.pool).await.map(drop)
    }
}

impl Catalog for PostgresCatalog {
    fn commit<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, Result<(), CommitError>> {
        self.commit_with(commit, &[])
    }

    fn commit_with<'a>(
        &'a self,
        commit: &'a Commit,
        answers: &'a [Answers],
    ) -> BoxFuture<'a, Result<(), CommitError>> {
        Box::pin(async move {
            let mut cuts = self.cuts.lock().await;
            commit::write(&self.exchange, &mut cuts, commit, answers).await
        })
    }

    fn read(&self) -> BoxFuture<'_, Result<Stored, StoreError>> {
        Box::pin(async move {
            let stored = load::stored(&self.database, &self.instance).await?;
            Ok(stored.0)
        })
    }

    fn history<'a>(&'a self, uid: Uid, limit: u32) -> BoxFuture<'a, Result<Vec<HistoryRow>, StoreError>> {
        Box::pin(load::history(&self.database, &self.instance, uid, limit))
    }

    fn recent(&self, limit: u32) -> BoxFuture<'_, Result<Vec<HistoryRow>, StoreError>> {
        Box::pin(load::recent(&self.database, &self.instance, limit))
    }

    fn last_removal(&self) -> Option<Revision> {
        Some(self.last_removal)
    }

    fn lease(&self) -> Option<Lease> {
        Some(self.lease())
    }

    fn renew(&self) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(async move {
            match self.renewed().await {
                Ok(true) => Ok(()),
                Ok(false) => Err(CommitError::LeaseLost),
                Err(error) => Err(CommitError::Failed(error.to_string())),
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // What ran under a lease that is over may still be about to end: the rest of the term is for that.
            if self.lease().status(Instant::now()) == LeaseStatus::Expired {
                return;
            }
            if let Err(error) = self.release().await {
                tracing::warn!(%error, "the lease was not given back and runs out by itself");
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

fn taken() -> StoreError {
    StoreError::Database {
        doing: "keep the lease",
        source: "another process has taken it".into(),
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

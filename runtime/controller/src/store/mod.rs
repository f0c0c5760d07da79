//! Stores of catalogs: in memory, in SQLite and in Postgres.
//!
//! A [`Store`] holds the catalogs of any number of instances. Opening one takes its lease: the epoch rises, and every
//! commit of an earlier holder is refused from then on. What is open is a [`Catalog`].
//!
//! Both traits have one conformance test, which every store passes.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use thiserror::Error;
use watershed_core::{HistoryRow, Revision, Uid};

#[cfg(feature = "sqlite")]
mod codes;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod columns;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod cuts;
pub mod exchange;
mod lease;
mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod prefix;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use crate::failpoints::CRASH_POINTS;
pub use exchange::{Answers, Exchange};
pub(crate) use exchange::{ClaimedCall, Interest, RemoteCall, Wake};
pub use lease::Lease;
pub(crate) use lease::LeaseStatus;
pub use memory::MemoryStore;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresReader, PostgresStore};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use prefix::TablePrefix;
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteReader, SqliteStore};

/// The core's types that stores use.
pub use watershed_core::{Commit, CommitError, CommitId, Epoch, Stored, StoredRow, Write};

/// A boxed future, so that the traits work as trait objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Maximum number of history entries per resource for runs that did [work](watershed_core::RunResult::is_work), and
/// again for others. No number of failures removes the entry of a build.
pub const HISTORY_PER_RESOURCE: u32 = 100;

/// Texts in an entry that mark a run which did work.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
const WORK_IN_HISTORY: [&str; 4] = [
    r#""result":{"done":"built"}"#,
    r#""result":{"done":"restored"}"#,
    r#""result":{"done":"renamed"}"#,
    r#""result":{"done":"dropped"}"#,
];

/// Age at which a history entry is removed, in milliseconds: 90 days.
pub const HISTORY_AGE_MS: i64 = 90 * 24 * 60 * 60 * 1000;

/// Minimum age of the history entry that serves as the present time, in milliseconds: a day. Ages count from the latest
/// such entry, so that a clock that once runs years ahead makes nothing old.
pub const HISTORY_SIGHTING_MS: i64 = 24 * 60 * 60 * 1000;

/// Maximum number of history entries in one read: more than a person looks at.
pub const HISTORY_AT_ONCE: u32 = 10_000;

/// A place for the catalogs of instances.
///
/// ```
/// use watershed_controller::store::{BoxFuture, MemoryStore, Opened, Store, StoreError};
/// use watershed_controller::{Controller, StartError};
///
/// /// Lets one tenant in.
/// #[derive(Debug)]
/// struct OnlyFor(&'static str, MemoryStore);
///
/// impl Store for OnlyFor {
///     fn open<'a>(&'a self, instance: &'a str) -> BoxFuture<'a, Result<Opened, StoreError>> {
///         if instance == self.0 {
///             return self.1.open(instance);
///         }
///         Box::pin(async { Err(StoreError::NotShared) })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let builder = |instance: &str| Controller::builder().store(OnlyFor("a", MemoryStore::new())).instance(instance);
/// assert!(builder("a").start().await.is_ok());
/// assert!(matches!(builder("b").start().await, Err(StartError::Store { .. })));
/// # Ok(())
/// # }
/// ```
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Takes the lease of an instance and reads its catalog. A new instance is empty.
    fn open<'a>(&'a self, instance: &'a str) -> BoxFuture<'a, Result<Opened, StoreError>>;

    /// Takes the lease as [`open`](Self::open) does, under an epoch above one that was seen outside of the store: whatever
    /// knows that epoch refuses the ones below, also after the store was restored or made anew. By default the instance is
    /// opened until its epoch is above.
    fn open_above<'a>(&'a self, instance: &'a str, seen: Epoch) -> BoxFuture<'a, Result<Opened, StoreError>> {
        Box::pin(async move {
            loop {
                let opened = self.open(instance).await?;
                if opened.stored.epoch > seen {
                    return Ok(opened);
                }
                opened.catalog.close().await;
            }
        })
    }

    /// Returns the exchange for processes that don't lead the instance; none, as by default, if processes can't share
    /// the store.
    fn exchange(&self, _instance: &str) -> Option<Arc<dyn Exchange>> {
        None
    }
}

/// Makes a pointer to a store a store: a box or an `Arc`, for example.
impl<P> Store for P
where
    P: Deref<Target: Store> + fmt::Debug + Send + Sync + 'static,
{
    fn open<'a>(&'a self, instance: &'a str) -> BoxFuture<'a, Result<Opened, StoreError>> {
        (**self).open(instance)
    }

    fn open_above<'a>(&'a self, instance: &'a str, seen: Epoch) -> BoxFuture<'a, Result<Opened, StoreError>> {
        (**self).open_above(instance, seen)
    }

    fn exchange(&self, instance: &str) -> Option<Arc<dyn Exchange>> {
        (**self).exchange(instance)
    }
}

/// Any error of binding a value to a statement or reading one from a row.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) type ColumnError = Box<dyn StdError + Send + Sync>;

/// An opened catalog, with the contents found.
///
/// See [`Store`] for an example.
#[derive(Debug)]
pub struct Opened {
    /// Rows and revision, and the epoch that is now held.
    pub stored: Stored,
    /// The catalog that takes commits.
    pub catalog: Box<dyn Catalog>,
}

/// The catalog of one instance, open under one epoch. Dropping it loses nothing that was committed.
///
/// What [`Store`] opens; its example wraps one.
pub trait Catalog: fmt::Debug + Send + Sync + 'static {
    /// Writes a commit atomically, if the store still has its epoch. The commit is durable when this returns, and
    /// writing it again has no effect.
    ///
    /// Not cancel-safe in that the outcome of a dropped call is unknown; the host never drops it.
    fn commit<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, Result<(), CommitError>>;

    /// Reads the stored catalog as of one moment, with the latest epoch. Takes no lease.
    fn read(&self) -> BoxFuture<'_, Result<Stored, StoreError>>;

    /// Writes a commit as [`commit`](Self::commit) does, with answers to calls of the store's [`Exchange`] in the same
    /// transaction.
    fn commit_with<'a>(
        &'a self,
        commit: &'a Commit,
        _answers: &'a [Answers],
    ) -> BoxFuture<'a, Result<(), CommitError>> {
        self.commit(commit)
    }

    /// Reads the newest history entries of a resource, newest first, at most `limit`.
    fn history<'a>(&'a self, uid: Uid, limit: u32) -> BoxFuture<'a, Result<Vec<HistoryRow>, StoreError>>;

    /// Reads the newest history entries of the instance, newest first, at most `limit` and [`HISTORY_AT_ONCE`],
    /// including entries of removed resources.
    fn recent<'a>(&'a self, limit: u32) -> BoxFuture<'a, Result<Vec<HistoryRow>, StoreError>>;

    /// Returns the revision at which a resource was last removed, as of the opening; none if the store does not know.
    /// Watchers may resume from there or later, because the rows show all changes since.
    fn last_removal(&self) -> Option<Revision> {
        None
    }

    /// Returns the lease as last renewed; none, as by default, if it lasts as long as the process.
    fn lease(&self) -> Option<Lease> {
        None
    }

    /// Renews the lease. The host calls this long before it expires; a commit does not renew it.
    ///
    /// Cancel-safe: a dropped call has renewed it or not.
    fn renew(&self) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Closes the catalog and releases what it holds, including the lease.
    fn close<'a>(&'a self) -> BoxFuture<'a, ()>;
}

/// Returns true if a commit removes resources from the catalog.
fn removes(commit: &Commit) -> bool {
    let is_removal = |write: &Write| matches!(write, Write::Remove(_));
    commit.writes.iter().any(is_removal)
}

/// Returns the history entries that the entries of a commit replace.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
fn replaced(commit: &Commit) -> Vec<(Uid, Epoch, watershed_core::InvocationId)> {
    let replaced = commit.history.iter().filter_map(|entry| {
        let (epoch, invocation) = entry.replaces?;
        Some((entry.uid, epoch, invocation))
    });
    replaced.collect()
}

/// Splits the writes of a commit into rows and removals.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
fn parted(commit: &Commit) -> (Vec<&watershed_core::Row>, Vec<Uid>) {
    let (mut puts, mut removes) = (Vec::with_capacity(commit.writes.len()), Vec::new());
    for write in commit.writes.iter() {
        match write {
            Write::Put(row) => puts.push(&**row),
            Write::Remove(uid) => removes.push(*uid),
        }
    }
    (puts, removes)
}

/// Reason why a store could not be opened or read. Nothing has been written.
///
/// See [`Store`] for an example.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Another process holds the catalog.
    #[error("{} is in use by another process", path.display())]
    Locked {
        /// Path of the locked catalog file.
        path: PathBuf,
    },
    /// Another controller of this process holds the catalog, or did until a moment ago.
    #[error("{} is in use by another controller of this process", path.display())]
    InUseHere {
        /// Path of the locked catalog file.
        path: PathBuf,
    },
    /// The controller has ended without closing the catalog.
    #[error("the catalog went with its controller")]
    Closed,
    /// Another process holds the lease of the instance.
    #[error("instance \"{instance}\" is held by another process")]
    Held {
        /// Name of the instance that is taken.
        instance: String,
        /// Time until that lease expires unless it is renewed, in milliseconds.
        for_ms: u64,
    },
    /// The file is not a sound catalog. It is not changed.
    #[error("{} is damaged: {message}", path.display())]
    Damaged {
        /// Path of the damaged file.
        path: PathBuf,
        /// Fault that was found.
        message: String,
    },
    /// The catalog was written by a newer version of this program. It is not changed.
    #[error("the catalog has schema version {found}, expected at most {known}")]
    Newer {
        /// Schema version of the catalog.
        found: u32,
        /// Newest schema version that this program knows.
        known: u32,
    },
    /// The catalog was written by an older version of this program, and a reader does not migrate it.
    #[error("the catalog has schema version {found}, expected {known}")]
    Older {
        /// Schema version of the catalog.
        found: u32,
        /// Schema version that this program reads.
        known: u32,
    },
    /// Only one process at a time can use this store.
    #[error("this store can't be shared by processes")]
    NotShared,
    /// The prefix can't begin the name of a table.
    #[error("`{prefix}` can't begin the name of a table, expected letters, digits and `_`")]
    Prefix {
        /// Text that was given as a prefix.
        prefix: String,
    },
    /// The file system failed.
    #[error("can't use {}", path.display())]
    Io {
        /// Path whose access failed.
        path: PathBuf,
        /// Error of the file system.
        source: std::io::Error,
    },
    /// The database reported an error.
    #[error("can't {doing}")]
    Database {
        /// Operation that failed.
        doing: &'static str,
        /// Error that the database reported.
        source: Box<dyn StdError + Send + Sync>,
    },
}

impl StoreError {
    /// Returns true if the stored data is damaged: found when it was opened, or later, when a torn page was read.
    pub fn is_damage(&self) -> bool {
        match self {
            StoreError::Damaged { .. } => true,
            #[cfg(feature = "sqlite")]
            StoreError::Database { source, .. } => codes::is_corrupt(source.as_ref()),
            _ => false,
        }
    }

    /// Returns true if there was no room to write.
    pub fn is_full(&self) -> bool {
        match self {
            StoreError::Io { source, .. } => source.kind() == std::io::ErrorKind::StorageFull,
            #[cfg(feature = "sqlite")]
            StoreError::Database { source, .. } => source.downcast_ref().is_some_and(codes::is_full),
            _ => false,
        }
    }
}

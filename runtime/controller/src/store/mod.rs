//! Stores of catalogs.
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

/// The words of the core that stores speak.
pub use watershed_core::{Commit, CommitError, CommitId, Epoch, Stored, StoredRow, Write};

/// A future behind a pointer, so that the traits can be used without knowing the store.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Entries of history kept for one resource, of runs that did [work](watershed_core::RunResult::is_work), and as many of
/// others: enough to see a pattern, little enough to never matter. Failures, however many, push no build out.
pub const HISTORY_PER_RESOURCE: u32 = 100;

/// The texts in an entry by which a run is known that did work.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
const WORK_IN_HISTORY: [&str; 4] = [
    r#""result":{"done":"built"}"#,
    r#""result":{"done":"restored"}"#,
    r#""result":{"done":"renamed"}"#,
    r#""result":{"done":"dropped"}"#,
];

/// The time that an entry of history is kept, in milliseconds: 90 days.
pub const HISTORY_AGE_MS: i64 = 90 * 24 * 60 * 60 * 1000;

/// The least age of an entry of history that says what time it is, in milliseconds: a day. Age counts from
/// the latest such entry, so that a clock which is wrong once, and years ahead, makes nothing old.
pub const HISTORY_SIGHTING_MS: i64 = 24 * 60 * 60 * 1000;

/// The most entries of history that are read at once: more than a person looks at.
pub const HISTORY_AT_ONCE: u32 = 10_000;

/// Holds the catalogs of instances.
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
    /// Takes the lease of an instance and reads its catalog; an instance that is not there yet is empty.
    fn open<'a>(&'a self, instance: &'a str) -> BoxFuture<'a, Result<Opened, StoreError>>;

    /// Returns the exchange for processes that do not hold an instance; none if the store is no place for several
    /// processes, as by default.
    fn exchange(&self, _instance: &str) -> Option<Arc<dyn Exchange>> {
        None
    }
}

/// A pointer to a store is a store: a box, or a share of one that others have too.
impl<P> Store for P
where
    P: Deref<Target: Store> + fmt::Debug + Send + Sync + 'static,
{
    fn open<'a>(&'a self, instance: &'a str) -> BoxFuture<'a, Result<Opened, StoreError>> {
        (**self).open(instance)
    }

    fn exchange(&self, instance: &str) -> Option<Arc<dyn Exchange>> {
        (**self).exchange(instance)
    }
}

/// Anything that keeps a value from being bound to a statement or read from a row.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) type ColumnError = Box<dyn StdError + Send + Sync>;

/// A catalog as it was found.
///
/// See [`Store`] for an example.
#[derive(Debug)]
pub struct Opened {
    /// Its rows, its revision, and the epoch that is now held.
    pub stored: Stored,
    /// The catalog that takes commits.
    pub catalog: Box<dyn Catalog>,
}

/// The catalog of one instance, open under one epoch. Dropping it gives up nothing that was committed.
///
/// What [`Store`] opens; its example wraps one.
pub trait Catalog: fmt::Debug + Send + Sync + 'static {
    /// Writes a commit: all of it or nothing, only if the store still holds the commit's epoch, and durable when
    /// this returns. Writing the same commit again is the same as once.
    ///
    /// Not cancel-safe in that the outcome of a dropped call is unknown; the host never drops it.
    fn commit<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, Result<(), CommitError>>;

    /// The catalog as it is stored now, all of one moment, with the epoch that was taken last. Takes no lease.
    fn read(&self) -> BoxFuture<'_, Result<Stored, StoreError>>;

    /// As [`commit`](Self::commit), with answers to calls that were taken from the store's [`Exchange`], in the same
    /// transaction.
    fn commit_with<'a>(
        &'a self,
        commit: &'a Commit,
        _answers: &'a [Answers],
    ) -> BoxFuture<'a, Result<(), CommitError>> {
        self.commit(commit)
    }

    /// The newest entries of a resource's history, newest first, at most `limit`.
    fn history<'a>(&'a self, uid: Uid, limit: u32) -> BoxFuture<'a, Result<Vec<HistoryRow>, StoreError>>;

    /// The newest entries of the whole instance, newest first, at most `limit` and [`HISTORY_AT_ONCE`]; those of
    /// resources that are no longer there are among them.
    fn recent<'a>(&'a self, limit: u32) -> BoxFuture<'a, Result<Vec<HistoryRow>, StoreError>>;

    /// The revision at which a resource was last removed, in the catalog as it was found; none if the store does not
    /// know. Watchers may resume from there on although nobody remembers the changes: they are seen in the rows.
    fn last_removal(&self) -> Option<Revision> {
        None
    }

    /// The lease as it was last renewed; none if it lasts as long as the process, as by default.
    fn lease(&self) -> Option<Lease> {
        None
    }

    /// Renews the lease. The host asks for it long before it runs out; a commit does not renew it.
    ///
    /// Cancel-safe: a dropped call has renewed it or not.
    fn renew(&self) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Ends the use of the catalog and gives back what it holds, the lease included.
    fn close<'a>(&'a self) -> BoxFuture<'a, ()>;
}

/// Returns true if a commit takes resources out of the catalog.
fn removes(commit: &Commit) -> bool {
    let is_removal = |write: &Write| matches!(write, Write::Remove(_));
    commit.writes.iter().any(is_removal)
}

/// The entries of history in whose place those of a commit stand.
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

/// The reason why a store could not be opened or read. Nothing has been written.
///
/// See [`Store`] for an example.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Another process holds the catalog.
    #[error("{} is in use by another process", path.display())]
    Locked {
        /// The catalog.
        path: PathBuf,
    },
    /// Another controller of this process holds the catalog, or did until a moment ago.
    #[error("{} is in use by another controller of this process", path.display())]
    InUseHere {
        /// The catalog.
        path: PathBuf,
    },
    /// The controller has ended without closing the catalog.
    #[error("the catalog went with its controller")]
    Closed,
    /// Another process holds the instance by a lease.
    #[error("instance \"{instance}\" is held by another process")]
    Held {
        /// The instance.
        instance: String,
        /// The term of that lease, in milliseconds.
        for_ms: u64,
    },
    /// The file is no sound catalog. It is left as it is.
    #[error("{} is damaged: {message}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault that was found.
        message: String,
    },
    /// The catalog was written by a newer version of this program. It is left as it is.
    #[error("the catalog has schema version {found}, expected at most {known}")]
    Newer {
        /// Its schema version.
        found: u32,
        /// The newest that this program knows.
        known: u32,
    },
    /// The catalog was written by an older version of this program and not migrated yet, which a look does not do.
    #[error("the catalog has schema version {found}, expected {known}")]
    Older {
        /// Its schema version.
        found: u32,
        /// The one that this program reads.
        known: u32,
    },
    /// Only one process at a time can use this store.
    #[error("this store can't be shared by processes")]
    NotShared,
    /// The prefix could not stand at the beginning of a table's name.
    #[error("`{prefix}` can't begin the name of a table, expected letters, digits and `_`")]
    Prefix {
        /// The prefix.
        prefix: String,
    },
    /// The file system failed.
    #[error("can't use {}", path.display())]
    Io {
        /// The path that was used.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The database failed.
    #[error("can't {doing}")]
    Database {
        /// The operation that failed.
        doing: &'static str,
        /// The database's error.
        source: Box<dyn StdError + Send + Sync>,
    },
}

impl StoreError {
    /// Returns true if what is kept is not sound: found when it was opened, or later, when a page was read that is
    /// torn.
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

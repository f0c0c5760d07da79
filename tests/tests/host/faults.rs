//! A store in memory that fails when it is asked to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use watershed_controller::Uid;
use watershed_controller::history::HistoryRow;
use watershed_controller::store::{BoxFuture, Catalog, MemoryStore, Opened, Store, StoreError};
use watershed_core::{Commit, CommitError, Stored};

/// The fault of a store's commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// They fail, and nothing is written.
    Before,
    /// They fail although they were written.
    After,
    /// The store panics.
    Panic,
    /// They neither succeed nor fail.
    Hang,
}

/// A memory store with a switch; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct FaultyStore {
    store: MemoryStore,
    fault: Arc<Mutex<Fault>>,
    commits: Arc<AtomicU64>,
}

impl FaultyStore {
    pub(crate) fn new() -> Self {
        let fault = Arc::new(Mutex::new(Fault::None));
        Self {
            store: MemoryStore::new(),
            fault,
            commits: Arc::default(),
        }
    }

    pub(crate) fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    /// Commits that were tried.
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }
}

impl Store for FaultyStore {
    fn open<'a>(&'a self, instance: &'a str) -> BoxFuture<'a, Result<Opened, StoreError>> {
        Box::pin(async move {
            let Opened { stored, catalog } = self.store.open(instance).await?;
            let catalog = Box::new(FaultyCatalog {
                catalog,
                faults: self.clone(),
            });
            Ok(Opened { stored, catalog })
        })
    }
}

#[derive(Debug)]
struct FaultyCatalog {
    catalog: Box<dyn Catalog>,
    faults: FaultyStore,
}

impl Catalog for FaultyCatalog {
    fn commit<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, Result<(), CommitError>> {
        Box::pin(async move {
            self.faults.commits.fetch_add(1, Ordering::SeqCst);
            let fault = *self.faults.fault.lock().unwrap();
            let failed = Err(CommitError::Failed("the disk is on fire".to_owned()));
            match fault {
                Fault::None => self.catalog.commit(commit).await,
                Fault::Before => failed,
                Fault::After => self.catalog.commit(commit).await.and(failed),
                Fault::Panic => panic!("the store has a bug"),
                Fault::Hang => std::future::pending().await,
            }
        })
    }

    fn read(&self) -> BoxFuture<'_, Result<Stored, StoreError>> {
        self.catalog.read()
    }

    fn history<'a>(&'a self, uid: Uid, limit: u32) -> BoxFuture<'a, Result<Vec<HistoryRow>, StoreError>> {
        self.catalog.history(uid, limit)
    }

    fn recent(&self, limit: u32) -> BoxFuture<'_, Result<Vec<HistoryRow>, StoreError>> {
        self.catalog.recent(limit)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.catalog.close()
    }
}

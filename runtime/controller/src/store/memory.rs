//! A store that keeps its catalogs in memory: for tests, and for embedders that declare everything anew at a start.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Place;
use rustc_hash::FxBuildHasher;
use watershed_core::{
    Commit, CommitError, Epoch, HistoryRow, InvocationId, Revision, Row, Stored, StoredRow, Uid, Write,
};

use super::{
    BoxFuture, Catalog, HISTORY_AGE_MS, HISTORY_AT_ONCE, HISTORY_PER_RESOURCE, HISTORY_SIGHTING_MS, Opened,
    Store, StoreError, removes,
};
use crate::sync::Unpoisoned;

/// Catalogs that live as long as the store. Clones share them, so that a controller can be restarted.
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
/// use std::time::Duration;
/// use watershed_controller::store::MemoryStore;
/// use watershed_controller::{Controller, Key, KindOptions, Resource};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::new();
/// let start = || Controller::builder().store(store.clone()).kind(KindOptions::new("page"), Pages).start();
/// let first = start().await?;
/// first.create(Resource::declare("page", "home", &Page("hello".into()))?).await?;
/// first.shutdown(Duration::from_secs(10)).await?;
///
/// let second = start().await?;
/// assert!(second.get(Key::new("page", "home")).is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    instances: Arc<Mutex<BTreeMap<String, Arc<Mutex<Instance>>>>>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Store for MemoryStore {
    fn open<'a>(&'a self, instance: &'a str) -> BoxFuture<'a, Result<Opened, StoreError>> {
        self.open_above(instance, Epoch::default())
    }

    fn open_above<'a>(&'a self, instance: &'a str, seen: Epoch) -> BoxFuture<'a, Result<Opened, StoreError>> {
        let instance = Arc::clone(
            self.instances
                .lock()
                .unpoisoned()
                .entry(instance.to_owned())
                .or_default(),
        );
        Box::pin(async move {
            let mut held = instance.lock().unpoisoned();
            held.epoch = held.epoch.max(seen).next();
            let stored = held.stored();
            let last_removal = held.last_removal;
            drop(held);
            let catalog = MemoryCatalog {
                instance,
                last_removal,
            };
            Ok(Opened {
                stored,
                catalog: Box::new(catalog),
            })
        })
    }
}

/// Stored data of one instance.
#[derive(Debug, Default)]
struct Instance {
    epoch: Epoch,
    revision: Revision,
    last_removal: Revision,
    /// Rows, hashed by the uid in each row, so that a large catalog stores each uid once.
    rows: HashTable<Arc<Row>>,
    /// History entries by resource, oldest first.
    history: HashMap<Uid, VecDeque<Entry>, FxBuildHasher>,
}

#[derive(Debug)]
struct Entry {
    id: (Epoch, Option<InvocationId>),
    row: HistoryRow,
}

impl Instance {
    fn stored(&self) -> Stored {
        let rows = self.rows.iter().map(|row| StoredRow::from(Arc::clone(row)));
        Stored {
            revision: self.revision,
            epoch: self.epoch,
            rows: rows.collect(),
        }
    }

    fn apply(&mut self, commit: &Commit) -> Result<(), CommitError> {
        if commit.epoch != self.epoch {
            return Err(CommitError::LeaseLost);
        }
        for write in commit.writes.iter() {
            match write {
                Write::Put(row) => self.put(row),
                Write::Remove(uid) => self.remove(*uid),
            }
        }
        for row in commit.history.iter() {
            self.record(Entry {
                id: (commit.epoch, row.invocation),
                row: row.clone(),
            });
        }
        if removes(commit) {
            self.last_removal = commit.revision;
        }
        self.revision = commit.revision;
        Ok(())
    }

    fn put(&mut self, row: &Arc<Row>) {
        let is_it = |old: &Arc<Row>| old.uid == row.uid;
        match self.rows.entry(hash(row.uid), is_it, |row| hash(row.uid)) {
            Place::Occupied(mut place) => drop(std::mem::replace(place.get_mut(), Arc::clone(row))),
            Place::Vacant(place) => drop(place.insert(Arc::clone(row))),
        }
    }

    fn remove(&mut self, uid: Uid) {
        if let Ok(place) = self.rows.find_entry(hash(uid), |row| row.uid == uid) {
            place.remove();
        }
    }

    fn record(&mut self, entry: Entry) {
        let now = entry.row.ended_at.0;
        let entries = self.history.entry(entry.row.uid).or_default();
        if let Some((epoch, invocation)) = entry.row.replaces {
            let id = (epoch, Some(invocation));
            entries.retain(|old| old.id != id);
        }
        if entries.iter().rev().any(|old| old.id == entry.id) {
            return; // The commit is written for a second time.
        }
        let does_work = entry.row.result.is_work();
        entries.push_back(entry);
        let ended = |entry: &Entry| entry.row.ended_at.0;
        let seen_before = entries
            .iter()
            .map(ended)
            .filter(|at| *at <= now - HISTORY_SIGHTING_MS);
        let reference = seen_before.max().unwrap_or(i64::MIN);
        let old = |entry: &Entry| ended(entry) < reference.saturating_sub(HISTORY_AGE_MS);
        while entries.front().is_some_and(old) {
            entries.pop_front();
        }
        // Those of work and all others each have their bound.
        let is_like_it = |entry: &Entry| entry.row.result.is_work() == does_work;
        if entries.iter().filter(|entry| is_like_it(entry)).count() > HISTORY_PER_RESOURCE as usize
            && let Some(first) = entries.iter().position(is_like_it)
        {
            entries.remove(first);
        }
    }
}

/// The open catalog of one instance.
#[derive(Debug)]
struct MemoryCatalog {
    instance: Arc<Mutex<Instance>>,
    last_removal: Revision,
}

impl Catalog for MemoryCatalog {
    fn commit<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, Result<(), CommitError>> {
        Box::pin(async move { self.instance.lock().unpoisoned().apply(commit) })
    }

    fn read(&self) -> BoxFuture<'_, Result<Stored, StoreError>> {
        Box::pin(async move { Ok(self.instance.lock().unpoisoned().stored()) })
    }

    fn history<'a>(&'a self, uid: Uid, limit: u32) -> BoxFuture<'a, Result<Vec<HistoryRow>, StoreError>> {
        Box::pin(async move {
            let instance = self.instance.lock().unpoisoned();
            let entries = instance.history.get(&uid).into_iter().flatten().rev();
            Ok(entries
                .take(limit as usize)
                .map(|entry| entry.row.clone())
                .collect())
        })
    }

    fn recent(&self, limit: u32) -> BoxFuture<'_, Result<Vec<HistoryRow>, StoreError>> {
        Box::pin(async move {
            let instance = self.instance.lock().unpoisoned();
            let mut entries: Vec<&HistoryRow> = instance
                .history
                .values()
                .flatten()
                .map(|entry| &entry.row)
                .collect();
            let order =
                |row: &HistoryRow| (row.ended_at, row.epoch, row.invocation.is_none(), row.invocation);
            entries.sort_by_key(|row| std::cmp::Reverse(order(row)));
            entries.truncate(limit.min(HISTORY_AT_ONCE) as usize);
            Ok(entries.into_iter().cloned().collect())
        })
    }

    fn last_removal(&self) -> Option<Revision> {
        Some(self.last_removal)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn hash(uid: Uid) -> u64 {
    FxBuildHasher.hash_one(uid)
}

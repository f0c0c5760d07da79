//! The stored catalog, apart from a controller.

use std::sync::{Arc, PoisonError};

use watershed_controller::store::{BoxFuture, Opened, SqliteStore, Store, StoreError};
use watershed_controller::{HistoryRow, Uid};

use super::{Found, INSTANCE, Memory};
use crate::report::Entry;
use crate::state_folder::StateFolder;

/// A store that remembers what it found, so that a run can say what it changed.
#[derive(Debug)]
pub(super) struct Remembering {
    store: SqliteStore,
    memory: Memory,
}

impl Remembering {
    pub(super) fn new(store: SqliteStore) -> (Self, Memory) {
        let memory = Memory::default();
        (
            Self {
                store,
                memory: Arc::clone(&memory),
            },
            memory,
        )
    }
}

impl Store for Remembering {
    fn open<'a>(&'a self, instance: &'a str) -> BoxFuture<'a, Result<Opened, StoreError>> {
        Box::pin(async move {
            let opened = self.store.open(instance).await?;
            *self.memory.lock().unwrap_or_else(PoisonError::into_inner) = found(&opened);
            Ok(opened)
        })
    }
}

fn found(opened: &Opened) -> Found {
    let entries = opened
        .stored
        .rows
        .iter()
        .map(|stored| Entry::at_rest(Arc::clone(&stored.row)));
    let mut entries: Vec<Entry> = entries.collect();
    entries.sort_by(|a, b| (&a.row.kind, &a.row.name, a.row.uid).cmp(&(&b.row.kind, &b.row.name, b.row.uid)));
    Found {
        entries,
        revision: opened.stored.revision,
    }
}

/// The catalog of a folder that no process owns, open for a look. Hold the folder's lock meanwhile.
pub(crate) struct Catalog {
    store: SqliteStore,
    catalog: Box<dyn watershed_controller::store::Catalog>,
    entries: Vec<Entry>,
}

impl Catalog {
    /// Opens the catalog of a folder.
    ///
    /// # Errors
    /// When it is damaged, from a newer version, or can't be read.
    pub(crate) async fn open(state: &StateFolder) -> Result<Self, StoreError> {
        let store = SqliteStore::open(state.catalog()).await?;
        let opened = store.open(INSTANCE).await?;
        let entries = found(&opened).entries;
        Ok(Self {
            store,
            catalog: opened.catalog,
            entries,
        })
    }

    /// Its resources.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Past runs of a resource, the latest first.
    ///
    /// # Errors
    /// When the catalog can't be read.
    pub(crate) async fn history(&self, uid: Uid, limit: u32) -> Result<Vec<HistoryRow>, StoreError> {
        self.catalog.history(uid, limit).await
    }

    /// Gives the file back.
    pub(crate) async fn close(self) {
        self.catalog.close().await;
        drop(self.catalog);
        self.store.close().await;
    }
}

//! The stored catalog, apart from a controller.

use std::sync::{Arc, PoisonError};

use watershed_controller::store::{BoxFuture, Opened, SqliteStore, Store, StoreError};
use watershed_core::Stored;

use super::{Found, Memory};
use crate::report::Entry;

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
            *self.memory.lock().unwrap_or_else(PoisonError::into_inner) = found(&opened.stored);
            Ok(opened)
        })
    }
}

/// The resources of a catalog that nobody runs, by kind and name.
pub(super) fn found(stored: &Stored) -> Found {
    let entries = stored
        .rows
        .iter()
        .map(|stored| Entry::at_rest(Arc::clone(&stored.row)));
    let mut entries: Vec<Entry> = entries.collect();
    entries.sort_by(|a, b| (&a.row.kind, &a.row.name, a.row.uid).cmp(&(&b.row.kind, &b.row.name, b.row.uid)));
    Found {
        entries,
        revision: stored.revision,
    }
}

//! The stored catalog, apart from a controller.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use watershed_controller::store::{BoxFuture, Opened, SqliteStore, Store, StoreError};
use watershed_core::Stored;
use watershed_drivers::olap::{Session, TrashLimits};
use watershed_locks::Unpoisoned;
use watershed_proto::{Message, ProjectParserState};
use watershed_reconcilers::connector::{self, Surroundings};
use watershed_reconcilers::made::Version;
use watershed_reconcilers::outputs::Outputs;
use watershed_reconcilers::project_parser;
use watershed_reconcilers::secrets::Secrets;

use super::{Memory, Options};
use crate::report::{Entry, Listing};

/// A store that remembers what it found, so that a run can say what it changed.
pub(super) struct Remembering {
    store: SqliteStore,
    memory: Memory,
    outputs: Arc<Outputs>,
    environment: String,
    root: PathBuf,
}

impl Remembering {
    /// The store of an instance whose engine is that of `outputs`: what connections to it begin with is known before
    /// anything runs.
    pub(super) fn new(store: SqliteStore, outputs: Arc<Outputs>, options: &Options) -> (Self, Memory) {
        let memory = Memory::default();
        (
            Self {
                store,
                memory: Arc::clone(&memory),
                outputs,
                environment: options.environment.clone(),
                root: options.root.clone(),
            },
            memory,
        )
    }
}

impl fmt::Debug for Remembering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remembering")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl Store for Remembering {
    fn open<'a>(&'a self, instance: &'a str) -> BoxFuture<'a, Result<Opened, StoreError>> {
        Box::pin(async move {
            let opened = self.store.open(instance).await?;
            let found = found(&opened.stored);
            let sessions = sessions(
                &found.entries,
                Surroundings {
                    environment: &self.environment,
                    root: &self.root,
                },
                self.outputs.secrets(),
            );
            self.outputs.begin_with(sessions);
            if let Some(limits) = trash_limits(&found.entries) {
                self.outputs.limit_trash(limits);
            }
            *self.memory.lock().unpoisoned() = found;
            Ok(opened)
        })
    }
}

/// The statements with which connections to the engine begin, as the catalog has the connectors.
pub(crate) fn sessions(
    entries: &[Entry],
    around: Surroundings<'_>,
    secrets: &Secrets,
) -> Vec<(Session, Version)> {
    let rows = entries.iter().map(|entry| entry.row.as_ref());
    connector::sessions_of_rows(rows, around, secrets)
}

/// The bounds of the trash, as the last parse had them.
fn trash_limits(entries: &[Entry]) -> Option<TrashLimits> {
    let parser = entries
        .iter()
        .find(|entry| entry.row.kind.as_str() == project_parser::KIND)?;
    let state = ProjectParserState::decode(parser.row.state.as_deref()?).ok()?;
    project_parser::known_trash_limits(&state)
}

/// The resources of a catalog that nobody runs, by kind and name.
pub(crate) fn found(stored: &Stored) -> Listing {
    let entries = stored
        .rows
        .iter()
        .map(|stored| Entry::at_rest(Arc::clone(&stored.row)));
    let mut entries: Vec<Entry> = entries.collect();
    entries.sort_by(|a, b| (&a.row.kind, &a.row.name, a.row.uid).cmp(&(&b.row.kind, &b.row.name, b.row.uid)));
    Listing {
        entries,
        revision: stored.revision,
    }
}

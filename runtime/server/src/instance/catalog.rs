//! The stored catalog, read without a controller.

use std::sync::Arc;

use watershed_core::{Row, Stored};
use watershed_drivers::olap::Session;
use watershed_outputs::{EngineSettings, access::Surroundings, secrets::Secrets, sessions::sessions_of_rows};

use super::Options;
use crate::report::{Entry, Listing};

/// Returns the engine's settings from the resources in the catalog.
pub(crate) fn engine_settings(entries: &[Entry], options: &Options, secrets: &Secrets) -> EngineSettings {
    EngineSettings::from_rows(rows(entries), surroundings(options), secrets)
}

/// Returns the statements that open each connection to the engine, from the connectors in the catalog.
pub(crate) fn sessions(entries: &[Entry], options: &Options, secrets: &Secrets) -> Vec<Session> {
    let sessions = sessions_of_rows(rows(entries), surroundings(options), secrets);
    sessions.into_iter().map(|(session, _)| session).collect()
}

fn rows(entries: &[Entry]) -> impl Iterator<Item = &Row> + Clone {
    entries.iter().map(|entry| entry.row.as_ref())
}

fn surroundings(options: &Options) -> Surroundings<'_> {
    Surroundings {
        environment: &options.environment,
        root: &options.root,
        is_confined: options.sandbox,
    }
}

/// Returns the resources of a stored catalog that no process runs, by kind and name.
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

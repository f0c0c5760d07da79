//! The stored catalog, apart from a controller.

use std::sync::Arc;

use watershed_core::{Row, Stored};
use watershed_drivers::olap::Session;
use watershed_outputs::{EngineSettings, access::Surroundings, secrets::Secrets, sessions::sessions_of_rows};

use super::Options;
use crate::report::{Entry, Listing};

/// Returns the settings of the engine as the catalog has them.
pub(crate) fn engine_settings(entries: &[Entry], options: &Options, secrets: &Secrets) -> EngineSettings {
    EngineSettings::from_rows(rows(entries), surroundings(options), secrets)
}

/// Returns the statements with which connections to the engine begin, as the catalog has the connectors.
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
    }
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

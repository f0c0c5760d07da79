//! The stored catalog, apart from a controller.

use std::sync::Arc;

use watershed_core::Stored;
use watershed_reconcilers::connector::Surroundings;
use watershed_reconcilers::outputs::EngineSettings;
use watershed_reconcilers::secrets::Secrets;

use super::Options;
use crate::report::{Entry, Listing};

/// Returns the settings of the engine as the catalog has them.
pub(crate) fn engine_settings(entries: &[Entry], options: &Options, secrets: &Secrets) -> EngineSettings {
    let around = Surroundings {
        environment: &options.environment,
        root: &options.root,
    };
    EngineSettings::from_rows(entries.iter().map(|entry| entry.row.as_ref()), around, secrets)
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

//! The engine of a project: what its options make of that.

use std::num::NonZeroUsize;

use watershed_drivers::duckdb::{self, Access};
use watershed_drivers::sandbox::Sandbox;

use super::{Options, extensions};
use crate::state_folder::StateFolder;

/// Resources at work for each transaction that makes outputs: small builds wait for one together and share it.
const FOR_EACH_BUILD: usize = 6;

/// Returns the number of resources that are at work at once; one, if one job alone is asked for.
fn jobs(options: &Options, engine: &duckdb::Options) -> usize {
    match options.jobs {
        Some(NonZeroUsize::MIN) => 1,
        _ => engine.builds.get().saturating_mul(FOR_EACH_BUILD),
    }
}

/// Returns the engine of an instance, and the number of resources that are at work at once.
pub(super) fn of(options: &Options, state: &StateFolder) -> (duckdb::Engine, usize) {
    let engine_options = engine_options(options, state, Access::ReadWrite);
    let jobs = jobs(options, &engine_options);
    (duckdb::Engine::new(engine_options), jobs)
}

pub(crate) fn engine_options(options: &Options, state: &StateFolder, access: Access) -> duckdb::Options {
    let usual = duckdb::Options::new(state.engine(), options.root.clone());
    duckdb::Options {
        builds: options.jobs.unwrap_or(usual.builds),
        memory_limit: options.memory_limit,
        threads: options.engine_threads,
        access,
        patience: options.engine_patience,
        sandbox: sandbox(options, state),
        extensions: extensions::folders(options),
        installs: options.installs,
        ..usual
    }
}

/// The folders that a project is confined to, if it is.
pub fn sandbox(options: &Options, state: &StateFolder) -> Option<Sandbox> {
    options
        .sandbox
        .then(|| Sandbox::new([options.root.clone(), state.path()]))
}

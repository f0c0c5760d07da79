//! The only place that opens an engine, with the settings of a project.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use watershed_drivers::duckdb::{self, Engine, Outside};
pub(crate) use watershed_drivers::duckdb::{endless, numbers};
use watershed_drivers::olap::{Access, Conditions, Home, Olap, System};
use watershed_drivers::sandbox::Sandbox;
use watershed_outputs::Outputs;
use watershed_outputs::secrets::Secrets;

use super::{Options, extensions};
use crate::state_folder::StateFolder;

/// Resources at work for each transaction that makes outputs: small builds wait for a transaction together and share
/// it.
const FOR_EACH_BUILD: usize = 6;

/// Returns the engine of a project, which opens its data when there is work.
pub(crate) fn engine(options: &Options, state: &StateFolder, home: Home, access: Access) -> Arc<dyn Olap> {
    Arc::new(Engine::new(duckdb::Options {
        home,
        ..settings(options, state, access)
    }))
}

/// Returns a read-only engine for a file, with the settings of a project.
pub(crate) fn engine_of(path: PathBuf, options: &Options, state: &StateFolder) -> Arc<dyn Olap> {
    Arc::new(Engine::new(duckdb::Options {
        path,
        ..settings(options, state, Access::ReadOnly)
    }))
}

/// Data for a trial of the engine, apart from the project's.
#[derive(Clone)]
pub(crate) struct Trial(duckdb::Options);

impl Trial {
    /// Names data in a home, or in a file at a path, to be used with the settings of a project.
    pub(crate) fn new(options: &Options, state: &StateFolder, path: PathBuf, home: Home) -> Self {
        Self(duckdb::Options {
            path,
            home,
            ..settings(options, state, Access::ReadWrite)
        })
    }

    pub(crate) fn engine(&self) -> Arc<dyn Olap> {
        Arc::new(Engine::new(self.0.clone()))
    }

    /// Opens the data with somebody else's program; no engine may have them open.
    pub(crate) fn outside(&self) -> Result<Outside, String> {
        Outside::open(&self.0)
    }

    /// Returns true if one process at a time can have the data open.
    pub(crate) fn is_one_process(&self) -> bool {
        match &self.0.home {
            Home::File => true,
            Home::Lake(home) => {
                let lake = home.database.lake.as_ref();
                lake.is_none_or(|lake| lake.catalog == System::DuckDb)
            }
        }
    }

    /// Returns the name of what a server has of the data; empty where it has nothing.
    pub(crate) fn name(&self) -> String {
        let schema = match &self.0.home {
            Home::File => None,
            Home::Lake(home) => home.database.lake.as_ref().and_then(|lake| lake.schema.clone()),
        };
        schema
            .map(|schema| format!("schema {schema}"))
            .unwrap_or_default()
    }

    /// Removes what a server has of the data.
    pub(crate) fn forget(&self) -> Result<(), String> {
        match &self.0.home {
            Home::File => Ok(()),
            Home::Lake(home) => Outside::forget_lake(&self.0, home),
        }
    }
}

/// Returns the evaluator of conditions of policies, which costs nothing until it is used.
pub(crate) fn conditions() -> Arc<dyn Conditions> {
    Arc::new(duckdb::Conditions::new())
}

/// Resources at work where outputs are made in a lake: as many as share one of its transactions.
const IN_LAKE: usize = 256;

/// Returns the number of resources that run at once: several for each job, as many as share a transaction in a lake, or one if
/// a single job is asked for.
pub(super) fn jobs(options: &Options, state: &StateFolder, home: &Home) -> usize {
    let builds = settings(options, state, Access::ReadWrite).builds;
    match options.jobs {
        Some(NonZeroUsize::MIN) => 1,
        _ if *home != Home::File => IN_LAKE,
        _ => builds.get().saturating_mul(FOR_EACH_BUILD),
    }
}

fn settings(options: &Options, state: &StateFolder, access: Access) -> duckdb::Options {
    let usual = duckdb::Options::new(state.engine(), options.root.clone());
    duckdb::Options {
        builds: options.jobs.unwrap_or(usual.builds),
        share: options.share.clone(),
        memory_limit: options.memory_limit,
        memory_share: options.memory_share,
        threads: options.engine_threads,
        access,
        patience: options.engine_patience,
        sandbox: sandbox(options, state),
        working_folder: options.working_folder.clone(),
        extensions: extensions::folders(options),
        installs: options.installs,
        loads: options.loads.clone(),
        ..usual
    }
}

/// Returns the folders that a project is confined to; none if it is not confined.
pub fn sandbox(options: &Options, state: &StateFolder) -> Option<Sandbox> {
    options
        .sandbox
        .then(|| Sandbox::new([options.root.clone(), state.path()]).reaching(options.reach.clone()))
}

/// Gives the outputs of a project their secrets, and the policy of outgoing connections.
pub(crate) fn outputs(outputs: Outputs, options: &Options, secrets: Secrets) -> Outputs {
    outputs.with_secrets(secrets).with_egress(options.egress.clone())
}

/// Removes the files that a killed process has made for answers, for which nobody waits any more.
pub(crate) fn remove_answers(state: &StateFolder) {
    // A folder that stays is removed at the next start.
    let _ = std::fs::remove_dir_all(state.answers());
}

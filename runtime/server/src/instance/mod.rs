//! A project brought to life: its state folder, its engine, its controller.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use watershed::{Options, Runtime};
//!
//! let runtime = Runtime::new();
//! let instance = runtime.open(Options::new("path/to/project")).await?;
//! instance.controller().wait_until_idle(Duration::from_secs(60)).await?;
//! let mut request = instance.reconcile("daily_delays").await?;
//! let outcome = request.outcome(Duration::from_secs(60)).await?;
//! println!("{outcome:?}");
//! instance.close(Duration::from_secs(10)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Any number of instances live in one process, each on a state folder of its own.

mod catalog;
mod compiled;
mod converge;
mod folder;
mod observer;
mod options;
mod query;
mod read;
mod service;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use watershed_controller::store::SqliteStore;
use watershed_controller::{Controller, Handle, Limits, Request, Revision, ShutdownError, StartError};
use watershed_drivers::duckdb::{self, Access};
use watershed_proto::ProjectParserSpec;
use watershed_reconcilers::outputs::Outputs;
use watershed_reconcilers::{Setup, model, project_parser};

pub(crate) use self::compiled::{Specs, begin_validation, compile, compiled_sql, validated};
pub(crate) use self::converge::{Stop, Stopping};
pub(crate) use self::folder::Folder;
pub use self::options::Options;
pub(crate) use self::query::stream as stream_query;
use crate::report::document::Project;
use crate::report::{Entry, names};
use crate::socket::Refusal;
use crate::state_folder::{self, Lock, STATE_FOLDER, StateFolder};

/// The name of the catalog's instance: one project has one state folder, so one name does.
const INSTANCE: &str = "default";

/// Opens projects.
///
/// It holds nothing itself: what instances share is the tokio runtime on which they are opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Runtime;

impl Runtime {
    /// A runtime for any number of instances.
    pub fn new() -> Self {
        Self
    }

    /// Takes a project's state folder, opens its catalog and begins to converge it. Neither the engine's file nor a
    /// table is touched before something is to be done.
    ///
    /// # Errors
    /// When the state folder can't be used, belongs to another process, is damaged or is from a newer version. Then
    /// nothing was changed.
    pub async fn open(&self, options: Options) -> Result<Instance, OpenError> {
        let state = options.state_folder()?;
        let lock = state.try_own()?.ok_or_else(|| OpenError::Owned(state.path()))?;
        Instance::open(options, state, lock).await
    }
}

/// Why an instance can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process uses the state folder.
    #[error("the state folder `{}` is used by another process", .0.display())]
    Owned(PathBuf),
    /// The state folder can't be made or locked.
    #[error(transparent)]
    State(#[from] state_folder::Error),
    /// The catalog can't be opened.
    #[error(transparent)]
    Catalog(#[from] watershed_controller::store::StoreError),
    /// The controller did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The project could not be declared to the controller.
    #[error("can't declare the project")]
    Declare(#[source] watershed_controller::EditError),
}

/// Why an instance was not closed in order. It is closed all the same.
#[derive(Debug, thiserror::Error)]
pub enum CloseError {
    /// The controller did not stop in order.
    #[error(transparent)]
    Controller(#[from] ShutdownError),
    /// The engine did not close in order; what was built is safe.
    #[error("can't close the engine")]
    Engine(#[from] watershed_drivers::olap::Failure),
}

/// A project that is kept converged by this process.
pub struct Instance {
    project: Project,
    options: Options,
    controller: Controller,
    outputs: Arc<Outputs>,
    engine: duckdb::Engine,
    found: Found,
    /// Given back last.
    _lock: Lock,
}

/// The catalog as it was when the instance was opened.
#[derive(Debug, Clone, Default)]
struct Found {
    entries: Vec<Entry>,
    revision: Revision,
}

impl Instance {
    pub(crate) async fn open(options: Options, state: StateFolder, lock: Lock) -> Result<Self, OpenError> {
        let (store, found) = catalog::Remembering::new(SqliteStore::open(state.catalog()).await?);
        let engine = duckdb::Engine::new(engine_options(&options, &state, Access::ReadWrite));
        let proof = state.path().join("main.duckdb.proof");
        let outputs = Arc::new(Outputs::new(Arc::new(engine.clone()), &state.engine(), proof));
        let setup = Setup {
            root: options.root.clone(),
            environment: options.environment.clone(),
            outputs: Arc::clone(&outputs),
            parse_cache: Some(state.parse_cache()),
            jobs: jobs(&options),
        };
        let limits = Limits {
            concurrency: jobs(&options) + PARSERS,
            ..Limits::default()
        };
        let builder = Controller::builder()
            .instance(INSTANCE)
            .store(store)
            .limits(limits);
        let controller = setup.register(builder).start().await?;
        let found = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
        let spec = ProjectParserSpec {
            environment: options.environment.clone(),
            variables: options.variables.clone(),
        };
        project_parser::declare_parser(&controller, spec)
            .await
            .map_err(OpenError::Declare)?;
        let project = options.project();
        Ok(Self {
            project,
            options,
            controller,
            outputs,
            engine,
            found,
            _lock: lock,
        })
    }

    /// The controller: every operation on resources.
    pub fn controller(&self) -> &Handle {
        &self.controller
    }

    /// The project's name: that of its folder.
    pub fn name(&self) -> &str {
        &self.project.name
    }

    /// Asks for a resource to be looked at, by `name` or `kind/name`.
    ///
    /// # Errors
    /// When there is no such resource or there are several, or the controller is shutting down.
    pub async fn reconcile(&self, name: &str) -> Result<Request, Refusal> {
        let entries = self.entries();
        let uid = names::resolve(&entries, name)?.row.uid;
        self.controller
            .reconcile(uid)
            .await
            .map_err(|error| converge::refused(&error))
    }

    /// Stops in order: cancels what runs, waits up to `grace` for it, and closes the engine and the state folder.
    ///
    /// # Errors
    /// When something did not stop in order; the instance is closed all the same.
    pub async fn close(&self, grace: Duration) -> Result<(), CloseError> {
        let stopped = self.controller.shutdown(grace).await;
        let proof = self.engine.close().await?;
        stopped?;
        // Without it the next start looks into the engine instead of trusting the file.
        let rows = self.controller.list(watershed_controller::Hidden::Show).resources;
        let claims = rows.iter().filter_map(|resource| model::claim(&resource.row));
        if let Err(error) = self.outputs.record_close(proof.as_ref(), claims) {
            tracing::warn!(%error, "can't record how the engine's file was left");
        }
        Ok(())
    }

    fn entries(&self) -> Vec<Entry> {
        let listing = self.controller.list(watershed_controller::Hidden::Show);
        listing
            .resources
            .into_iter()
            .map(|r| Entry {
                row: r.row,
                status: r.status,
            })
            .collect()
    }
}

/// Reads of files beside builds: the project parser must not wait for a slot that a model holds.
const PARSERS: usize = 1;

fn jobs(options: &Options) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    options.jobs.map_or_else(cores, std::num::NonZeroUsize::get)
}

pub(crate) fn engine_options(options: &Options, state: &StateFolder, access: Access) -> duckdb::Options {
    duckdb::Options {
        memory_limit: options.memory_limit,
        threads: options.engine_threads,
        access,
        ..duckdb::Options::new(state.engine(), options.root.clone())
    }
}

impl Options {
    /// Where the state of these options is kept.
    ///
    /// # Errors
    /// When the environment's name could not be a folder's.
    pub fn state_folder(&self) -> Result<StateFolder, state_folder::Error> {
        let root = self
            .state_dir
            .clone()
            .unwrap_or_else(|| self.root.join(STATE_FOLDER));
        StateFolder::new(root, &self.environment)
    }

    pub(crate) fn project(&self) -> Project {
        let name = self
            .root
            .file_name()
            .map_or_else(|| "project".into(), |name| name.to_string_lossy());
        Project {
            name: name.into_owned(),
            root: self.root.clone(),
            environment: self.environment.clone(),
        }
    }
}

type Memory = Arc<Mutex<Found>>;

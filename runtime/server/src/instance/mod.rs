//! An open project: its state folder, its engine, its controller.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use watershed::Runtime;
//!
//! let runtime = Runtime::new();
//! let instance = runtime.open("path/to/project").await?;
//! instance.controller().wait_until_idle(Duration::from_secs(60)).await?;
//! let mut request = instance.reconcile("daily_delays").await?;
//! let outcome = request.outcome(Duration::from_secs(60)).await?;
//! println!("{outcome:?}");
//! instance.close(Duration::from_secs(10)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Any number of instances live in one process, each on a state folder of its own. Their files are watched: what is
//! saved converges until the instance is closed.

mod approve;
pub(crate) mod catalog;
pub(crate) mod compiled;
pub(crate) mod conform;
mod converge;
#[cfg(feature = "http")]
mod edits;
mod error;
mod extensions;
pub(crate) mod home;
mod live;
pub(crate) mod look;
mod managed;
mod names;
mod observer;
pub(crate) mod open;
mod options;
mod order;
mod origins;
pub(crate) mod partitions;
mod problem;
mod progress;
mod refresh;
mod retry;
pub(crate) mod run_log;
mod runtime;
mod settle;
mod sharing;
mod stay;
mod stop;
mod wish;
pub(crate) mod workloads;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use watershed_api::documents::{Command, Time};
use watershed_api::{Owner, documents::Trust};
use watershed_controller::shutdown::ShutdownError;
use watershed_controller::store::{SqliteStore, Store};
use watershed_controller::{Builder, Controller, EditError, Handle, Limits, Uid};
use watershed_drivers::olap::{Conditions, Olap};
use watershed_managers::{Discovery, Managed};
use watershed_outputs::{Outputs, secrets::Secrets};
use watershed_proto::ProjectParserSpec;
use watershed_reconcilers::managed::Calls;
use watershed_reconcilers::project_parser::compilation::Compilation;
use watershed_reconcilers::project_parser::known::Known;
use watershed_reconcilers::project_parser::touched::{Scope, Touched};
use watershed_reconcilers::setup::BESIDE_BUILDS;
use watershed_reconcilers::{Setup, model, project_parser};
use watershed_workloads::Workloads;

pub(crate) use self::compiled::Built;
pub use self::compiled::compiler_options;
#[cfg(feature = "http")]
pub(crate) use self::edits::Parsed;
pub use self::error::{CloseError, OpenError};
pub use self::open::sandbox;
pub use self::options::{Files, Options, state_name};
use self::origins::Origins;
pub use self::problem::unfinished;
pub use self::problem::{close_problem, open_problem, state_problem};
pub(crate) use self::problem::{engine_problem, refused};
pub use self::runtime::Runtime;
use self::sharing::Attendance;
pub(crate) use self::sharing::{Attended, Holder};
pub use self::stay::Stayed;
pub(crate) use self::stop::Control;
pub use self::stop::{Stop, Stopping};
pub(crate) use self::wish::{Reach, Which, Wish};
use crate::hiding::Hiding;
use crate::kept::Moment;
use crate::report::document::Project;
use crate::report::{Entry, Listing};
use crate::selection::{Choice, Evaluate as _};
use crate::state_folder::{Lock, StateFolder};
pub use watershed_reconcilers::links::{self, Links};
use watershed_resolvers::Cache;
pub use watershed_resolvers::Viewer;
pub use watershed_resolvers::directory::{self, Directory};

/// Declares the project parser, the resource that reads the project's files, and returns its uid.
async fn declare_parser(
    controller: &Controller,
    options: &Options,
    secrets: &Secrets,
) -> Result<Uid, OpenError> {
    let spec = ProjectParserSpec {
        environment: options.environment.clone(),
        variables: secrets.seal_all(&options.variables),
    };
    match project_parser::declare_parser(controller.as_ref(), spec).await {
        Ok(parser) => Ok(parser),
        Err(error) => Err(not_declared(controller, error).await),
    }
}

/// Returns the error of a project that could not be declared, since the controller has stopped or is about to.
async fn not_declared(controller: &Controller, error: EditError) -> OpenError {
    match controller.shutdown(Duration::ZERO).await {
        Err(full @ ShutdownError::StoreFull { .. }) => OpenError::Full(full),
        _ => OpenError::Declare(error),
    }
}

/// A project that is kept converged by this process.
pub struct Instance {
    pub(crate) project: Project,
    pub(crate) options: Options,
    pub(crate) state: StateFolder,
    controller: Controller,
    pub(crate) outputs: Arc<Outputs>,
    choice: Choice,
    pub(crate) engine: Arc<dyn Olap>,
    /// The catalog at the time the instance was opened.
    found: Listing,
    known: Known,
    watching: Option<live::Watching>,
    workloads: Workloads,
    /// Kept answers of metrics views.
    pub(crate) cache: Arc<Cache>,
    /// The embedder's users; none outside of an embedder.
    pub(crate) directory: Option<Arc<dyn Directory>>,
    #[cfg(feature = "http")]
    pub(crate) slots: crate::slots::Slots,
    /// The evaluator of the conditions in policies.
    pub(crate) conditions: Arc<dyn Conditions>,
    /// The time at which the instance was opened.
    pub(crate) opened: Time,
    /// The address of its page for people.
    pub(crate) address: OnceLock<String>,
    /// Cancelled when the instance is about to be closed.
    pub(crate) leaving: CancellationToken,
    /// The resources as readers over HTTP see them.
    #[cfg(feature = "http")]
    projections: crate::projection::Projections,
    /// The requests that runs go back to.
    pub(crate) origins: Origins,
    /// The processes and streams that ask it at present.
    attended: Attendance,
    /// The secrets of its runtime's projects, its own among them.
    hiding: Hiding,
    /// The claim on a name in the embedder's store; none if the catalog is a file in the state folder.
    pub(crate) claim: Option<names::Claim>,
    /// The lock on the state folder, declared last so that it is released last.
    lock: Lock,
}

impl Runtime {
    /// Opens the store of an instance's catalog, and claims its name in a store that instances share.
    async fn catalog_of(
        &self,
        options: &Options,
        state: &StateFolder,
    ) -> Result<(Arc<dyn Store>, Option<names::Claim>), OpenError> {
        match &self.store {
            Some(store) => store.claim(&options.name),
            None => Ok((Arc::new(SqliteStore::open(state.catalog()).await?), None)),
        }
    }

    /// Opens a project whose state folder is locked by this process.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    #[doc(hidden)]
    pub async fn open_owned(
        &self,
        options: Options,
        state: StateFolder,
        lock: Lock,
    ) -> Result<Instance, OpenError> {
        options.refuse_links(&state)?;
        let touched = Touched::default();
        // Before the files are read for the first time, so that no edit falls in between.
        let begun = match options.files {
            Files::Once => None,
            Files::Watched => Some(live::Begun::new(&options.root, self.watcher(), &touched).await),
        };
        let (engine, mut place) = home::engine(&options, &state).await?;
        let secrets = secrets_of(&options, &state);
        let choice = options.selection.chosen();
        let outputs = Outputs::new(Arc::clone(&engine), state.proof()).await;
        let outputs = open::outputs(outputs, &options, secrets.clone()).with_lake(place.connector());
        let outputs = outputs.with_chosen(choice.chosen.clone());
        let outputs = Arc::new(outputs.with_sandbox(sandbox(&options, &state)));
        refuse_damage(&*engine, &outputs, options.files, &place).await?;
        let jobs = open::jobs(&options, &state, &place.home);
        let known = known_files(&options, &state, &outputs, &touched, place.take_compilation());
        let (store, claim) = self.catalog_of(&options, &state).await?;
        // Not before it is known that this version may write into the folder.
        Moment::End.forget(&state.path());
        open::remove_answers(&state);
        known.look_ahead(compiled::compiler_options(&options));
        let cache = Arc::new(Cache::new(Arc::clone(&outputs)));
        let conditions = open::conditions();
        let setup = Setup {
            cache: Arc::clone(&cache),
            conditions: Arc::clone(&conditions),
            directory: self.directory.clone(),
            links: self.links.clone(),
            root: options.root.clone(),
            environment: options.environment.clone(),
            outputs: Arc::clone(&outputs),
            known: known.clone(),
            exports: state.exports(),
            jobs,
            sample: options.sample,
        };
        let (settings, managers) = compiled::program_settings(&options).await;
        let workloads = workloads::open(&options, &state, &secrets, &choice.chosen, settings);
        let at_once = managed::at_once(&managers);
        let calls = managed::of_project(&options, &state, &secrets, &choice.chosen, managers)?;
        let builder = Controller::builder()
            .instance(options.name.as_str())
            .store(store)
            .limits(limits(jobs + workloads.concurrency() + 2 * at_once));
        let logs = state.logs();
        self.hiding.begin(&logs, &secrets);
        let managed = Managed::new(calls).at_once(at_once);
        let discovery = managed.discovery();
        let builder = managed.register(setup.register(builder));
        let origins = origins::of(self);
        let builder = above_data(origins.observe(workloads.register(builder)), &*engine);
        let taken = builder.take().await?;
        engine.lead(taken.stored().epoch.0);
        let found = catalog::found(taken.stored());
        outputs.set(catalog::engine_settings(&found.entries, &options, &secrets));
        let controller = taken.start().instrument(crate::logs::span(&logs)).await?;
        let parser = declare_parser(&controller, &options, &secrets).await?;
        workloads.watch(controller.handle());
        let leaving = CancellationToken::new();
        let discovery = (options.files == Files::Watched).then_some(discovery);
        look_after(&controller.handle(), &engine, discovery, &leaving);
        let watching = begun.map(|begun| begun.go_on(controller.handle(), parser, touched.clone(), &lock));
        Ok(Instance {
            directory: self.directory.clone(),
            project: options.project(),
            options,
            state,
            controller,
            outputs,
            choice,
            engine,
            found,
            known,
            watching,
            workloads,
            cache,
            conditions,
            opened: Time::now(),
            address: OnceLock::new(),
            leaving,
            #[cfg(feature = "http")]
            projections: Default::default(),
            origins,
            attended: Attendance::default(),
            hiding: self.hiding.clone(),
            #[cfg(feature = "http")]
            slots: self.readers.join(),
            claim,
            lock,
        })
    }
}

/// Returns what is known of the project's files: a compilation, if there was one already.
fn known_files(
    options: &Options,
    state: &StateFolder,
    outputs: &Outputs,
    touched: &Touched,
    compilation: Option<Compilation>,
) -> Known {
    let known = Known::new(&options.root, Some(state.parse_cache()), touched.clone());
    let known = known.confined(outputs.sandbox().cloned());
    if let Some(compilation) = compilation {
        known.begin_with(compilation);
    }
    known
}

/// Has the lease taken under an epoch above all that the data have seen: a state folder that was deleted or restored is
/// behind the data, which it is to lead all the same.
fn above_data(builder: Builder, engine: &dyn Olap) -> Builder {
    builder.above_epoch(engine.newest_epoch().unwrap_or_default())
}

/// Returns the limits of a controller that has so many places for builds, processes and managed resources.
fn limits(places: usize) -> Limits {
    Limits::default()
        .concurrency(places + PARSERS + BESIDE_BUILDS)
        // Resources of kinds that have no reconciler yet are listed as unsupported.
        .unregistered_kinds()
}

/// Starts the background tasks of an instance, which end when it is closed.
fn look_after(
    handle: &Handle,
    engine: &Arc<dyn Olap>,
    discovery: Option<Discovery<Calls>>,
    leaving: &CancellationToken,
) {
    tokio::spawn(watershed_reconcilers::managed::look_after(
        handle.clone(),
        leaving.clone(),
    ));
    if let Some(discovery) = discovery {
        tokio::spawn(managed::tell_of_orphans(
            discovery,
            handle.clone(),
            leaving.clone(),
        ));
    }
    tokio::spawn(sharing::look_after_changes(
        Arc::clone(engine),
        handle.clone(),
        leaving.clone(),
    ));
}

/// Returns the secrets of a project that are known before its files are read.
pub(crate) fn secrets_of(options: &Options, state: &StateFolder) -> Secrets {
    let secrets = Secrets::with_key_file(&state.key()).unwrap_or_else(|error| {
        // Then everything that reads a variable counts as changed by the next process.
        tracing::warn!(%error, "the key of sealed values can't be kept");
        Secrets::default()
    });
    secrets.learn_names([options.environment.as_str()]);
    secrets.give(&options.variables);
    secrets
}

/// Opens the engine's file unless it is as an orderly close left it, and fails if it is damaged or too new.
async fn refuse_damage(
    engine: &dyn Olap,
    outputs: &Outputs,
    files: Files,
    place: &home::Place,
) -> Result<(), OpenError> {
    use watershed_drivers::olap::{Failure, OpenError as Unusable};
    let Ok(file) = engine.own_file() else {
        return place.refuse_unusable(engine, outputs, files).await;
    };
    if outputs.were_as_left() || !file.path().exists() {
        return Ok(());
    }
    let opened = match files {
        // What stays answers meanwhile, and lets its work wait.
        Files::Watched => file.open_now().await,
        Files::Once => engine.open(&CancellationToken::new()).await,
    };
    match opened {
        Err(Failure::Open(why @ (Unusable::Damaged { .. } | Unusable::Newer { .. }))) => {
            Err(OpenError::Engine(why))
        }
        // Otherwise everything would fail that nobody touched.
        Err(Failure::Open(why @ Unusable::Locked { .. })) if files == Files::Once => {
            Err(OpenError::Engine(why))
        }
        // Whatever else it is may pass, and is said by what needs the file.
        _ => Ok(()),
    }
}

impl Instance {
    /// Returns the handle of the controller, for every operation on resources.
    pub fn controller(&self) -> &Handle {
        self.controller.as_ref()
    }

    /// Returns the description of this process as the owner of the state folder, for other processes.
    pub(crate) fn as_owner(&self) -> Owner {
        Owner {
            command: match self.options.files {
                Files::Watched => Command::Start,
                Files::Once => Command::Run,
            },
            process: std::process::id(),
            sandbox: self.options.sandbox,
        }
    }

    /// Returns what the project's files may do.
    pub fn trust(&self) -> Trust {
        match self.options.sandbox {
            true => Trust::Sandbox,
            false => Trust::Full,
        }
    }

    /// Returns the project's name, which is the name of its folder.
    pub fn name(&self) -> &str {
        &self.project.name
    }

    /// Returns the number of resources that wait to run or run. Looks at all resources.
    #[cfg(feature = "http")]
    pub(crate) fn unsettled(&self) -> u64 {
        let stats = self.controller.stats();
        stats.running + stats.pending.values().sum::<u64>()
    }

    /// Tells other processes the address of this instance's page for people. The first one counts.
    pub fn answers_at(&self, address: String) {
        let _ = self.address.set(address);
    }

    /// Returns the reason why files can't be watched; none if they are watched or need not be.
    ///
    /// Files that can't be watched are looked at every few seconds.
    pub fn watch_trouble(&self) -> Option<&str> {
        self.watching.as_ref()?.trouble()
    }

    /// Resolves when somebody has removed or replaced the state folder. Cancel-safe.
    ///
    /// The work of this instance is seen by nobody from then on, so it should be closed and opened anew. Only noticed
    /// where files are watched.
    pub async fn lost(&self) {
        match &self.watching {
            Some(watching) => watching.lost().await,
            None => std::future::pending().await,
        }
    }

    /// Frees memory that the engine holds without need, unless work is running in it.
    ///
    /// Worth a call whenever nothing is left to do: it costs nothing unless much has been built since.
    pub async fn give_back_memory(&self) {
        if let Ok(file) = self.engine.own_file() {
            file.give_back_memory().await;
        }
    }

    /// Makes the next parse read all of the project's files, not only the changed ones.
    fn look_at_everything(&self) {
        self.known.touched().add(Scope::Everything);
    }

    /// Stops in order: cancels runs and waits up to `grace` for them, closes the engine, and releases the state folder.
    ///
    /// # Errors
    /// When something did not stop in order; the instance is closed all the same, and keeps the state folder until it is
    /// dropped.
    pub async fn close(&self, grace: Duration) -> Result<(), CloseError> {
        self.stop_all(grace).await?;
        self.lock.release();
        Ok(())
    }

    async fn stop_all(&self, grace: Duration) -> Result<(), CloseError> {
        self.end_followers();
        if let Some(watching) = &self.watching {
            watching.stop();
        }
        self.workloads.leave();
        let stopped = self.controller.shutdown(grace).await;
        self.stop_programs().await;
        let proof = self.engine.close().await?;
        stopped?;
        // What stands there now is somebody else's.
        if !self.lock.proof().still() {
            return Ok(());
        }
        // Without it the next start looks into the engine instead of trusting the file.
        let rows = self
            .controller
            .list(watershed_controller::Select::all())
            .resources;
        let claims = rows.iter().filter_map(|resource| model::claim(&resource.row));
        if let Err(error) = self.outputs.record_close(proof.as_ref(), claims) {
            tracing::warn!(%error, "can't record how the engine's file was left");
        }
        Moment::End.note(&self.state.path(), Time::now());
        crate::state_folder::tighten(&self.state.path());
        Ok(())
    }

    /// Stops the programs whose lifetime ends with this process: all of a one-off command, otherwise those that say
    /// `stop`.
    async fn stop_programs(&self) {
        let ends_with_us = match self.options.files {
            Files::Once => |_: &str| true,
            Files::Watched => |said: &str| said == "stop",
        };
        self.workloads.stop(self.controller(), ends_with_us).await;
    }

    /// Closes the engine's file whenever it was idle for a moment, so that other programs can open it, until the future
    /// is dropped.
    ///
    /// The next work opens the file again, and waits for a program that has it open then. To be run beside an instance
    /// that stays; without it the file is held until the instance is closed.
    pub async fn share_file(&self) {
        match self.engine.own_file() {
            Ok(file) => {
                let share = || file.share_file(sharing::REST);
                self.attended.while_unattended(share).await;
            }
            Err(_) => std::future::pending().await,
        }
    }

    /// Notes that somebody is connected, for as long as the value lives.
    #[cfg(feature = "http")]
    pub(crate) fn attend(&self) -> Attended {
        self.attended.begin()
    }

    /// Returns the projection of the resources, at least as new as the last commit.
    #[cfg(feature = "http")]
    pub(crate) async fn projection(&self) -> Arc<crate::projection::Projection> {
        self.projections.read(self.controller(), &self.leaving).await
    }

    /// Returns all resources as they stand now, hidden ones included.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let listing = self.controller.list(watershed_controller::Select::all());
        listing.resources.into_iter().map(Entry::from).collect()
    }
}

/// Concurrent runs reserved for the project parser, which must not wait for a slot that a model holds.
const PARSERS: usize = 1;

impl Drop for Instance {
    fn drop(&mut self) {
        self.leaving.cancel();
        if let Some(watching) = &self.watching {
            watching.stop();
        }
        self.hiding.end(&self.state.logs());
    }
}

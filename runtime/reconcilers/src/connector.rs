//! Connectors: access to other systems, tested when their settings change.
//!
//! DuckDB is tried by a question: the project's own engine where the connector names no file, the file itself, opened
//! for reading only, where it does. Local files are tried by a look at their folder, stores of objects by a listing. Other
//! drivers are kept.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio_util::sync::CancellationToken;
use watershed_compilers::{Scope, render_text};
use watershed_controller::{Context, KindOptions, Reconciler, RetryPolicy};
use watershed_core::{Error, Outcome, Parents, SourcePosition, Work};
use watershed_dialect::ENGINE;
use watershed_drivers::{
    objects,
    olap::{Attached, DatabaseCause, Failure, QueryError, Session, Statement, Statements as _, System},
    reach,
};
use watershed_outputs::{
    Asking, Outputs,
    access::{self, Surroundings},
    database, failure,
    sessions::{SESSION_KEYS, session_sql},
};
use watershed_proto::{ConnectorSpec, ConnectorState, MapValue, Value};

use crate::{away, messages::Proto, places, refs};

/// The kind by which the controller knows connectors.
pub const KIND: &str = watershed_outputs::refs::CONNECTOR;

/// The result of testing the lake that the engine has attached.
const OWN_LAKE: &str = "the lake that models are built in";
/// The result of testing a lake that does not exist yet.
const NEW_LAKE: &str = "a lake that is made when rows are written";

/// The code of errors in the statements with which connections begin.
const INIT_SQL: &str = "init-sql";

/// Returns the options with which the kind is registered.
#[must_use]
pub fn options() -> KindOptions {
    KindOptions::new(KIND)
        .retry(RetryPolicy::Never)
        .parents(Parents::Changed)
}

/// The reconciler of connectors, which tests connections.
pub struct ConnectorReconciler {
    outputs: Arc<Outputs>,
    root: Arc<Path>,
    environment: String,
}

impl ConnectorReconciler {
    /// Creates the reconciler for the project in `root`, with the engine of `outputs`.
    #[must_use]
    pub fn new(outputs: Arc<Outputs>, root: &Path, environment: impl Into<String>) -> Self {
        Self {
            outputs,
            root: root.into(),
            environment: environment.into(),
        }
    }
}

impl Reconciler for ConnectorReconciler {
    type Spec = Proto<ConnectorSpec>;
    type State = Proto<ConnectorState>;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let spec = &context.spec().0;
        if let Some(fault) = &spec.fault {
            return Err(failure::from_fault(fault));
        }
        refs::check(context.refs(), self.outputs.chosen())?;
        let trial = Trial {
            connectors: self,
            name: context.name().as_str(),
            spec,
            paths: &context.row().paths,
        };
        let proof = proof(spec, &context);
        let secrets = self.outputs.secrets();
        let redact = |error| away::run_again(&self.outputs, &context, secrets.redact_error(error));
        let target = trial.target().map_err(redact)?;
        let known = context.state().is_some_and(|state| state.0.proof == proof);
        if known && target.is_there() {
            return Ok(Outcome::default());
        }
        let engine = Asking {
            outputs: &self.outputs,
            cancel: context.cancellation(),
        };
        let answered = trial.run(&target, engine).await.map_err(redact)?;
        let answered = secrets.redact(&answered).into_owned();
        let state = Proto(ConnectorState { proof, answered });
        context.set_state(&state).await?;
        Ok(Outcome::from_work(Work::Checked))
    }
}

/// Returns a hash of the tested settings and the requested refreshes; while it is equal, the test is skipped.
fn proof(spec: &ConnectorSpec, context: &Context<ConnectorReconciler>) -> String {
    let meaning = spec.meaning.as_ref().map(|meaning| meaning.digest.as_slice());
    let asked = context.refreshes();
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(meaning.unwrap_or_default())
        .update(&asked.plain.to_le_bytes())
        .update(&asked.full.to_le_bytes());
    hasher.finalize().to_hex().as_str()[..32].to_owned()
}

/// The target of a connection test.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    /// The engine of the project.
    Own,
    /// A new engine that keeps its data in memory.
    Memory,
    /// A database file; `made` if it is created when missing.
    File { path: PathBuf, made: bool },
    /// A folder of files; `made` if it is created when missing.
    Folder { path: PathBuf, made: bool },
    /// An object store, tested by an address in it; not tested if the connector names no bucket.
    Store(Box<objects::Access>, Option<String>),
    /// A database of another system.
    Database(Box<Attached>),
    /// A target of a driver that is not tested.
    Kept,
}

impl Target {
    /// Returns true if the target still seems to exist, without opening it.
    fn is_there(&self) -> bool {
        match self {
            Self::Own | Self::Memory | Self::Store(..) | Self::Kept => true,
            Self::Database(attached) => attached.file().is_none_or(Path::is_file),
            Self::File { path, made } => *made || path.exists(),
            Self::Folder { path, made } => *made || path.is_dir(),
        }
    }
}

struct Trial<'a> {
    connectors: &'a ConnectorReconciler,
    name: &'a str,
    spec: &'a ConnectorSpec,
    paths: &'a [Arc<str>],
}

impl Trial<'_> {
    /// Returns the target that the settings describe.
    ///
    /// # Errors
    /// When a template in the settings can't be executed.
    fn target(&self) -> Result<Target, Error> {
        match self.spec.driver.as_str() {
            "duckdb" if self.spec.provision || self.spec.builds => Ok(Target::Own),
            "duckdb" => {
                let Some(text) = self.setting(&["path", "db", "dsn"])? else {
                    return Ok(Target::Own);
                };
                let file = text.split('?').next().unwrap_or_default();
                if file.is_empty() || file == ":memory:" {
                    return Ok(Target::Memory);
                }
                let made = self.setting(&["mode"])?.is_some_and(|mode| mode == "readwrite");
                let path = self.connectors.root.join(file);
                Ok(Target::File { path, made })
            }
            "local_file" | "file" => {
                let folder = self.setting(&["path", "root", "dsn"])?.unwrap_or_default();
                Ok(Target::Folder {
                    path: self.connectors.root.join(folder),
                    // Messages make it when the first one comes.
                    made: self.spec.driver == "file",
                })
            }
            driver if access::is_store(driver) => self.store(),
            driver => self.database(driver),
        }
    }

    fn database(&self, driver: &str) -> Result<Target, Error> {
        let Some(system) = System::from_driver(driver) else {
            return Ok(Target::Kept);
        };
        let empty = MapValue::default();
        let scope = Scope {
            environment: self.connectors.environment.clone(),
            variables: self.connectors.outputs.secrets().open(&self.spec.variables)?,
            ..Scope::default()
        };
        let connection = database::Connection {
            system,
            connector: self.name,
            settings: vec![(self.spec.properties.as_ref().unwrap_or(&empty), scope)],
            root: &self.connectors.root,
        };
        // Its own name: a model that reads through it at the same time has another.
        let attached = connection.attached(&format!("trial_of_{}", self.name));
        let attached = attached.map_err(|error| failure::from_render(&error))?;
        Ok(Target::Database(Box::new(attached)))
    }

    async fn ask_database(&self, attached: &Attached, cancel: &CancellationToken) -> Result<String, Error> {
        if self.connectors.outputs.sandbox().is_some() {
            return Err(failure::confined_database());
        }
        if self.connectors.outputs.are_in(self.name) {
            return Ok(OWN_LAKE.to_owned());
        }
        let place = |error: Error| Error {
            place: Some(places::from_spot(self.paths, None)),
            ..error
        };
        if let Some(file) = attached.file().filter(|file| !file.is_file()) {
            if self.makes_lake()? {
                return Ok(NEW_LAKE.to_owned());
            }
            return Err(place(failure::missing_database(file)));
        }
        let checked = reach::check_servers(self.connectors.outputs.egress(), attached).await;
        checked.map_err(|error| place(failure::from_reach(&error)))?;
        let tried = async {
            let databases = self.connectors.outputs.olap().databases()?;
            databases.try_out(attached, cancel).await
        };
        match tried.await {
            Ok(()) => Ok(format!("{} answers", self.spec.driver)),
            Err(Failure::Interrupted) => Err(failure::cancelled()),
            Err(Failure::Database(error)) if error.cause == DatabaseCause::NoLake && self.makes_lake()? => {
                Ok(NEW_LAKE.to_owned())
            }
            Err(error) => Err(place(failure::from_failure(&error))),
        }
    }

    /// Returns true if a missing lake is created by the first write to it.
    fn makes_lake(&self) -> Result<bool, Error> {
        let is_written = self.setting(&["mode"])?.is_some_and(|mode| mode == "readwrite");
        Ok(is_written && self.spec.driver == "ducklake")
    }

    fn store(&self) -> Result<Target, Error> {
        let variables = self.connectors.outputs.secrets().open(&self.spec.variables)?;
        let access = access::access(
            self.spec,
            &variables,
            Surroundings {
                environment: &self.connectors.environment,
                root: &self.connectors.root,
                is_confined: self.connectors.outputs.sandbox().is_some(),
            },
        );
        let access = access.map_err(|error| failure::from_render(&error))?;
        let Some(access) = access else {
            return Ok(Target::Kept);
        };
        let access = objects::Access {
            egress: self.connectors.outputs.egress().clone(),
            ..access
        };
        let prefixes = access::prefixes(self.spec, access.driver);
        // A prefix of a scheme alone names nothing that could be asked.
        let address = prefixes
            .into_iter()
            .find(|prefix| objects::Location::parse(prefix).is_some());
        Ok(Target::Store(Box::new(access), address))
    }

    /// Returns the first of the given settings that is set, with its template executed.
    fn setting(&self, keys: &[&str]) -> Result<Option<String>, Error> {
        let properties = self.spec.properties.as_ref();
        let found = keys.iter().find_map(|key| Some((*key, properties?.get(key)?)));
        let Some((key, text)) = found.and_then(|(key, value)| Some((key, Value::as_str(value)?))) else {
            return Ok(None);
        };
        let scope = Scope {
            environment: self.connectors.environment.clone(),
            variables: self.connectors.outputs.secrets().open(&self.spec.variables)?,
            ..Scope::default()
        };
        let rendered = render_text(text, &scope).map_err(|error| Error {
            place: Some(self.place(key)),
            ..failure::from_render(&error)
        })?;
        Ok(Some(rendered).filter(|text| !text.is_empty()))
    }

    fn place(&self, key: &str) -> SourcePosition {
        places::from_spot(self.paths, self.spec.spots.get(key))
    }

    /// Tests the connection; returns the answer of the other side.
    async fn run(&self, target: &Target, engine: Asking<'_>) -> Result<String, Error> {
        match target {
            Target::Kept | Target::Store(_, None) => Ok(String::new()),
            Target::Database(attached) => self.ask_database(attached, engine.cancel).await,
            Target::Store(access, Some(address)) => self.ask_store(access, address, engine.cancel).await,
            Target::Own => match engine.rows(ENGINE.write(&Statement::Version)).await {
                Ok(Ok(rows)) => Ok(answer(rows.into_iter().flatten().next())),
                Ok(Err(error)) => Err(failure::from_sql(&error)),
                Err(error) => Err(self.placed(error)),
            },
            Target::Memory => Ok("an engine in memory".to_owned()),
            Target::File { path, .. } | Target::Folder { path, .. } if self.is_outside(path) => {
                let message = format!("`{}` is outside the sandbox", path.display());
                let error = self.unreachable("path", &message);
                Err(Error {
                    code: "outside-sandbox".into(),
                    hint: Some(failure::confined().into()),
                    ..error
                })
            }
            Target::File { path, made } => self.file(path, *made, engine).await,
            Target::Folder { path, made } => match fs::read_dir(path) {
                Ok(_) => Ok(format!("folder {}", path.display())),
                Err(error) if error.kind() == io::ErrorKind::NotFound && *made => {
                    Ok(format!("folder {}, made with the first file", path.display()))
                }
                Err(error) => Err(self.unreachable("path", &format!("`{}`: {error}", path.display()))),
            },
        }
    }

    async fn ask_store(
        &self,
        access: &objects::Access,
        address: &str,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        let sandbox = self.connectors.outputs.sandbox();
        if sandbox.is_some_and(|sandbox| !sandbox.reaches(access, address)) {
            return Err(failure::confined_store(address));
        }
        let asked = objects::try_access(access, address, cancel).await;
        asked.map_err(|error| Error {
            place: Some(self.place("path_prefixes")),
            ..failure::from_store(&error)
        })?;
        Ok(format!("{address} answers"))
    }

    fn is_outside(&self, path: &Path) -> bool {
        let sandbox = self.connectors.outputs.sandbox();
        sandbox.is_some_and(|sandbox| !sandbox.holds(path))
    }

    async fn file(&self, path: &Path, made: bool, asking: Asking<'_>) -> Result<String, Error> {
        if !path.exists() {
            let folder = path.parent().is_some_and(Path::is_dir);
            return if made && folder {
                Ok("a file that is made when it is needed".to_owned())
            } else {
                Err(self.unreachable("path", &format!("`{}` does not exist", path.display())))
            };
        }
        let variables = self.connectors.outputs.secrets().open(&self.spec.variables)?;
        let sql = session_sql(self.spec, &variables, &self.connectors.environment);
        let session = sql.map(|sql| Session {
            connector: "this one".to_owned(),
            sql,
            ..Session::default()
        });
        let tried = async {
            let databases = self.connectors.outputs.olap().databases()?;
            databases.try_file(path, session, asking.cancel).await
        };
        let version = tried.await.map_err(|error| match error {
            QueryError::Failed(Failure::Interrupted) => failure::cancelled(),
            error => self.unreachable("path", &error.to_string()),
        })?;
        Ok(answer(version))
    }

    /// Adds the place of the initial statements to an error in them.
    fn placed(&self, error: Error) -> Error {
        if &*error.code != INIT_SQL {
            return error;
        }
        let key = SESSION_KEYS
            .iter()
            .find(|key| self.spec.spots.contains_key(**key));
        let place = key.map(|key| self.place(key));
        Error { place, ..error }
    }

    fn unreachable(&self, key: &str, why: &str) -> Error {
        let has_key = |key: &&str| self.spec.spots.contains_key(*key);
        let key = [key, "db", "dsn", "root"].into_iter().find(has_key);
        let place = key.map(|key| self.place(key));
        Error {
            place: Some(place.unwrap_or_else(|| places::from_spot(self.paths, None))),
            ..Error::transient("connection-failed", format!("the connection failed: {why}"))
        }
    }
}

fn answer(version: Option<watershed_drivers::olap::Value>) -> String {
    version.map_or_else(String::new, |version| format!("DuckDB {version}"))
}

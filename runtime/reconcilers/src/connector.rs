//! Connectors: access to another system, tried when its settings change.
//!
//! DuckDB is tried by a question: the project's own engine where the connector names no file, the file itself, opened
//! for reading only, where it does. Local files are tried by a look at their folder. Other drivers are kept.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use watershed_compilers::{Scope, render_text};
use watershed_controller::{Context, KindOptions, Reconciler};
use watershed_core::{Error, Outcome, Parents, Place, Work};
use watershed_drivers::{
    duckdb::{Access, Engine, Options},
    olap::{Olap as _, Query, QueryError},
};
use watershed_proto::{ConnectorSpec, ConnectorState, Value};

use crate::{asking::Asking, messages::Proto, model::failure, outputs::Outputs, places, refs};

/// The kind's name.
pub const KIND: &str = "connector";

/// The kind's options.
#[must_use]
pub fn options() -> KindOptions {
    KindOptions {
        parents: Parents::Changed,
        ..KindOptions::new(KIND)
    }
}

/// Whether a connector is a database file of its own.
pub(crate) fn has_file(spec: &ConnectorSpec) -> bool {
    let named = |key: &&str| {
        let text = spec.properties.as_ref().and_then(|all| all.str(key));
        text.is_some_and(|text| !text.is_empty() && text != ":memory:")
    };
    spec.driver == "duckdb" && !spec.provision && ["path", "db", "dsn"].iter().any(named)
}

/// Tries connectors.
pub struct ConnectorReconciler {
    outputs: Arc<Outputs>,
    root: Arc<Path>,
    environment: String,
}

impl ConnectorReconciler {
    /// One for a project below `root` whose engine is that of `outputs`.
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
            return Err(failure::of_fault(fault));
        }
        refs::check(context.refs())?;
        let trial = Trial {
            connectors: self,
            spec,
            paths: &context.row().paths,
        };
        let proof = proof(spec, &context);
        let secrets = self.outputs.secrets();
        let redact = |error| secrets.redact_error(error);
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
        let written = context.set_state(&state).await;
        written.map_err(|error| Error::transient("state", error.to_string()))?;
        Ok(Outcome::of(Work::Checked))
    }
}

/// Stands for the settings that were tried, and for refreshes that were asked for.
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

/// What is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    /// The project's own engine.
    Own,
    /// An engine in memory.
    Memory,
    /// A database file, and whether it is made when it is missing.
    File { path: PathBuf, made: bool },
    /// A folder of files.
    Folder(PathBuf),
    /// A driver that is kept.
    Kept,
}

impl Target {
    /// Whether what was tried before is still there, as far as a look without opening tells.
    fn is_there(&self) -> bool {
        match self {
            Self::Own | Self::Memory | Self::Kept => true,
            Self::File { path, made } => *made || path.exists(),
            Self::Folder(path) => path.is_dir(),
        }
    }
}

struct Trial<'a> {
    connectors: &'a ConnectorReconciler,
    spec: &'a ConnectorSpec,
    paths: &'a [Arc<str>],
}

impl Trial<'_> {
    /// # Errors
    /// When a template in the settings can't be executed.
    fn target(&self) -> Result<Target, Error> {
        match self.spec.driver.as_str() {
            "duckdb" if self.spec.provision => Ok(Target::Own),
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
                Ok(Target::Folder(self.connectors.root.join(folder)))
            }
            _ => Ok(Target::Kept),
        }
    }

    /// The first of these settings that is there, its template executed.
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
            ..failure::of_render(&error)
        })?;
        Ok(Some(rendered).filter(|text| !text.is_empty()))
    }

    fn place(&self, key: &str) -> Place {
        places::of_spot(self.paths, self.spec.spots.get(key))
    }

    /// Tries it; says what answered.
    async fn run(&self, target: &Target, engine: Asking<'_>) -> Result<String, Error> {
        match target {
            Target::Kept => Ok(String::new()),
            Target::Own => match engine.rows("SELECT version()".to_owned()).await? {
                Ok(rows) => Ok(answer(rows)),
                Err(error) => Err(failure::of_sql(&error)),
            },
            Target::Memory => Ok("an engine in memory".to_owned()),
            Target::File { path, made } => self.file(path, *made, engine).await,
            Target::Folder(path) => match fs::read_dir(path) {
                Ok(_) => Ok(format!("folder {}", path.display())),
                Err(error) => Err(self.unreachable("path", &format!("`{}`: {error}", path.display()))),
            },
        }
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
        let options = Options {
            access: Access::ReadOnly,
            ..Options::new(path, self.connectors.root.as_ref())
        };
        let engine = Engine::new(options);
        let query = Query {
            sql: "SELECT version()".to_owned(),
            limit: None,
            timeout: None,
        };
        let asked: Result<_, QueryError> = async {
            let mut rows = engine.query(query, asking.cancel).await?;
            rows.collect().await
        }
        .await;
        let closed = engine.close().await;
        let rows = asked.map_err(|error| match error {
            QueryError::Failed(watershed_drivers::olap::Failure::Interrupted) => failure::of_cancel(),
            error => self.unreachable("path", &error.to_string()),
        })?;
        closed.map_err(|failure| failure::of_failure(&failure))?;
        Ok(answer(rows))
    }

    fn unreachable(&self, key: &str, why: &str) -> Error {
        let has_key = |key: &&str| self.spec.spots.contains_key(*key);
        let key = [key, "db", "dsn", "root"].into_iter().find(has_key);
        let place = key.map(|key| self.place(key));
        Error {
            place: Some(place.unwrap_or_else(|| places::of_spot(self.paths, None))),
            ..Error::transient("connection-failed", format!("the connection failed: {why}"))
        }
    }
}

fn answer(rows: Vec<Vec<watershed_drivers::olap::Value>>) -> String {
    let version = rows.into_iter().flatten().next();
    version.map_or_else(String::new, |version| format!("DuckDB {version}"))
}

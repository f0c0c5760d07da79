//! A project's folder and what a run needs, kept between runs.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc, time::Duration};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use watershed_controller::store::MemoryStore;
use watershed_controller::{Controller, Key, Resource, Select};
use watershed_core::{Epoch, Error, InvocationId, RunResult, Uid, Work};
use watershed_drivers::{
    duckdb::{ByHand, Conditions, Engine, Options},
    olap::{Olap as _, Query},
};
use watershed_outputs::{Outputs, secrets::Secrets};
use watershed_proto::{Diagnostic, ProjectParserSpec, ProjectParserState};

use crate::project_parser::{known::Known, touched::Touched};
use crate::{Setup, messages::Proto, project_parser};

/// Long enough for a busy machine, short enough to see that something hangs.
const DEADLINE: Duration = Duration::from_secs(60);

pub(super) struct Site {
    root: TempDir,
    state: TempDir,
    store: MemoryStore,
    /// Runs of each resource up to the last look.
    seen: BTreeMap<Uid, Option<(Epoch, InvocationId)>>,
    variables: BTreeMap<String, String>,
}

/// A finished run, to be looked at.
pub(super) struct Ran {
    /// `built name`, `renamed name`, `failed name`, in order of names; what did nothing is left out.
    pub(super) works: Vec<String>,
    /// All resources at the end, the parser apart.
    pub(super) resources: Vec<Resource>,
    /// The parser at the end.
    pub(super) parser: Resource,
    /// True if the engine's file was opened.
    pub(super) opened_engine: bool,
}

impl Site {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let site = Self {
            root: tempfile::tempdir().unwrap(),
            state: tempfile::tempdir().unwrap(),
            store: MemoryStore::new(),
            seen: BTreeMap::new(),
            variables: BTreeMap::new(),
        };
        files.iter().for_each(|(path, text)| site.write(path, text));
        site
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    pub(super) fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    pub(super) fn set_variable(&mut self, name: &str, value: &str) {
        self.variables.insert(name.into(), value.into());
    }

    pub(super) fn lose_catalog(&mut self) {
        self.store = MemoryStore::new();
        self.seen.clear();
    }

    /// Runs statements in the engine by hand.
    pub(super) fn by_hand(&self, sql: &str) {
        ByHand::open(&self.engine_file()).run(sql);
    }

    /// Makes another database with these statements.
    pub(super) fn database(&self, path: &std::path::Path, sql: &str) {
        ByHand::open(path).run(sql);
    }

    fn engine_file(&self) -> PathBuf {
        self.state.path().join("main.duckdb")
    }

    fn engine(&self) -> Engine {
        Engine::new(Options::new(self.engine_file(), self.root.path()))
    }

    /// One process: parses, converges, ends in order.
    pub(super) async fn run(&mut self) -> Ran {
        let engine = self.engine();
        let proof = self.state.path().join("main.duckdb.proof");
        // Like a process of its own, it finds the key of the one before it.
        let secrets = Secrets::with_key_file(&self.state.path().join("secrets.key")).unwrap();
        let outputs = Outputs::new(Arc::new(engine.clone()), proof).await;
        let outputs = Arc::new(outputs.with_secrets(secrets));
        let cache = Arc::new(watershed_resolvers::Cache::new(Arc::clone(&outputs)));
        let parse_cache = Some(self.state.path().join("parse-cache"));
        let known = Known::new(self.root.path(), parse_cache, Touched::default());
        known.look_ahead(watershed_compilers::Options {
            variables: self.variables.clone(),
            ..watershed_compilers::Options::default()
        });
        let setup = Setup {
            links: None,
            cache,
            conditions: Arc::new(Conditions::new()),
            directory: None,
            root: self.root.path().to_owned(),
            environment: "dev".into(),
            outputs: Arc::clone(&outputs),
            known,
            exports: self.state.path().join("exports"),
            jobs: 2,
            sample: None,
        };
        let controller = setup
            .register(Controller::builder().store(self.store.clone()))
            .start()
            .await
            .unwrap();
        let spec = ProjectParserSpec {
            environment: "dev".into(),
            variables: self.variables.clone(),
        };
        project_parser::declare_parser(controller.as_ref(), spec)
            .await
            .unwrap();
        if let Err(error) = controller.wait_until_idle(DEADLINE).await {
            let stands = controller.list(Select::all()).resources;
            let stands = stands
                .iter()
                .map(|one| format!("{} {:?} {:?}", one.row.name, one.status, one.row.intents));
            panic!("{error}: {}", stands.collect::<Vec<_>>().join("\n"));
        }
        let ran = self.look(&controller, engine.is_open());
        controller.shutdown(DEADLINE).await.unwrap();
        let proof = engine.close().await.unwrap();
        let rows = controller.list(Select::all()).resources;
        let claims = rows
            .iter()
            .filter_map(|resource| crate::model::claim(&resource.row));
        outputs.record_close(proof.as_ref(), claims).unwrap();
        ran
    }

    fn look(&mut self, controller: &Controller, opened_engine: bool) -> Ran {
        let parser = controller
            .get(Key::new(project_parser::KIND, project_parser::NAME))
            .unwrap();
        let resources = controller.list(Select::new().with_deleted()).resources;
        let mut works = Vec::new();
        for resource in &resources {
            let last = resource.row.last_run.as_ref();
            let id = last.map(|run| (run.epoch, run.id));
            let is_new = self.seen.insert(resource.row.uid, id) != Some(id);
            let result = last.filter(|_| is_new).map(|run| run.result);
            let work = match result {
                Some(RunResult::Done(Work::Built)) => "built",
                Some(RunResult::Done(Work::Restored)) => "restored",
                Some(RunResult::Done(Work::Renamed)) => "renamed",
                Some(RunResult::Failed) => "failed",
                _ => continue,
            };
            works.push(format!("{work} {}", resource.row.name));
        }
        Ran {
            works,
            resources,
            parser,
            opened_engine,
        }
    }

    /// The rows of a query, each as text.
    pub(super) async fn rows(&self, sql: &str) -> Vec<String> {
        let engine = self.engine();
        let query = Query::new(sql);
        let mut rows = engine.query(query, &CancellationToken::new()).await.unwrap();
        let rows = rows.collect().await.unwrap();
        let rows = rows
            .iter()
            .map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|"));
        let rows = rows.collect();
        engine.close().await.unwrap();
        rows
    }

    /// Returns the objects in the engine's main schema, in one line.
    pub(super) async fn objects(&self) -> String {
        let sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' \
             AND NOT starts_with(table_name, '_watershed_trash_') ORDER BY 1";
        self.rows(sql).await.join(" ")
    }
}

impl Ran {
    pub(super) fn names(&self) -> String {
        self.resources
            .iter()
            .map(|resource| resource.row.name.to_string())
            .collect::<Vec<_>>()
            .join(" ")
    }

    pub(super) fn find(&self, name: &str) -> &Resource {
        let found = self
            .resources
            .iter()
            .find(|resource| resource.row.name.as_str() == name);
        found.unwrap_or_else(|| panic!("there is no `{name}` among {}", self.names()))
    }

    pub(super) fn error(&self, name: &str) -> &Error {
        self.find(name)
            .row
            .error
            .as_deref()
            .unwrap_or_else(|| panic!("`{name}` has no error"))
    }

    pub(super) fn diagnostics(&self) -> Vec<Diagnostic> {
        self.parser
            .state::<Proto<ProjectParserState>>()
            .unwrap()
            .unwrap_or_default()
            .0
            .diagnostics
    }
}

//! A folder, a catalog, an engine and a controller over them, which can be stopped and started again.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use watershed_conform::Layered;
use watershed_controller::clock::{Clock, Now, SystemClock};
use watershed_controller::shutdown::ShutdownError;
use watershed_controller::store::MemoryStore;
use watershed_controller::{Controller, Key, Refresh, Resource};
use watershed_core::{Epoch, Error, InvocationId, Ref, RunResult, Work};
use watershed_drivers::{
    duckdb::{ByHand, Engine, Options},
    olap::{Olap, Output, PartitionPhase, PartitionRun, Partitions as _, Query},
};
use watershed_outputs::Outputs;
use watershed_proto::{
    DataResolver, Fingerprint, IncrementalOutput, LocalFiles, MapValue, ModelSpec, ModelState, SqlSource,
};

use crate::{
    messages::Proto,
    model::{self, ModelReconciler},
};

use super::cuts::{Cut, Cuts};

/// Long enough for a busy machine, short enough to see that something hangs.
const DEADLINE: Duration = Duration::from_secs(60);

const ENGINE_FILE: &str = "main.duckdb";

pub(super) struct World {
    pub(super) root: TempDir,
    clock: ShiftedClock,
    store: MemoryStore,
    running: Option<Running>,
    /// The calls of the engine that are answered otherwise.
    cuts: Option<Arc<Cuts>>,
    /// The last run of each model before the present check.
    seen: BTreeMap<String, Option<(Epoch, InvocationId)>>,
}

/// The machine's clock, with a wall time that a test moves.
#[derive(Clone)]
struct ShiftedClock {
    ahead_ms: Arc<AtomicI64>,
    system: SystemClock,
}

impl Clock for ShiftedClock {
    fn now(&self) -> Now {
        let mut now = self.system.now();
        now.wall.0 += self.ahead_ms.load(Ordering::Relaxed);
        now
    }

    fn start(&self) -> tokio::time::Instant {
        self.system.start()
    }
}

struct Running {
    controller: Controller,
    engine: Engine,
    outputs: Arc<Outputs>,
}

/// A model as a test declares it.
#[derive(Clone)]
pub(super) struct Model {
    pub(super) spec: ModelSpec,
    refs: Vec<String>,
}

/// A view over `inputs`; its meaning is its text without the inputs' names.
pub(super) fn view(sql: &str, inputs: &[&str]) -> Model {
    let source = SqlSource {
        path: "models/m.sql".into(),
        text: sql.into(),
        line: 1,
        column: 1,
        ..SqlSource::default()
    };
    let spec = ModelSpec {
        input_connector: "duckdb".into(),
        sql: Some(source),
        inputs: inputs.iter().map(|name| (*name).to_owned()).collect(),
        ..ModelSpec::default()
    };
    Model {
        spec,
        refs: inputs.iter().map(|name| (*name).to_owned()).collect(),
    }
    .meant()
}

pub(super) fn table(sql: &str, inputs: &[&str]) -> Model {
    let mut model = view(sql, inputs);
    model.spec.output_kind = watershed_proto::OutputKind::Table.into();
    model
}

/// A source of files, with options beside their path.
pub(super) fn source(path: &str, options: &[(&str, watershed_proto::Value)]) -> Model {
    let mut model = view("", &[]).reading(path);
    let said = options
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    let mut fields: BTreeMap<_, _> = said.collect();
    fields.insert("path".to_owned(), path.into());
    model.spec.sql = None;
    model.spec.input_connector = "local_file".into();
    model.spec.output_kind = watershed_proto::OutputKind::Table.into();
    model.spec.defined_as_source = true;
    model.spec.input_properties = Some(MapValue { fields });
    model
}

impl Model {
    pub(super) fn output(mut self, name: &str, value: watershed_proto::Value) -> Self {
        let properties = self.spec.output_properties.get_or_insert_with(MapValue::default);
        properties.fields.insert(name.to_owned(), value);
        self
    }

    /// Has builds add to what is there.
    pub(super) fn incremental(mut self, output: IncrementalOutput) -> Self {
        self.spec.incremental = true;
        self.spec.output_kind = watershed_proto::OutputKind::Table.into();
        self.spec.incremental_output = Some(output);
        if let Some(sql) = &mut self.spec.sql {
            sql.templated = true;
        }
        self
    }

    /// Has a query yield the state.
    pub(super) fn state(mut self, sql: &str) -> Self {
        let fields = BTreeMap::from([("sql".to_owned(), sql.into())]);
        self.spec.incremental_state = Some(DataResolver {
            resolver: "sql".into(),
            properties: Some(MapValue { fields }),
        });
        self
    }

    /// Has rows of a query be its partitions.
    pub(super) fn partitions(self, sql: &str) -> Self {
        self.partitioned("sql", BTreeMap::from([("sql".to_owned(), sql.into())]))
    }

    /// Has files be its partitions.
    pub(super) fn partition_files(mut self, pattern: &str) -> Self {
        self.spec.local_files.push(LocalFiles {
            pattern: pattern.into(),
            invalidate_on_change: true,
            partitions: true,
        });
        self.spec.partitions_watermark_field = "updated_on".into();
        self.partitioned("glob", BTreeMap::from([("path".to_owned(), pattern.into())]))
    }

    fn partitioned(mut self, resolver: &str, fields: BTreeMap<String, watershed_proto::Value>) -> Self {
        self.spec.partitions = Some(DataResolver {
            resolver: resolver.into(),
            properties: Some(MapValue { fields }),
        });
        self.spec.output_kind = watershed_proto::OutputKind::Table.into();
        if let Some(sql) = &mut self.spec.sql {
            sql.templated = true;
        }
        self
    }

    pub(super) fn reading(mut self, pattern: &str) -> Self {
        self.spec.local_files.push(LocalFiles {
            pattern: pattern.into(),
            invalidate_on_change: true,
            partitions: false,
        });
        self
    }

    /// Gives it the fingerprint that the compiler would.
    fn meant(mut self) -> Self {
        let mut text = self
            .spec
            .sql
            .as_ref()
            .map(|sql| sql.text.clone())
            .unwrap_or_default();
        for (ordinal, name) in self.spec.inputs.iter().enumerate() {
            text = text.replace(&format!("from {name}"), &format!("from ${ordinal}"));
        }
        let digest = blake3::hash(text.as_bytes()).as_bytes()[..16].to_vec();
        self.spec.output_meaning = Some(Fingerprint {
            version: "1".into(),
            digest,
        });
        self
    }

    pub(super) fn by_rules(mut self, version: &str, digest: u8) -> Self {
        self.spec.output_meaning = Some(Fingerprint {
            version: version.into(),
            digest: vec![digest; 16],
        });
        self
    }

    fn refs(&self) -> Arc<[Ref]> {
        self.refs
            .iter()
            .map(|name| Ref::completed(model::KIND, name.as_str()))
            .collect()
    }
}

impl World {
    pub(super) async fn new() -> Self {
        Self::started(None).await
    }

    /// A world whose engine answers some calls otherwise.
    pub(super) async fn with_cuts(cuts: &Arc<Cuts>) -> Self {
        Self::started(Some(Arc::clone(cuts))).await
    }

    async fn started(cuts: Option<Arc<Cuts>>) -> Self {
        let mut world = Self {
            root: tempfile::tempdir().unwrap(),
            clock: ShiftedClock {
                ahead_ms: Arc::default(),
                system: SystemClock::new(),
            },
            store: MemoryStore::new(),
            running: None,
            cuts,
            seen: BTreeMap::new(),
        };
        world.start().await;
        world
    }

    pub(super) fn path(&self, path: &str) -> std::path::PathBuf {
        self.root.path().join(path)
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    async fn start(&mut self) {
        let engine = Engine::new(Options::new(self.path(ENGINE_FILE), self.root.path()));
        let proof = self.path("main.duckdb.proof");
        let olap: Arc<dyn Olap> = Arc::new(engine.clone());
        let olap = match self.cuts.clone() {
            Some(cuts) => Arc::new(Layered(Cut { inner: olap, cuts })),
            None => olap,
        };
        let outputs = Arc::new(Outputs::new(olap, proof).await);
        let reconciler = ModelReconciler::new(Arc::clone(&outputs), self.root.path(), "dev");
        let builder = Controller::builder().store(self.store.clone());
        let builder = builder.clock(self.clock.clone());
        let controller = builder.kind(model::options(2), reconciler).start().await.unwrap();
        self.running = Some(Running {
            controller,
            engine,
            outputs,
        });
    }

    /// Stops in order, as a run does at its end.
    pub(super) async fn stop(&mut self) {
        let Some(Running {
            controller,
            engine,
            outputs,
        }) = self.running.take()
        else {
            return;
        };
        controller.shutdown(DEADLINE).await.unwrap();
        let proof = engine.close().await.unwrap();
        let rows = controller.list(watershed_controller::Select::all()).resources;
        let claims = rows.iter().filter_map(|resource| model::claim(&resource.row));
        outputs.record_close(proof.as_ref(), claims).unwrap();
    }

    /// Stops in order, lets `meanwhile` happen, and starts again on the same catalog.
    pub(super) async fn restart(&mut self, meanwhile: impl FnOnce(&Path)) {
        self.stop().await;
        meanwhile(self.root.path());
        self.start().await;
        self.settle().await;
    }

    /// Stops in order and starts with a new catalog.
    pub(super) async fn lose_catalog(&mut self) {
        self.stop().await;
        self.store = MemoryStore::new();
        self.seen.clear();
        self.start().await;
    }

    /// Stops as a crash would: nothing is recorded at the end.
    pub(super) async fn crash(&mut self) {
        if let Some(Running {
            controller, engine, ..
        }) = self.running.take()
        {
            let stopped = controller.shutdown(DEADLINE).await;
            assert!(
                matches!(stopped, Ok(()) | Err(ShutdownError::LeaseLost)),
                "{stopped:?}"
            );
            engine.close().await.unwrap();
        }
        self.start().await;
    }

    pub(super) fn controller(&self) -> &Controller {
        &self.running.as_ref().unwrap().controller
    }

    pub(super) fn engine_is_open(&self) -> bool {
        self.running.as_ref().unwrap().engine.is_open()
    }

    /// Waits until everything is settled, or until the lease is lost. Returns whether it is.
    pub(super) async fn settled_or_lost(&self) -> bool {
        let controller = self.controller();
        tokio::select! {
            settled = controller.wait_until_idle(DEADLINE) => settled.is_err(),
            ended = controller.run() => matches!(ended, Err(ShutdownError::LeaseLost)),
        }
    }

    /// Looks at every model again, until all are settled.
    pub(super) async fn retry_all(&self) {
        for resource in self
            .controller()
            .list(watershed_controller::Select::all())
            .resources
        {
            let key = Key::new(model::KIND, resource.row.name.as_str());
            let asked = self.controller().reconcile(key.clone()).await;
            assert!(asked.is_ok() || self.controller().get(key).is_err(), "{asked:?}");
        }
        self.settle().await;
    }

    /// Returns what stands in the engine.
    pub(super) async fn outputs(&self) -> Vec<Output> {
        let engine = &self.running.as_ref().unwrap().engine;
        engine.outputs(&CancellationToken::new()).await.unwrap()
    }

    /// Returns the outputs of which the catalog speaks, of all models without an error.
    pub(super) fn claims(&self) -> Vec<watershed_outputs::Claim> {
        let all = self
            .controller()
            .list(watershed_controller::Select::all())
            .resources;
        let good = all.iter().filter(|resource| resource.row.error.is_none());
        good.filter_map(|resource| model::claim(&resource.row)).collect()
    }

    pub(super) async fn settle(&self) {
        self.controller().wait_until_idle(DEADLINE).await.unwrap();
    }

    /// Creates or updates a model.
    pub(super) async fn declare(&self, name: &str, model: &Model) {
        let key = Key::new(model::KIND, name);
        let spec = Proto(model.spec.clone());
        if self.controller().get(key.clone()).is_ok() {
            let mut update = Resource::new_spec(&spec).unwrap();
            update.refs = Some(model.refs());
            self.controller().update(key, update).await.unwrap();
        } else {
            let new = Resource::declare(model::KIND, name, &spec)
                .unwrap()
                .with_refs(model.refs());
            self.controller().create(new).await.unwrap();
        }
    }

    /// Creates models at once.
    pub(super) async fn create_all(&self, models: &[(&str, Model)]) {
        let new = models.iter().map(|(name, model)| {
            let new = Resource::declare(model::KIND, name, &Proto(model.spec.clone())).unwrap();
            watershed_core::Edit::create(new.with_refs(model.refs()))
        });
        let edits = new.collect();
        self.controller()
            .edit(watershed_core::Batch { edits })
            .await
            .unwrap();
    }

    pub(super) async fn rename(&self, from: &str, to: &str) {
        self.controller()
            .rename(Key::new(model::KIND, from), to)
            .await
            .unwrap();
    }

    pub(super) async fn delete(&self, name: &str) {
        let key = Key::new(model::KIND, name);
        self.controller().delete(key).await.unwrap();
    }

    pub(super) async fn refresh(&self, name: &str) {
        self.controller()
            .refresh(Key::new(model::KIND, name), Refresh::Plain)
            .await
            .unwrap();
    }

    pub(super) async fn refresh_whole(&self, name: &str) {
        self.controller()
            .refresh(Key::new(model::KIND, name), Refresh::Full)
            .await
            .unwrap();
    }

    /// Lets a held edit through, as `watershed approve` does.
    pub(super) async fn approve(&self, name: &str) {
        let row = self.model(name).row;
        let outputs = &self.running.as_ref().unwrap().outputs;
        outputs.approve_edit(row.uid.0, &row.spec);
        self.refresh_whole(name).await;
    }

    /// Sets the clock on the wall.
    pub(super) fn pass(&self, time: Duration) {
        let ms = i64::try_from(time.as_millis()).unwrap();
        self.clock.ahead_ms.fetch_add(ms, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> watershed_core::Timestamp {
        self.clock.now().wall
    }

    pub(super) async fn reconcile(&self, name: &str) {
        self.controller()
            .reconcile(Key::new(model::KIND, name))
            .await
            .unwrap();
    }

    pub(super) fn model(&self, name: &str) -> Resource {
        self.controller().get(Key::new(model::KIND, name)).unwrap()
    }

    pub(super) fn state(&self, name: &str) -> ModelState {
        self.model(name)
            .state::<Proto<ModelState>>()
            .unwrap()
            .unwrap_or_default()
            .0
    }

    pub(super) fn error(&self, name: &str) -> Error {
        let model = self.model(name);
        Error::clone(
            model
                .row
                .error
                .as_ref()
                .unwrap_or_else(|| panic!("`{name}` has no error")),
        )
    }

    /// Waits, and tells which models built or renamed something, or failed, since this was asked last.
    pub(super) async fn works(&mut self) -> Vec<String> {
        self.settle().await;
        let listing = self
            .controller()
            .list(watershed_controller::Select::new().with_deleted());
        let mut told = Vec::new();
        for model in listing.resources {
            let name = model.row.name.to_string();
            let last = model.row.last_run.as_ref();
            let id = last.map(|run| (run.epoch, run.id));
            let is_new = self.seen.insert(name.clone(), id) != Some(id);
            let result = last.filter(|_| is_new).map(|run| run.result);
            match result {
                Some(RunResult::Done(Work::Built)) => told.push(format!("built {name}")),
                Some(RunResult::Done(Work::Restored)) => told.push(format!("restored {name}")),
                Some(RunResult::Done(Work::Renamed)) => told.push(format!("renamed {name}")),
                Some(RunResult::Done(Work::Checked)) => told.push(format!("checked {name}")),
                Some(RunResult::Failed) => told.push(format!("failed {name}")),
                _ => {}
            }
        }
        told
    }

    /// The partitions of a model: data, phase, rows.
    pub(super) async fn partitions(&self, name: &str) -> Vec<String> {
        let engine = &self.running.as_ref().unwrap().engine;
        let uid = self.model(name).row.uid.0;
        let runs = engine.runs(uid, &CancellationToken::new()).await.unwrap();
        let mut told: Vec<String> = runs
            .iter()
            .map(|run| {
                let rows = run.rows.map_or_else(|| "-".to_owned(), |rows| rows.to_string());
                format!("{} {} {rows}", run.partition.data, run.phase.as_str())
            })
            .collect();
        told.sort();
        told
    }

    /// Asks for partitions whose data has a text in it.
    pub(super) async fn ask_for(&self, name: &str, text: &str) {
        let engine = &self.running.as_ref().unwrap().engine;
        let (uid, cancel) = (self.model(name).row.uid.0, CancellationToken::new());
        let runs = engine.runs(uid, &cancel).await.unwrap();
        let next = runs.iter().map(|run| run.number + 1).max().unwrap_or_default();
        let asked = runs.into_iter().filter(|run| run.partition.data.contains(text));
        let notes = asked.zip(next..).map(|(run, number)| PartitionRun {
            phase: PartitionPhase::Asked,
            stage: String::new(),
            number,
            ..run
        });
        engine.note(uid, notes.collect(), &cancel).await.unwrap();
        self.refresh(name).await;
    }

    /// The rows of a query, each as text.
    pub(super) async fn rows(&self, sql: &str) -> Vec<String> {
        let query = Query::new(sql);
        let engine = &self.running.as_ref().unwrap().engine;
        let mut rows = engine.query(query, &CancellationToken::new()).await.unwrap();
        let rows = rows.collect().await.unwrap();
        rows.iter()
            .map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|"))
            .collect()
    }

    /// Returns the objects in the engine's main schema, by name.
    pub(super) async fn objects(&self) -> Vec<String> {
        self.rows(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' \
             AND NOT starts_with(table_name, '_watershed_trash_') ORDER BY 1",
        )
        .await
    }
}

/// Runs statements in the engine of a stopped world by hand.
pub(super) fn by_hand(root: &Path, sql: &str) {
    ByHand::open(&root.join(ENGINE_FILE)).run(sql);
}

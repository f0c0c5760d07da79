//! The real controller over a simulated machine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::{Notify, broadcast};
use watershed_controller::clock::{Clock, TokioClock};
use watershed_controller::store::MemoryStore;
use watershed_controller::{Builder, Controller, Key, Limits, Select, Timestamp, Uid};
use watershed_proto::{JobSpec, Program, RestartPolicy, Rollout, ServiceSpec};

use crate::backend::simulated::{Faults, Simulated, World};
use crate::backend::{Backend, BoxFuture, Error, News, Observation, Start, StartId, Stop};
use crate::job::{JobReconciler, JobRecord};
use crate::policy::health::Probed;
use crate::replica::{self, ReplicaRecord, ReplicaSpec};
use crate::service::{ServiceReconciler, ServiceRecord};
use crate::{Asks, Connect, Job, ProbeTarget, Question, Service, Workloads};

/// Longer than anything takes, in simulated time.
pub(super) const LONG: Duration = Duration::from_secs(24 * 3_600);

/// A machine whose time is that of the test.
#[derive(Clone)]
pub(super) struct Machine {
    pub(super) world: World,
    clock: TokioClock,
    changed: Arc<Notify>,
}

impl Machine {
    fn new(seed: u64, faults: Faults, clock: TokioClock) -> Self {
        let machine = Self {
            world: World::new(seed, faults),
            clock,
            changed: Arc::default(),
        };
        tokio::spawn(machine.clone().run());
        machine
    }

    /// Lets what is to happen happen at its time.
    async fn run(self) {
        loop {
            self.catch_up();
            let wait = self.world.next_event().map(|at| at.0 - self.clock.now().wall.0);
            let wait = wait.map_or(LONG, |ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.changed.notified() => {}
            }
        }
    }

    fn catch_up(&self) {
        self.world.advance(self.clock.now().wall);
    }

    /// Kills the process of a start, from outside.
    pub(super) fn kill(&self, id: &StartId) {
        self.catch_up();
        self.world.kill(id);
        self.changed.notify_one();
    }

    pub(super) fn reboot(&self) {
        self.catch_up();
        self.world.reboot();
        self.changed.notify_one();
    }

    pub(super) fn kill_parent(&self) {
        self.catch_up();
        self.world.kill_parent();
        self.changed.notify_one();
    }

    pub(super) fn end_lease(&self) {
        self.catch_up();
        self.world.end_lease();
        self.changed.notify_one();
    }
}

impl Connect for Machine {
    fn runs_containers(&self) -> bool {
        false
    }

    fn connect(&self, epoch: u64) -> Result<Arc<dyn Backend>, Error> {
        Ok(Arc::new(Connected {
            backend: self.world.connect(epoch),
            machine: self.clone(),
        }))
    }
}

struct Connected {
    backend: Simulated,
    machine: Machine,
}

impl Connected {
    fn now(&self) -> &Simulated {
        self.machine.catch_up();
        self.machine.changed.notify_one();
        &self.backend
    }
}

impl Backend for Connected {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn epoch(&self) -> u64 {
        self.backend.epoch()
    }

    fn start(&self, start: Start) -> BoxFuture<'_, Result<Observation, Error>> {
        self.now().start(start)
    }

    fn stop(&self, stop: Stop) -> BoxFuture<'_, Result<Option<Observation>, Error>> {
        self.now().stop(stop)
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Observation>, Error>> {
        self.now().list()
    }

    fn forget(&self, id: StartId, remove_output: bool) -> BoxFuture<'_, Result<(), Error>> {
        self.now().forget(id, remove_output)
    }

    fn free_memory(&self) -> Option<u64> {
        self.backend.free_memory()
    }

    fn news(&self) -> broadcast::Receiver<News> {
        self.backend.news()
    }
}

/// Answers by a variable of the program: `HEALTH=bad` fails. A name that was made bad fails, too.
#[derive(Clone)]
pub(super) struct Answers {
    clock: TokioClock,
    bad: Arc<Mutex<Vec<StartId>>>,
}

impl Answers {
    /// Returns true if the checks of a start were made to fail.
    pub(super) fn is_failing(&self, start: &StartId) -> bool {
        self.bad.lock().unwrap().contains(start)
    }

    /// Has the checks of a start fail from now on.
    pub(super) fn fail(&self, start: StartId) {
        self.bad.lock().unwrap().push(start);
    }
}

impl Asks for Answers {
    fn ask<'a>(&'a self, _question: &'a Question, target: &'a ProbeTarget) -> BoxFuture<'a, Probed> {
        let is_bad = target
            .environment
            .iter()
            .any(|(name, value)| name == "HEALTH" && value == "bad");
        let is_bad = is_bad || self.bad.lock().unwrap().contains(&target.start);
        Box::pin(async move { if is_bad { Probed::Failure } else { Probed::Success } })
    }

    fn now(&self) -> Timestamp {
        self.clock.now().wall
    }
}

/// A controller with workloads, on a store and a machine that outlive it.
pub(super) struct Stand {
    pub(super) machine: Machine,
    pub(super) answers: Answers,
    store: MemoryStore,
    clock: TokioClock,
    folder: TempDir,
    pub(super) workloads: Workloads,
    pub(super) controller: Controller,
}

impl Stand {
    /// Tokio's clock must be paused.
    pub(super) async fn new(seed: u64, faults: Faults) -> Self {
        let clock = TokioClock::starting_at(Timestamp(0));
        let machine = Machine::new(seed, faults, clock);
        let answers = Answers {
            clock,
            bad: Arc::default(),
        };
        let (store, folder) = (MemoryStore::new(), tempfile::tempdir().unwrap());
        let (workloads, controller) = start(&machine, &answers, &store, clock, &folder).await;
        Self {
            machine,
            answers,
            store,
            clock,
            folder,
            workloads,
            controller,
        }
    }

    /// Lets the program end in order, and starts another one on what it has stored.
    pub(super) async fn restart(&mut self) {
        self.workloads.leave();
        self.crash().await;
    }

    /// Loses the catalog: another program starts on an empty one, and the one before ends.
    pub(super) async fn lose_catalog(&mut self) {
        self.store = MemoryStore::new();
        self.restart().await;
    }

    /// Starts another program on what is stored; the one before stands still where it is, and may act once more.
    pub(super) async fn crash(&mut self) {
        let (workloads, controller) = start(
            &self.machine,
            &self.answers,
            &self.store,
            self.clock,
            &self.folder,
        )
        .await;
        (self.workloads, self.controller) = (workloads, controller);
    }

    pub(super) fn now(&self) -> i64 {
        self.clock.now().wall.0
    }

    /// Lets time pass until nothing runs.
    pub(super) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        self.controller.wait_until_idle(LONG).await.unwrap();
    }

    pub(super) async fn service(&self, name: &str, spec: &ServiceSpec) -> Uid {
        let services = self.controller.resources::<ServiceReconciler>();
        services.apply(name, &Service(spec.clone())).await.unwrap()
    }

    pub(super) async fn job(&self, name: &str, spec: &JobSpec) -> Uid {
        let jobs = self.controller.resources::<JobReconciler>();
        jobs.apply(name, &Job(spec.clone())).await.unwrap()
    }

    pub(super) fn service_record(&self, name: &str) -> ServiceRecord {
        let found = self.controller.get(Key::new("service", name)).unwrap();
        found.state().unwrap().unwrap_or_default()
    }

    pub(super) fn job_record(&self, name: &str) -> JobRecord {
        let found = self.controller.get(Key::new("job", name)).unwrap();
        found.state().unwrap().unwrap_or_default()
    }

    /// The replicas that are there, by number, with their uids.
    pub(super) fn replicas(&self) -> BTreeMap<u64, (Uid, ReplicaSpec, ReplicaRecord)> {
        let all = self.controller.list(Select::all()).resources;
        let replicas = all.iter().filter(|one| one.kind().as_str() == replica::KIND);
        replicas
            .map(|one| {
                let spec: ReplicaSpec = one.spec().unwrap();
                let record = one.state().unwrap().unwrap_or_default();
                (spec.number, (one.uid(), spec, record))
            })
            .collect()
    }

    /// The specs and records of all replicas, deleted ones included.
    pub(super) fn replica_records(&self) -> BTreeMap<Uid, (ReplicaSpec, ReplicaRecord)> {
        let all = self.controller.list(Select::all().with_deleted()).resources;
        let replicas = all.iter().filter(|one| one.kind().as_str() == replica::KIND);
        replicas
            .map(|one| {
                let record = one.state().unwrap().unwrap_or_default();
                (one.uid(), (one.spec().unwrap(), record))
            })
            .collect()
    }

    /// The stages of all replicas, for people: `0 running, 1 backing_off`.
    pub(super) fn stages(&self) -> String {
        let replicas = self.replicas();
        let all = replicas.iter().map(|(number, (_, _, record))| {
            let stage = match record.is_ready() {
                true => "ready",
                false => record.stage.as_str(),
            };
            format!("{number} {stage}")
        });
        all.collect::<Vec<_>>().join(", ")
    }

    pub(super) fn error(&self, kind: &str, name: &str) -> String {
        let found = self.controller.get(Key::new(kind, name)).unwrap();
        let error = found.row.error.clone();
        error.map_or_else(String::new, |error| format!("{}: {}", error.code, error.message))
    }

    pub(super) fn unready(&self, kind: &str, name: &str) -> String {
        let found = self.controller.get(Key::new(kind, name)).unwrap();
        found.row.unready.as_deref().unwrap_or_default().to_owned()
    }

    /// The processes that live, by uid and counter.
    pub(super) fn living(&self) -> Vec<StartId> {
        self.machine.world.living()
    }
}

async fn start(
    machine: &Machine,
    answers: &Answers,
    store: &MemoryStore,
    clock: TokioClock,
    folder: &TempDir,
) -> (Workloads, Controller) {
    let workloads = Workloads::builder(folder.path(), folder.path().join("output"))
        .backend(machine.clone())
        .asks(answers.clone())
        .without_jitter()
        .build();
    let builder: Builder = Controller::builder()
        .store(store.clone())
        .clock(clock)
        .limits(Limits::default().concurrency(4 + workloads.concurrency()));
    let controller = workloads.register(builder).start().await.unwrap();
    workloads.watch(controller.handle());
    (workloads, controller)
}

/// A service of so many copies, without checks.
pub(super) fn service(replicas: u32) -> ServiceSpec {
    ServiceSpec {
        program: Some(Program {
            command: vec!["serve".into()],
            ..Program::default()
        }),
        replicas,
        restart: Some(RestartPolicy {
            policy: "always".into(),
            base_ms: 10_000,
            cap_ms: 300_000,
            attempts: 5,
            stable_window_ms: 600_000,
            success_codes: vec![0],
            no_retry_codes: vec![126, 127],
        }),
        rollout: Some(Rollout {
            strategy: "rolling".into(),
            surge: 1,
            unavailable: 0,
            deadline_ms: 600_000,
            on_deadline: "fail".into(),
        }),
        ..ServiceSpec::default()
    }
}

/// The same with a readiness check.
pub(super) fn checked(replicas: u32) -> ServiceSpec {
    let check = watershed_proto::HealthCheck {
        command: vec!["check".into()],
        readiness: true,
        interval_ms: 1_000,
        timeout_ms: 500,
        threshold: 3,
        min_healthy_time_ms: 2_000,
        on_failure: "restart".into(),
        ..watershed_proto::HealthCheck::default()
    };
    ServiceSpec {
        checks: vec![check],
        ..service(replicas)
    }
}

/// The same with another program.
pub(super) fn with_command(mut spec: ServiceSpec, command: &str) -> ServiceSpec {
    if let Some(program) = spec.program.as_mut() {
        program.command = vec![command.to_owned()];
    }
    spec
}

/// The same with a variable of the program.
pub(super) fn with_variable(mut spec: ServiceSpec, name: &str, value: &str) -> ServiceSpec {
    if let Some(program) = spec.program.as_mut() {
        program.environment.insert(name.to_owned(), value.to_owned());
    }
    spec
}

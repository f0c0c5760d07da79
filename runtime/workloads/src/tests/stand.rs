//! Test stand: a real controller on a simulated machine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::{Notify, broadcast};
use watershed_controller::clock::{Clock, Now, TokioClock};
use watershed_controller::resource::Row;
use watershed_controller::store::MemoryStore;
use watershed_controller::{Builder, Controller, Key, Limits, Resource, Select, Timestamp, Uid};
use watershed_core::{Edit, Ref, Required};
use watershed_proto::{JobSpec, Program, RestartPolicy, Rollout, ServiceSpec};

use crate::backend::simulated::{Faults, Simulated, World};
use crate::backend::{Backend, BoxFuture, Error, News, Observation, Phase, Start, StartId, Stop};
use crate::job::{JobReconciler, JobRecord};
use crate::policy::exit::Exit;
use crate::policy::health::Probed;
use crate::replica::{self, ReplicaRecord, ReplicaSpec};
use crate::service::{ServiceReconciler, ServiceRecord};
use crate::{Asks, Connect, Job, ProbeTarget, Question, Service, Workloads};

/// Time limit in simulated time, far above any delay.
pub(super) const LONG: Duration = Duration::from_secs(24 * 3_600);

/// The machine's clock, which a person may set back.
#[derive(Clone)]
pub(super) struct Wall {
    clock: TokioClock,
    /// Times of each setting back by the steady clock, with the total set back so far.
    set_back: Arc<Mutex<Vec<(Timestamp, i64)>>>,
}

impl Wall {
    fn new() -> Self {
        Self {
            clock: TokioClock::starting_at(Timestamp(0)),
            set_back: Arc::default(),
        }
    }

    /// Returns the time of a clock that is never set back.
    fn steady(&self) -> Timestamp {
        self.clock.now().wall
    }

    /// Returns the time that the clock showed at a time of the steady clock.
    fn shown_at(&self, steady: Timestamp) -> Timestamp {
        let set_back = self.set_back.lock().unwrap();
        let last = set_back.iter().rev().find(|(at, _)| *at <= steady);
        Timestamp(steady.0 - last.map_or(0, |(_, taken)| *taken))
    }

    fn set_back(&self, ms: i64) {
        let now = self.steady();
        let mut set_back = self.set_back.lock().unwrap();
        let taken = set_back.last().map_or(0, |(_, taken)| *taken);
        set_back.push((now, taken + ms));
    }

    /// Returns the milliseconds since the clock was last set back; the maximum if never.
    fn since_set_back(&self) -> i64 {
        let last = self.set_back.lock().unwrap().last().map(|(at, _)| at.0);
        last.map_or(i64::MAX, |at| self.steady().0 - at)
    }
}

impl Clock for Wall {
    fn now(&self) -> Now {
        let now = self.clock.now();
        Now {
            wall: self.shown_at(now.wall),
            ..now
        }
    }

    fn start(&self) -> tokio::time::Instant {
        self.clock.start()
    }

    fn is_simulated(&self) -> bool {
        true
    }
}

/// A simulated machine whose time is that of the test.
#[derive(Clone)]
pub(super) struct Machine {
    pub(super) world: World,
    clock: Wall,
    changed: Arc<Notify>,
}

impl Machine {
    fn new(seed: u64, faults: Faults, clock: Wall) -> Self {
        let machine = Self {
            world: World::new(seed, faults),
            clock,
            changed: Arc::default(),
        };
        tokio::spawn(machine.clone().run());
        machine
    }

    /// Carries out the machine's events at their times.
    async fn run(self) {
        loop {
            self.catch_up();
            let wait = self.world.next_event().map(|at| at.0 - self.clock.steady().0);
            let wait = wait.map_or(LONG, |ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.changed.notified() => {}
            }
        }
    }

    fn catch_up(&self) {
        self.world.advance(self.clock.steady());
    }

    /// Returns an observation with times as the machine's clock showed them.
    fn shown(&self, mut observation: Observation) -> Observation {
        observation.started = self.clock.shown_at(observation.started);
        if let Phase::Ended { at, .. } = &mut observation.phase {
            *at = self.clock.shown_at(*at);
        }
        observation
    }

    /// Kills the process of a start from outside.
    pub(super) fn kill(&self, id: &StartId) {
        self.catch_up();
        self.world.kill(id);
        self.changed.notify_one();
    }

    /// Ends the process of a start with this exit.
    pub(super) fn exit(&self, id: &StartId, exit: Exit) {
        self.catch_up();
        self.world.exit(id, exit);
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
        Box::pin(async move { self.now().start(start).await.map(|one| self.machine.shown(one)) })
    }

    fn stop(&self, stop: Stop) -> BoxFuture<'_, Result<Option<Observation>, Error>> {
        Box::pin(async move {
            let stopped = self.now().stop(stop).await?;
            Ok(stopped.map(|one| self.machine.shown(one)))
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Observation>, Error>> {
        Box::pin(async move {
            let listed = self.now().list().await?;
            Ok(listed.into_iter().map(|one| self.machine.shown(one)).collect())
        })
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

/// A prober whose answers depend on the program's variables: `HEALTH=bad` fails, and so does a probe for another
/// program than `SAYS`, and one of a start that was made to fail.
#[derive(Clone)]
pub(super) struct Answers {
    clock: Wall,
    bad: Arc<Mutex<Vec<StartId>>>,
}

impl Answers {
    /// Returns true if the checks of a start were made to fail.
    pub(super) fn is_failing(&self, start: &StartId) -> bool {
        self.bad.lock().unwrap().contains(start)
    }

    /// Makes the checks of a start fail from now on.
    pub(super) fn fail(&self, start: StartId) {
        self.bad.lock().unwrap().push(start);
    }
}

impl Asks for Answers {
    fn ask<'a>(&'a self, question: &'a Question, target: &'a ProbeTarget) -> BoxFuture<'a, Probed> {
        let variable = |wanted: &str| {
            let mut all = target.environment.iter();
            all.find(|(name, _)| name == wanted).map(|(_, value)| value)
        };
        let is_of_another = match (question, variable("SAYS")) {
            (Question::Command(command), Some(says)) => command.get(1).is_some_and(|asked| asked != says),
            _ => false,
        };
        let is_bad = variable("HEALTH").is_some_and(|value| value == "bad")
            || is_of_another
            || self.bad.lock().unwrap().contains(&target.start);
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
    clock: Wall,
    folder: TempDir,
    pub(super) workloads: Workloads,
    pub(super) controller: Controller,
}

impl Stand {
    /// Creates a stand. Tokio's clock must be paused.
    pub(super) async fn new(seed: u64, faults: Faults) -> Self {
        let clock = Wall::new();
        let machine = Machine::new(seed, faults, clock.clone());
        let answers = Answers {
            clock: clock.clone(),
            bad: Arc::default(),
        };
        let (store, folder) = (MemoryStore::new(), tempfile::tempdir().unwrap());
        let (workloads, controller) = start(&machine, &answers, &store, &clock, &folder).await;
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

    /// Ends the program in an orderly way, and starts another one on the stored state.
    pub(super) async fn restart(&mut self) {
        self.workloads.leave();
        self.crash().await;
    }

    /// Starts another program on an empty catalog, and ends the previous one.
    pub(super) async fn lose_catalog(&mut self) {
        self.store = MemoryStore::new();
        self.restart().await;
    }

    /// Starts another program on the stored state; the previous one is frozen, and may act once more.
    pub(super) async fn crash(&mut self) {
        let (workloads, controller) = start(
            &self.machine,
            &self.answers,
            &self.store,
            &self.clock,
            &self.folder,
        )
        .await;
        (self.workloads, self.controller) = (workloads, controller);
    }

    pub(super) fn now(&self) -> i64 {
        self.clock.now().wall.0
    }

    /// Sets the machine's clock back.
    pub(super) fn set_back(&self, time: Duration) {
        self.clock.set_back(i64::try_from(time.as_millis()).unwrap());
    }

    /// Returns the milliseconds since the machine's clock was last set back.
    pub(super) fn since_set_back(&self) -> i64 {
        self.clock.since_set_back()
    }

    /// Lets simulated time pass until nothing runs.
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

    /// Creates a job that refers to another one.
    pub(super) async fn job_after(&self, name: &str, spec: &JobSpec, other: &str) -> Uid {
        let mut new = Resource::declare("job", name, &Job(spec.clone())).unwrap();
        let reference = Ref {
            required: Required::Ready,
            ..Ref::completed("job", other)
        };
        new.refs = [reference].into();
        let uid = new.uid;
        self.controller.edit(vec![Edit::create(new)]).await.unwrap();
        uid
    }

    pub(super) fn service_record(&self, name: &str) -> ServiceRecord {
        let found = self.controller.get(Key::new("service", name)).unwrap();
        found.state().unwrap().unwrap_or_default()
    }

    pub(super) fn job_record(&self, name: &str) -> JobRecord {
        let found = self.controller.get(Key::new("job", name)).unwrap();
        found.state().unwrap().unwrap_or_default()
    }

    /// Returns the existing replicas by number, with their uids.
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

    /// Returns the specs and records of all replicas, including deleted ones.
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

    /// Returns true if a request to a service has reached a replica: the service has handled the request, and the
    /// replica has run since.
    pub(super) fn has_reached(&self, replica: Uid) -> bool {
        self.has_seen(replica) && self.owner(replica).is_none_or(|owner| self.has_seen(owner))
    }

    /// Returns true if a completed run of a resource has seen all requests; also for a deleted one.
    pub(super) fn has_seen(&self, uid: Uid) -> bool {
        let Ok(found) = self.controller.get(uid) else {
            return true;
        };
        let row: &Row = &found.row;
        let seen = row.last_run.as_ref().and_then(|run| run.seen.clone());
        seen.is_some_and(|seen| seen.spec_version == row.spec_version && seen.refreshes == row.refreshes)
    }

    /// Returns the owner of a resource; none if there is none.
    pub(super) fn owner(&self, uid: Uid) -> Option<Uid> {
        self.controller.get(uid).ok()?.row.owner
    }

    /// Describes the stages of all replicas: `0 running, 1 backing_off`.
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

    /// Returns the living processes by uid and counter.
    pub(super) fn living(&self) -> Vec<StartId> {
        self.machine.world.living()
    }
}

async fn start(
    machine: &Machine,
    answers: &Answers,
    store: &MemoryStore,
    clock: &Wall,
    folder: &TempDir,
) -> (Workloads, Controller) {
    let workloads = Workloads::builder(folder.path(), folder.path().join("output"))
        .backend(machine.clone())
        .asks(answers.clone())
        .without_jitter()
        .build();
    let builder: Builder = Controller::builder()
        .store(store.clone())
        .clock(clock.clone())
        .limits(Limits::default().concurrency(4 + workloads.concurrency()));
    let controller = workloads.register(builder).start().await.unwrap();
    workloads.watch(controller.handle());
    (workloads, controller)
}

/// Returns the start id of the replica with this number.
pub(super) fn start_of(stand: &Stand, number: u64) -> StartId {
    let (uid, _, record) = &stand.replicas()[&number];
    StartId::new(&uid.to_string(), record.counter).unwrap()
}

/// Returns a service with this number of replicas and no checks.
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

/// Returns a service with this number of replicas and a readiness check.
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

/// Returns the service with another program.
pub(super) fn with_command(mut spec: ServiceSpec, command: &str) -> ServiceSpec {
    if let Some(program) = spec.program.as_mut() {
        program.command = vec![command.to_owned()];
    }
    spec
}

/// Returns the service with another program and checks that only that program passes.
pub(super) fn with_own_checks(spec: ServiceSpec, command: &str) -> ServiceSpec {
    let mut spec = with_variable(with_command(spec, command), "SAYS", command);
    for check in &mut spec.checks {
        check.command = vec!["check".to_owned(), command.to_owned()];
    }
    spec
}

/// Returns the service with another variable of its program.
pub(super) fn with_variable(mut spec: ServiceSpec, name: &str, value: &str) -> ServiceSpec {
    if let Some(program) = spec.program.as_mut() {
        program.environment.insert(name.to_owned(), value.to_owned());
    }
    spec
}

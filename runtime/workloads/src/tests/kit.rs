//! The test kit applied to the three kinds, whose processes are stopped and killed at each await.
//!
//! A machine in memory outlives the processes of a play. Each request to it waits before and after its effect, so that
//! a stop or death comes between an effect and its answer, too.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::{Notify, broadcast};
use tokio::task::yield_now;
use watershed_controller::clock::{Clock, TokioClock};
use watershed_controller::{Builder, Handle, Timestamp};
use watershed_proto::{JobRetries, JobSpec, Program};
use watershed_testkit::{Kit, Outside, Roll};

use super::stand::{LONG, checked, service, with_command};
use crate::backend::simulated::{Faults, Simulated, World};
use crate::backend::{self, Backend, BoxFuture, News, Observation, Start, StartId, Stop};
use crate::job::{self, JobReconciler, JobRecord};
use crate::policy::exit::Exit;
use crate::policy::health::Probed;
use crate::policy::restart::Restart;
use crate::replica::{self, ReplicaReconciler, ReplicaRecord, ReplicaSpec};
use crate::service::{self, ServiceReconciler, ServiceRecord};
use crate::settings::{Logs, Stopping};
use crate::shared::Shared;
use crate::{Asks, Connect, Job, ProbeTarget, Question, Service, Workloads};

/// Start of the kit's simulated time: the first moment of 2000, in UTC.
const START: Timestamp = Timestamp(946_684_800_000);

/// Time within which events are noticed: a scan, and the nudge that follows.
const BACKSTOP: Duration = Duration::from_secs(12);

/// Duration of a job's process.
const WORK: Duration = Duration::from_secs(2);

/// A simulated machine with processes, and the program that currently watches them.
#[derive(Clone)]
struct Place(Arc<Inner>);

struct Inner {
    world: World,
    clock: TokioClock,
    changed: Notify,
    commands: Mutex<BTreeMap<StartId, String>>,
    is_in_trouble: AtomicBool,
    program: Mutex<Option<Workloads>>,
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self(Arc::new(Inner {
            world: World::new(1, Faults::NONE),
            clock: TokioClock::starting_at(START),
            changed: Notify::new(),
            commands: Mutex::default(),
            is_in_trouble: AtomicBool::new(false),
            program: Mutex::default(),
            folder: tempfile::tempdir().unwrap(),
        }));
        place.catch_up();
        tokio::spawn(place.clone().run());
        place
    }

    /// Carries out the machine's events at their times.
    async fn run(self) {
        loop {
            self.catch_up();
            let wait = self
                .0
                .world
                .next_event()
                .map(|at| at.0 - self.0.clock.now().wall.0);
            let wait = wait.map_or(LONG, |ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.0.changed.notified() => {}
            }
        }
    }

    fn catch_up(&self) {
        self.0.world.advance(self.0.clock.now().wall);
    }

    /// Starts another program on this machine; the previous one stops acting.
    fn program(&self) -> Arc<Shared> {
        let workloads = Workloads::builder(self.0.folder.path(), self.0.folder.path().join("output"))
            .backend(self.clone())
            .asks(Healthy(self.0.clock))
            .without_jitter()
            .build();
        let shared = workloads.shared();
        if let Some(before) = self.0.program.lock().unwrap().replace(workloads) {
            before.leave();
        }
        shared
    }

    fn present(&self) -> Workloads {
        self.0
            .program
            .lock()
            .unwrap()
            .clone()
            .expect("a program has begun")
    }

    /// Starts watching processes, once the controller of the current program runs.
    fn watch(&self, handle: Handle) {
        self.present().watch(handle);
    }
}

impl Outside for Place {
    /// The commands of living processes, and the number of uncounted ends.
    type Seen = (Vec<String>, usize);

    fn look(&self) -> Self::Seen {
        self.catch_up();
        let living = self.0.world.living();
        let commands = self.0.commands.lock().unwrap();
        let mut seen: Vec<String> = living.iter().map(|id| commands[id].clone()).collect();
        seen.sort();
        (seen, self.0.world.kept() - living.len())
    }

    fn trouble(&self, begins: bool) {
        self.0.is_in_trouble.store(begins, Ordering::Relaxed);
    }
}

impl Connect for Place {
    fn runs_containers(&self) -> bool {
        false
    }

    fn connect(&self, epoch: u64) -> Result<Arc<dyn Backend>, backend::Error> {
        Ok(Arc::new(Connected {
            backend: self.0.world.connect(epoch),
            place: self.clone(),
        }))
    }
}

struct Connected {
    backend: Simulated,
    place: Place,
}

impl Connected {
    async fn ask<T>(&self, request: BoxFuture<'_, Result<T, backend::Error>>) -> Result<T, backend::Error> {
        yield_now().await;
        if self.place.0.is_in_trouble.load(Ordering::Relaxed) {
            return Err(backend::Error::Unreachable {
                backend: "simulated",
                message: "it is in trouble".to_owned(),
            });
        }
        self.place.catch_up();
        let answer = request.await;
        self.place.0.changed.notify_one();
        yield_now().await;
        answer
    }
}

impl Backend for Connected {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn epoch(&self) -> u64 {
        self.backend.epoch()
    }

    fn start(&self, start: Start) -> BoxFuture<'_, Result<Observation, backend::Error>> {
        let backend::Program::Local { command, .. } = &start.program else {
            unreachable!("no container is asked for");
        };
        let (id, command) = (start.id.clone(), command.join(" "));
        Box::pin(async move {
            if command == "work" {
                let place = self.place.clone();
                let id = id.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(WORK).await;
                    place.catch_up();
                    place.0.world.exit(&id, Exit::Code(0));
                    place.0.changed.notify_one();
                });
            }
            self.place.0.commands.lock().unwrap().insert(id, command);
            self.ask(self.backend.start(start)).await
        })
    }

    fn stop(&self, stop: Stop) -> BoxFuture<'_, Result<Option<Observation>, backend::Error>> {
        Box::pin(self.ask(self.backend.stop(stop)))
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Observation>, backend::Error>> {
        Box::pin(self.ask(self.backend.list()))
    }

    fn forget(&self, id: StartId, remove_output: bool) -> BoxFuture<'_, Result<(), backend::Error>> {
        Box::pin(self.ask(self.backend.forget(id, remove_output)))
    }

    fn news(&self) -> broadcast::Receiver<News> {
        self.backend.news()
    }
}

/// A prober whose probes all succeed.
struct Healthy(TokioClock);

impl Asks for Healthy {
    fn ask<'a>(&'a self, _: &'a Question, _: &'a ProbeTarget) -> BoxFuture<'a, Probed> {
        Box::pin(async { Probed::Success })
    }

    fn now(&self) -> Timestamp {
        self.0.now().wall
    }
}

fn replica_spec(roll: &mut Roll) -> ReplicaSpec {
    ReplicaSpec {
        service: "api".to_owned(),
        path: None,
        number: 0,
        release: 1,
        program: crate::Program {
            // A replica has the program of its release for ever: another one is another replica's.
            command: vec!["serve".to_owned()],
            ..crate::Program::default()
        },
        services: Vec::new(),
        addresses: BTreeMap::new(),
        is_wanted: *roll.pick(&[true, true, false]),
        restarts: *roll.pick(&[0, 0, 1]),
        stop: Stopping::default(),
        logs: Logs { max_size: 1, keep: 1 },
        restart: Restart::default(),
        checks: Vec::new(),
        on_server_stop: String::new(),
        retries: *roll.pick(&[0, 0, 1]),
    }
}

/// W13: whatever of a replica is stopped or dies, its process is there once, if it is wanted, and its end counted once.
#[test]
fn a_replica_is_right_wherever_its_program_ends() {
    Kit::new(
        Place::new,
        |place| ReplicaReconciler {
            shared: place.program(),
        },
        replica_spec,
    )
    .started(Place::watch)
    .options(replica::options())
    // Numbers of starts and times differ from one way to another.
    .state(|record: &ReplicaRecord| format!("{} {}", record.stage.as_str(), record.exits.count))
    .rest_after(BACKSTOP)
    .check();
}

fn check_services(spec: impl Fn(&mut Roll) -> Service + 'static) {
    Kit::new(
        Place::new,
        |place| ServiceReconciler {
            shared: place.program(),
        },
        spec,
    )
    .options(service::options())
    .beside(|place, builder: Builder| {
        let shared = place.present().shared();
        builder.kind(replica::options(), ReplicaReconciler { shared })
    })
    .started(Place::watch)
    .state(|record: &ServiceRecord| {
        let active = record.release(record.active);
        let command = active.map(|release| release.program.command.join(" "));
        format!("{} {} {command:?}", record.stage(), record.ready)
    })
    .rest_after(BACKSTOP)
    // Many invocations of two kinds for each step.
    .steps(3_000)
    .check();
}

/// Covers rules W1, W11, W12 and W13.
#[test]
fn a_service_is_right_wherever_its_program_ends() {
    check_services(|roll| {
        let spec = service(*roll.pick(&[0, 1, 2]));
        let command = *roll.pick(&["serve", "listen"]);
        Service(with_command(spec, command))
    });
}

/// Covers rules W9, W11 and W13.
#[test]
fn a_service_with_checks_is_right_wherever_its_program_ends() {
    check_services(|roll| {
        let spec = checked(*roll.pick(&[1, 2]));
        let command = *roll.pick(&["serve", "listen"]);
        Service(with_command(spec, command))
    });
}

/// Covers rules W8 and W13.
#[test]
fn a_job_is_right_wherever_its_program_ends() {
    Kit::new(
        Place::new,
        |place| JobReconciler {
            shared: place.program(),
        },
        |roll| {
            Job(JobSpec {
                program: Some(Program {
                    command: vec!["work".to_owned()],
                    environment: [("WHAT".to_owned(), (*roll.pick(&["one", "two"])).to_owned())].into(),
                    ..Program::default()
                }),
                success_codes: vec![0],
                retries: Some(JobRetries {
                    attempts: 3,
                    base_ms: 100,
                    cap_ms: 1_000,
                }),
                ..JobSpec::default()
            })
        },
    )
    .options(job::options(4))
    .started(Place::watch)
    .state(|record: &JobRecord| format!("{} {}", record.stage.as_str(), record.has_succeeded))
    .rest_after(BACKSTOP)
    .check();
}

//! Replicas: the kind that starts, watches and stops the processes of services.
//!
//! A replica is a hidden resource that its service owns. It has no refs, so no running model delays a restart. No
//! invocation waits for a process: a stop is a stored purpose, a signal and a later look.

mod advance;
mod record;
mod tell;

use std::sync::Arc;
use std::time::Duration;

use watershed_controller::{Context, Error, KindOptions, Outcome, Reconciler};
use watershed_core::Work;

pub use self::advance::told;
use self::advance::{Action, Facts, advance, start_id, unanswered};
pub use self::record::{FailedStart, LastExit, Purpose, ReplicaRecord, ReplicaSpec, Stage};
pub(crate) use self::tell::{exit_code, failure_of, seconds, start_code, wait};

use crate::backend::{self, Backend, Observation, Output, Phase, Start, StartId, Stop, Then};
use crate::crash::{self, crash_point};
use crate::policy::exit::StartFailure;
use crate::policy::health::Action as CheckAction;
use crate::ports::NoPort;
use crate::probe::ProbeTarget;
use crate::program::Ports;
use crate::service::Addresses;
use crate::shared::{self, Shared};

/// Kind under which the catalog stores replicas.
pub const KIND: &str = "replica";

/// The most replicas that are reconciled at once.
pub const AT_ONCE: usize = 64;

/// The most actions in one pass. An end, its record, the next start and a failure of that are four.
const ACTIONS_MAX: usize = 8;

/// Returns the options of the kind.
pub(crate) fn options() -> KindOptions {
    shared::options(KIND)
        .concurrency(AT_ONCE)
        .deadline(Duration::from_secs(300))
}

/// Reconciler of replicas, which starts and watches one process for each.
pub struct ReplicaReconciler {
    pub(crate) shared: Arc<Shared>,
}

impl Reconciler for ReplicaReconciler {
    type Spec = ReplicaSpec;
    type State = ReplicaRecord;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if self
            .shared
            .passes_over(context.row().owner.unwrap_or(context.uid()))
        {
            return Ok(Outcome::passed_over());
        }
        let backend = self
            .shared
            .backends
            .for_program(&context.spec().program, context.epoch().0)
            .map_err(|error| backend_error(&error))?;
        match self.shared.listed(&context, backend.name()).await {
            Ok(true) => {}
            Ok(false) => return Ok(Outcome::passed_over()),
            Err(error) => return Err(backend_error(&error)),
        }
        let uid = context.uid().to_string();
        let pass = Pass {
            shared: &self.shared,
            backend,
            context: &context,
            uid,
        };
        pass.run().await
    }

    /// Orders the stop without waiting for the grace period; the backend then ends the process and forgets the start.
    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let uid = context.uid().to_string();
        self.shared.probes.end(context.uid());
        self.shared.project.remove_results(&uid);
        let Some(record) = context.state().filter(|record| record.counter > 0) else {
            self.shared.observations.remove(&uid);
            return Ok(Outcome::unchanged());
        };
        let backend = self
            .shared
            .backends
            .for_program(&context.spec().program, context.epoch().0)
            .map_err(|error| backend_error(&error))?;
        let start = id_of(&uid, record)?;
        if record.is_open && record.purpose.is_none() {
            // Should the delete be taken back, the end that it orders is nobody's failure (rule W3).
            let record = ReplicaRecord {
                purpose: Some(Purpose::Remove),
                ..record.clone()
            };
            shared::store(&context, &record).await?;
        }
        self.shared.project.remove_earlier_output(&start);
        let stop = stop_of(context.spec(), start, Then::ForgetWithOutput);
        let stopped = backend.stop(stop).await;
        if stopped.map_err(|error| backend_error(&error))?.is_none() {
            // Its end was counted and forgotten, its output kept.
            self.shared.project.remove_output(&uid);
        }
        self.shared.ports.give_back(&record.ports);
        self.shared.observations.remove(&uid);
        Ok(Outcome::from_work(Work::Dropped))
    }
}

/// One pass over a replica.
struct Pass<'a> {
    shared: &'a Shared,
    backend: Arc<dyn Backend>,
    context: &'a Context<ReplicaReconciler>,
    uid: String,
}

impl Pass<'_> {
    async fn run(&self) -> Result<Outcome, Error> {
        let mut record = self.context.state().cloned().unwrap_or_default();
        let mut is_changed = false;
        for _ in 0..ACTIONS_MAX {
            if self.context.is_cancelled() {
                return Ok(Outcome::unchanged());
            }
            let (next, action) = self.decide(&record);
            if next != record {
                is_changed = true;
                let was_ready = next.was_ready;
                self.store(&next).await?;
                self.shared.probes.settle(
                    self.context.uid(),
                    was_ready,
                    next.purpose != record.purpose || is_alert(&next, &record),
                );
            }
            record = next;
            match action {
                Action::Start => record = self.start(record).await?,
                Action::Stop => self.stop(&record).await?,
                Action::StopOther(counter) => self.stop_other(counter).await?,
                Action::Forget => self.forget(&record).await?,
                Action::Wait(wake) => {
                    self.watch(&record);
                    return tell::outcome(self.context, &record, is_changed, wake);
                }
            }
        }
        let record = record;
        tell::outcome(self.context, &record, true, Some(self.context.now()))
    }

    fn decide(&self, record: &ReplicaRecord) -> (ReplicaRecord, Action) {
        self.with_facts(|facts| advance(record, facts))
    }

    /// Calls a function with the inputs of a decision, and marks the observation as seen.
    fn with_facts<T>(&self, decide: impl FnOnce(&Facts<'_>) -> T) -> T {
        let spec = self.context.spec();
        let observed = self.shared.observations.see(&self.uid);
        let uid = self.context.uid();
        let due = observed
            .as_ref()
            .and_then(|observed| self.shared.probes.due(uid, &observed.id));
        let names: Vec<String> = spec.checks.iter().map(crate::settings::CheckSpec::name).collect();
        let due: Option<(&str, CheckAction)> =
            due.and_then(|(number, action)| Some((names.get(number)?.as_str(), action)));
        let refreshes = self.context.refreshes();
        let lack_of_room = Shared::lack_of_room(&spec.program, self.backend.as_ref());
        decide(&Facts {
            lack_of_room: lack_of_room.as_deref(),
            spec,
            observed: observed.as_ref(),
            checks: &self.shared.probes.readiness(uid, &spec.checks),
            due,
            refreshes: refreshes.plain.saturating_add(refreshes.full),
            now: self.context.now(),
            draw: self.shared.draw(),
            invocation: self.context.invocation(),
            epoch: self.context.epoch().0,
        })
    }

    /// Stores a record durably before its action is performed.
    async fn store(&self, record: &ReplicaRecord) -> Result<(), Error> {
        crash_point(crash::RECORD_BEFORE);
        let stored = shared::store(self.context, record).await;
        crash_point(crash::RECORD_AFTER);
        stored
    }

    /// Orders a start, after storing its ports and the current addresses of services.
    async fn start(&self, mut record: ReplicaRecord) -> Result<ReplicaRecord, Error> {
        let spec = self.context.spec();
        let id = id_of(&self.uid, &record)?;
        let ports = match self.take_ports(&record) {
            Ok(ports) => ports,
            Err(error) => {
                self.refuse(id, StartFailure::PortBusy, error.to_string());
                return Ok(record);
            }
        };
        let addresses = self.addresses_now();
        if ports != record.ports || addresses != record.addresses {
            (record.ports, record.addresses) = (ports, addresses);
            self.store(&record).await?;
        }
        let render = self.shared.render.as_ref();
        let started = spec
            .program
            .start(&self.shared.project, render, &record.ports, &record.addresses);
        let (program, environment) = match started {
            Ok(started) => started,
            Err(error) if &*error.code == "bad-folder" => {
                self.refuse(id, StartFailure::BadFolder, error.message.to_string());
                return Ok(record);
            }
            Err(error) => return Err(error),
        };
        let start = Start {
            id: id.clone(),
            program,
            environment,
            limits: limits(spec),
            output: Some(Output {
                path: self.shared.project.output(&id),
                max_size: spec.logs.max_size,
                keep: spec.logs.keep,
            }),
        };
        crash_point(crash::START_BEFORE);
        let started = self.backend.start(start).await;
        crash_point(crash::START_AFTER);
        match started {
            Ok(observation) => self.shared.observations.note(observation),
            Err(backend::Error::Occupied { living }) => {
                self.stop_other(living.counter()).await?;
                return Err(backend_error(&backend::Error::Occupied { living }));
            }
            Err(error) if error.is_transient() => {
                record = self.with_facts(|facts| unanswered(&record, &error.to_string(), facts));
                self.store(&record).await?;
            }
            Err(error) => return Err(backend_error(&error)),
        }
        Ok(record)
    }

    /// Assigns ports for a start: those of the previous start if its process served on them and they are free. Ports
    /// stay assigned until the next start, so that no other program gets them meanwhile.
    fn take_ports(&self, record: &ReplicaRecord) -> Result<Ports, NoPort> {
        let nothing = Ports::new();
        let kept = if record.keeps_ports {
            &record.ports
        } else {
            &nothing
        };
        let wanted = &self.context.spec().program.ports;
        self.shared.ports.take(wanted, &record.ports, kept)
    }

    fn addresses_now(&self) -> Addresses {
        let folder = &self.shared.project.output;
        Addresses::now(&self.context.controller(), folder, &self.context.spec().services)
    }

    /// Stops a start that the record does not know. Its end is not counted.
    async fn stop_other(&self, counter: u64) -> Result<(), Error> {
        let id = StartId::new(&self.uid, counter)
            .map_err(|error| Error::permanent("internal", error.to_string()))?;
        let stopped = self
            .backend
            .stop(stop_of(self.context.spec(), id, Then::Forget))
            .await;
        match stopped.map_err(|error| backend_error(&error))? {
            Some(observation) => self.shared.observations.note(observation),
            None => self.shared.observations.forget(&self.uid),
        }
        Ok(())
    }

    /// Records a start that was refused before reaching the backend.
    fn refuse(&self, id: StartId, failure: StartFailure, message: String) {
        self.shared.observations.note(Observation {
            id,
            epoch: self.backend.epoch(),
            backend_id: None,
            started: self.context.now(),
            stopping: false,
            phase: Phase::NotStarted { failure, message },
        });
    }

    async fn stop(&self, record: &ReplicaRecord) -> Result<(), Error> {
        let id = id_of(&self.uid, record)?;
        let stop = stop_of(self.context.spec(), id, Then::Keep);
        crash_point(crash::STOP_BEFORE);
        let stopped = self.backend.stop(stop).await;
        crash_point(crash::STOP_AFTER);
        match stopped {
            Ok(Some(observation)) => self.shared.observations.note(observation),
            // It is gone with its record.
            Ok(None) => self.shared.observations.forget(&self.uid),
            Err(error) => return Err(backend_error(&error)),
        }
        Ok(())
    }

    async fn forget(&self, record: &ReplicaRecord) -> Result<(), Error> {
        let observed = self.shared.observations.peek(&self.uid);
        let id = match observed {
            Some(observed) => observed.id,
            None => id_of(&self.uid, record)?,
        };
        crash_point(crash::FORGET_BEFORE);
        let forgotten = self.backend.forget(id, false).await;
        crash_point(crash::FORGET_AFTER);
        forgotten.map_err(|error| backend_error(&error))?;
        self.shared.observations.forget(&self.uid);
        Ok(())
    }

    /// Starts the checks of a living process, or stops them if there is none.
    fn watch(&self, record: &ReplicaRecord) {
        let spec = self.context.spec();
        let uid = self.context.uid();
        let lives = matches!(record.stage, Stage::Starting | Stage::Running) && record.backend_id.is_some();
        let start = id_of(&self.uid, record)
            .ok()
            .filter(|_| lives && !spec.checks.is_empty());
        let Some(start) = start else {
            return self.shared.probes.end(uid);
        };
        let render = self.shared.render.as_ref();
        let started = spec.program.start(
            &self.shared.project,
            render,
            &record.ports,
            &addresses_of(spec, record),
        );
        let (program, environment) = started.map_or_else(
            |_| (None, Vec::new()),
            |(program, environment)| (Some(program), environment),
        );
        let target = ProbeTarget {
            start,
            started: record.started,
            ports: record.ports.clone(),
            environment,
            cwd: match program {
                Some(backend::Program::Local { cwd, .. }) => cwd,
                _ => self.shared.project.root.clone(),
            },
        };
        let inside = spec.program.docker.is_some().then_some(&self.backend);
        self.shared.probes.watch(uid, &target, &spec.checks, inside);
        self.shared.probes.settle(uid, record.was_ready, false);
    }
}

/// Returns true if the newest transition is the alert of a check.
fn is_alert(next: &ReplicaRecord, before: &ReplicaRecord) -> bool {
    next.transitions.len() != before.transitions.len()
        && next.transitions.last().is_some_and(|last| last.reason == "check")
}

/// Returns the addresses of services with which the record's process was started.
fn addresses_of(spec: &ReplicaSpec, record: &ReplicaRecord) -> Addresses {
    match record.addresses == Addresses::default() {
        true => Addresses {
            variables: spec.addresses.clone(),
            ..Addresses::default()
        },
        false => record.addresses.clone(),
    }
}

fn id_of(uid: &str, record: &ReplicaRecord) -> Result<StartId, Error> {
    start_id(uid, record).map_err(|error| Error::permanent("internal", error.to_string()))
}

fn stop_of(spec: &ReplicaSpec, id: StartId, then: Then) -> Stop {
    Stop {
        id,
        signal: spec.stop.signal.clone(),
        grace_ms: spec.stop.grace_ms,
        then,
    }
}

fn limits(spec: &ReplicaSpec) -> backend::Limits {
    backend::Limits {
        memory: (spec.program.memory > 0).then_some(spec.program.memory),
        open_files: (spec.program.open_files > 0).then(|| spec.program.open_files.into()),
    }
}

/// Returns the error of a failed request to a backend.
pub(crate) fn backend_error(error: &backend::Error) -> Error {
    match error {
        backend::Error::Unsupported { .. } => Error::permanent("unsupported", error.to_string()),
        backend::Error::Confined => Error {
            hint: Some(watershed_api::hint::without_sandbox().into()),
            ..Error::permanent("outside-sandbox", error.to_string())
        },
        backend::Error::StaleEpoch { .. } | backend::Error::Refused { .. } => {
            Error::permanent("engine-refused", error.to_string())
        }
        _ => Error::transient("engine-unreachable", error.to_string()),
    }
}

//! Services: the kind that keeps a number of replicas of one release.
//!
//! A service starts and stops no process. It creates, edits and deletes replicas, which it owns, in one batch; each change
//! of a replica lets it look again.

mod addresses;
mod converge;
mod record;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use watershed_controller::kind::{Nudging, OnOwned, Parents};
use watershed_controller::{Context, Error, Key, KindOptions, Outcome, Reconciler, Resource};
use watershed_core::{Edit, Name, Row, SourcePosition, Uid};
use watershed_proto::ServiceSpec;

pub use self::addresses::Addresses;
pub(crate) use self::addresses::services;
use self::converge::{Decided, Facts, There, decide};
pub use self::record::{Candidate, Halt, RELEASES_MAX, Release, ServiceRecord};

use crate::backend;
use crate::message::Service;
use crate::policy::readiness::is_service_ready;
use crate::policy::rollout::{Availability, Replica};
use crate::program::Program;
use crate::refs;
use crate::replica::{self, ReplicaRecord, ReplicaSpec, Stage, failure_of};
use crate::settings::{self, CheckSpec};
use crate::shared::Shared;

/// The kind's name.
pub const KIND: &str = "service";

/// The kind's options.
pub(crate) fn options() -> KindOptions {
    KindOptions::new(KIND)
        .parents(Parents::Changed)
        .on_owned(OnOwned::Changed)
        .deadline(Duration::from_secs(300))
        .nudging(Nudging {
            interval: Duration::from_millis(100),
            longest_wait: Duration::from_secs(1),
        })
}

/// Keeps the replicas of a service.
pub struct ServiceReconciler {
    pub(crate) shared: Arc<Shared>,
}

/// A replica that the service owns.
struct Owned {
    uid: Uid,
    name: Name,
    spec: ReplicaSpec,
    record: ReplicaRecord,
    is_deleted: bool,
}

impl Reconciler for ServiceReconciler {
    type Spec = Service;
    type State = ServiceRecord;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if self.shared.passes_over(context.uid()) {
            return Ok(Outcome::passed_over());
        }
        let spec = &context.spec().0;
        if let Some(fault) = &spec.fault {
            return Err(refs::from_fault(fault));
        }
        // What runs goes on; only edits wait (W1).
        refs::check(context.refs())?;
        self.refuse_impossible(&context)?;
        let owned = owned(&context)?;
        let checks: Vec<CheckSpec> = spec.checks.iter().filter_map(settings::check).collect();
        let there: Vec<There> = owned.iter().filter(|one| !is_over(one)).map(there).collect();
        let mut scaled = spec.clone();
        scaled.replicas = wanted_replicas(spec);
        let refreshes = context.refreshes();
        let record = context.state().cloned().unwrap_or_default();
        let decided = decide(
            &record,
            &Facts {
                spec,
                program: Program::from_spec(&spec.program.clone().unwrap_or_default(), &spec.variables),
                checks: &checks,
                settings: settings::rollout(&scaled, &checks),
                there: &there,
                refreshes: refreshes.plain.saturating_add(refreshes.full),
                now: context.now(),
                invocation: context.invocation(),
                epoch: context.epoch().0,
            },
        );
        if context.is_cancelled() {
            // What it has seen may be long past by now; the next run sees what is there.
            return Ok(Outcome::unchanged());
        }
        let writer = Writer {
            context: &context,
            spec,
            checks,
            owned: &owned,
            services: services(context.refs()),
        };
        let mut record_now = decided.record.clone();
        let edits = writer.edits(&mut record_now, &decided)?;
        let is_changed = record_now != record;
        if is_changed {
            // Numbers of replicas are stored before replicas have them, so that none is given twice.
            let stored = async {
                context.set_state(&record_now).await?;
                context.committed().await
            };
            stored
                .await
                .map_err(|error| Error::transient("state", error.to_string()))?;
        }
        self.keep_addresses(&context, &record_now);
        let is_edited = !edits.is_empty();
        if is_edited {
            let edited = context.controller().edit(edits).await;
            edited.map_err(|error| Error::transient("edit", error.to_string()))?;
        }
        tell(&context, &record_now, &owned, &decided, is_changed || is_edited)
    }

    /// Its replicas are deleted with it; only the files of its addresses are its own.
    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        addresses::remove_files(&self.shared.project.output, context.uid());
        Ok(Outcome::unchanged())
    }
}

impl ServiceReconciler {
    /// Tells those who refer to it where its ready replicas are now.
    fn keep_addresses(&self, context: &Context<Self>, record: &ServiceRecord) {
        let program = context.spec().0.program.as_ref();
        let ports = program.iter().flat_map(|program| &program.ports);
        let ports = ports.map(|port| port.name.as_str());
        let folder = &self.shared.project.output;
        if let Err(error) = addresses::keep_files(folder, context.uid(), ports, record) {
            // The next pass tries it again; until then the files say what was.
            tracing::warn!(service = %context.name(), %error, "its addresses can't be written");
        }
    }

    /// Fails for good where its programs can never be started: each replica would fail by itself, and whoever waits for the
    /// service would wait in vain.
    fn refuse_impossible(&self, context: &Context<Self>) -> Result<(), Error> {
        let spec = &context.spec().0;
        if wanted_replicas(spec) == 0 {
            return Ok(());
        }
        let program = Program::from_spec(&spec.program.clone().unwrap_or_default(), &spec.variables);
        match self.shared.backends.for_program(&program, context.epoch().0) {
            Err(error @ (backend::Error::Confined | backend::Error::Unsupported { .. })) => {
                Err(replica::backend_error(&error))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// The number of replicas: that of the file, unless a person has scaled the service since.
fn wanted_replicas(spec: &ServiceSpec) -> u32 {
    let operator = spec.operator.as_ref();
    let scaled = operator.filter(|operator| operator.file_replicas == spec.replicas);
    scaled
        .and_then(|operator| operator.replicas)
        .unwrap_or(spec.replicas)
}

fn owned(context: &Context<ServiceReconciler>) -> Result<Vec<Owned>, Error> {
    let unread =
        |error: watershed_controller::message::DecodeError| Error::permanent("unreadable", error.to_string());
    let of = |row: &Arc<Row>| {
        Ok(Owned {
            uid: row.uid,
            name: row.name.clone(),
            spec: Resource::spec_of::<ReplicaSpec>(row).map_err(unread)?,
            record: Resource::state_of::<ReplicaRecord>(row)
                .map_err(unread)?
                .unwrap_or_default(),
            is_deleted: row.intents.is_deleted(),
        })
    };
    let replicas = context.owned().iter().map(|view| &view.resource);
    replicas
        .filter(|row| row.kind.as_str() == replica::KIND)
        .map(of)
        .collect()
}

/// True if nothing is left of a replica but its row.
fn is_over(one: &Owned) -> bool {
    one.is_deleted || (!one.spec.is_wanted && one.record.stage == Stage::Gone)
}

fn there(one: &Owned) -> There {
    let availability = match one.record.stage {
        _ if !one.spec.is_wanted => Availability::Stopping,
        _ if one.record.is_ready() => Availability::Ready,
        _ => Availability::Unready,
    };
    There {
        replica: Replica {
            number: one.spec.number,
            release: one.spec.release,
            availability,
        },
        at: one
            .record
            .transitions
            .last()
            .map(|last| last.at)
            .unwrap_or_default(),
        ports: one.record.ports.clone(),
        reason: match one.record.stage {
            Stage::Failed => one.record.reason.clone(),
            _ => String::new(),
        },
    }
}

/// Turns a decision into edits of replicas.
struct Writer<'a> {
    context: &'a Context<ServiceReconciler>,
    spec: &'a ServiceSpec,
    checks: Vec<CheckSpec>,
    owned: &'a [Owned],
    services: Vec<String>,
}

impl Writer<'_> {
    /// Returns the edits, and counts the numbers that new replicas take.
    fn edits(&self, record: &mut ServiceRecord, decided: &Decided) -> Result<Vec<Edit>, Error> {
        let mut edits = Vec::new();
        let mut restarts = self.restarts(record);
        for one in self.owned.iter().filter(|one| !one.is_deleted) {
            if is_over(one) {
                edits.push(Edit::delete(one.uid));
                continue;
            }
            let is_wanted = one.spec.is_wanted && !decided.plan.stop.contains(&one.spec.number);
            let restarts = restarts.remove(&one.spec.number).unwrap_or(one.spec.restarts);
            let wanted = self.replica(record, one.spec.number, one.spec.release, is_wanted, restarts)?;
            if wanted != one.spec {
                let update = Resource::new_spec(&wanted).map_err(unwritten)?;
                edits.push(Edit::update(one.uid, update));
            }
            let name = self.name_of(one.spec.number);
            if name != one.name && is_wanted {
                edits.push(Edit::rename(one.uid, name));
            }
        }
        for _ in 0..decided.plan.start {
            let number = record.next_replica;
            record.next_replica += 1;
            let restarts = self
                .spec
                .operator
                .as_ref()
                .map_or(0, |operator| operator.restarts);
            let wanted = self.replica(record, number, record.target(), true, restarts)?;
            let name = self.name_of(number);
            let mut new = Resource::declare(replica::KIND, name.as_str(), &wanted).map_err(unwritten)?;
            new.owner = Some(self.context.uid());
            new.hidden = true;
            edits.push(Edit::create(new));
        }
        Ok(edits)
    }

    fn name_of(&self, number: u64) -> Name {
        Name::new(format!("{}.{number}", self.context.name()))
    }

    /// Returns the replicas that are restarted now: all at once, or as many as may be missing.
    fn restarts(&self, record: &ServiceRecord) -> BTreeMap<u64, u64> {
        let Some(operator) = self.spec.operator.as_ref() else {
            return BTreeMap::new();
        };
        let wanted = operator.restarts;
        let (done, open): (Vec<&Owned>, Vec<&Owned>) = self
            .owned
            .iter()
            .filter(|one| one.spec.is_wanted && !one.is_deleted)
            .partition(|one| one.spec.restarts == wanted);
        let is_settled = done
            .iter()
            .all(|one| one.record.is_ready() || one.record.stage == Stage::Failed);
        let unavailable = self
            .spec
            .rollout
            .as_ref()
            .map_or(0, |rollout| rollout.unavailable);
        let at_once = match (operator.is_now, is_settled) {
            (true, _) => open.len(),
            (false, true) => usize::try_from(unavailable.max(1)).unwrap_or(usize::MAX),
            (false, false) => 0,
        };
        let _ = record;
        open.iter()
            .take(at_once)
            .map(|one| (one.spec.number, wanted))
            .collect()
    }

    fn replica(
        &self,
        record: &ServiceRecord,
        number: u64,
        release: u64,
        is_wanted: bool,
        restarts: u64,
    ) -> Result<ReplicaSpec, Error> {
        let before = self.owned.iter().find(|one| one.spec.number == number);
        let program = match (record.release(release), before) {
            (Some(release), _) => release.program.clone(),
            // Its release is so old that it was dropped.
            (None, Some(before)) => before.spec.program.clone(),
            (None, None) => return Err(Error::permanent("internal", "a release is missing")),
        };
        Ok(ReplicaSpec {
            service: self.context.name().to_string(),
            path: self.context.row().paths.first().map(ToString::to_string),
            number,
            release,
            program,
            services: self.services.clone(),
            addresses: BTreeMap::new(),
            is_wanted,
            restarts,
            stop: self.spec.stop.as_ref().into(),
            logs: self.spec.logs.as_ref().into(),
            restart: settings::restart(self.spec.restart.as_ref()),
            checks: self.checks.clone(),
            on_server_stop: self.spec.on_server_stop.clone(),
        })
    }
}

fn unwritten(error: watershed_controller::message::EncodeError) -> Error {
    Error::permanent("internal", error.to_string())
}

/// Returns the outcome of a pass.
fn tell(
    context: &Context<ServiceReconciler>,
    record: &ServiceRecord,
    owned: &[Owned],
    decided: &Decided,
    is_changed: bool,
) -> Result<Outcome, Error> {
    let placed = |mut error: Error| {
        error.place = error.place.or_else(|| {
            let path = context.row().paths.first()?;
            Some(SourcePosition {
                path: Arc::clone(path),
                line: 1,
                column: 1,
            })
        });
        error.retrigger = decided.wake;
        error
    };
    let name = context.name();
    if let Some(halt) = &record.halted {
        let mut error = Error::permanent(
            halt.code.as_str(),
            format!("service/{name} has failed: {}", halt.message),
        );
        error.hint = Some(format!("see `watershed logs {name}`, then `watershed retry {name}`").into());
        return Err(placed(error));
    }
    let unavailable = context
        .spec()
        .0
        .rollout
        .as_ref()
        .map_or(0, |rollout| rollout.unavailable);
    let is_ready = is_service_ready(record.replicas, unavailable, record.ready);
    let failed = record
        .release(record.wanted)
        .filter(|release| release.number != record.active)
        .and_then(|release| release.failed.as_ref());
    if let Some(message) = failed {
        let mut error = Error::permanent(
            "rollout-failed",
            format!("service/{name} keeps its old release: {message}"),
        );
        error.hint = Some(
            format!("see `watershed logs {name}`; an edit or `watershed retry {name}` tries again").into(),
        );
        return Err(placed(error));
    }
    if !is_ready && let Some(error) = broken(record, owned) {
        return Err(placed(error));
    }
    let outcome = if is_changed {
        Outcome::changed()
    } else {
        Outcome::unchanged()
    };
    let outcome = Outcome {
        retrigger: decided.wake,
        ..outcome
    };
    if is_ready {
        return Ok(outcome);
    }
    let why = match record.replicas {
        0 => "it is scaled to 0".to_owned(),
        replicas => format!("{} of {replicas} replicas are ready", record.ready),
    };
    Ok(outcome.unready(why))
}

/// The failure of a replica of the active release, if no other one is going to make the service ready.
fn broken(record: &ServiceRecord, owned: &[Owned]) -> Option<Error> {
    let active = owned
        .iter()
        .filter(|one| one.spec.is_wanted && !one.is_deleted && one.spec.release == record.active);
    let failed: Vec<&Owned> = active.filter(|one| one.record.stage == Stage::Failed).collect();
    failed.first().and_then(|one| failure_of(&one.spec, &one.record))
}

/// The key of a service, by its name.
pub fn key(name: &str) -> Key {
    Key::new(KIND, name)
}

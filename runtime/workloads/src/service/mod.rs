//! Services: the kind that keeps a number of replicas of one release.
//!
//! A service starts and stops no process. It creates, edits and deletes replicas, which it owns, in one batch; each change
//! of a replica lets it look again.

mod addresses;
mod converge;
mod record;
mod restarting;
mod trouble;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use watershed_controller::kind::{Nudging, OnOwned, Parents};
use watershed_controller::{Context, Error, Key, KindOptions, Outcome, Reconciler, Resource};
use watershed_core::{Edit, Name, Row, SourcePosition, Uid, Work};
use watershed_proto::ServiceSpec;

pub(crate) use self::addresses::services;
use self::converge::{Decided, Facts, There, decide};
pub use self::record::{Candidate, Halt, RELEASES_MAX, Release, Restarting, ServiceRecord};
pub use self::trouble::{Trouble, trouble};

pub use crate::addresses::Addresses;
use crate::backend::{self, StartId};
use crate::message::Service;
use crate::policy::readiness::is_service_ready;
use crate::policy::restart::Restart;
use crate::policy::rollout::{Availability, Replica};
use crate::program::Program;
use crate::refs;
use crate::replica::{self, ReplicaRecord, ReplicaSpec, Stage, failure_of, wait};
use crate::settings::{self, Manners};
use crate::shared::Shared;

/// Kind under which the catalog stores services.
pub const KIND: &str = "service";

/// The most replicas of a service, as a machine can bear.
pub const REPLICAS_MAX: u32 = 1_000;

/// Returns the options of the kind.
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

/// Reconciler of services, which keeps the wanted number of replicas.
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
        let there: Vec<There> = owned.iter().filter(|one| !is_over(one)).map(there).collect();
        let manners = settings::manners(spec);
        let refreshes = context.refreshes();
        let record = context.state().cloned().unwrap_or_default();
        let decided = decide(
            &record,
            &Facts {
                spec,
                program: Program::from_spec(&spec.program.clone().unwrap_or_default(), &spec.variables),
                manners: manners.clone(),
                settings: settings::rollout(spec, wanted_replicas(spec)),
                there: &there,
                refreshes: refreshes.plain.saturating_add(refreshes.full),
                now: context.now(),
                looked: self.shared.looks.note(context.uid(), context.now()),
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
            manners,
            owned: &owned,
            services: services(context.refs()),
        };
        let mut record_now = decided.record.clone();
        let edits = writer.edits(&mut record_now, &decided)?;
        if record_now != record {
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
        self.keep_output(&context, [&record, &record_now], &owned);
        if !edits.is_empty() {
            let edited = context.controller().edit(edits).await;
            edited.map_err(|error| Error::transient("edit", error.to_string()))?;
        }
        tell(&context, [&record, &record_now], &owned, &decided)
    }

    /// Removes the service's address files. Its replicas are deleted by ownership.
    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        self.shared.looks.forget(context.uid());
        self.shared.project.remove_output(&context.uid().to_string());
        addresses::remove_files(&self.shared.project.output, context.uid());
        Ok(Outcome::unchanged())
    }
}

impl ServiceReconciler {
    /// Updates the address files of the service, so that referring programs find its ready replicas.
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

    /// Keeps the output of a release that is being taken back, before its replicas are removed with theirs: that of the
    /// worst-off one.
    fn keep_output(&self, context: &Context<Self>, [before, now]: [&ServiceRecord; 2], owned: &[Owned]) {
        let Some(number) = now.taken_back().filter(|_| before.taken_back().is_none()) else {
            return;
        };
        let of_release = owned
            .iter()
            .filter(|one| one.spec.release == number && one.record.counter > 0);
        let rank =
            |one: &&Owned| trouble::of_replica(&one.spec, &one.record).map_or(u8::MAX, |(rank, _)| rank);
        let Some(worst) = of_release.min_by_key(rank) else {
            return;
        };
        if let Ok(start) = StartId::new(&worst.uid.to_string(), worst.record.counter) {
            let kept = context.uid().to_string();
            self.shared.project.keep_output(&start, &kept, number);
        }
    }

    /// Fails permanently if no replica could ever be started, rather than letting each replica fail and dependents wait
    /// in vain.
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

/// Returns the release to which a person rolled a service back, as long as its file has the program that it had then.
pub fn rolled_back(spec: &ServiceSpec, digest: &str) -> Option<u64> {
    let operator = spec.operator.as_ref()?;
    (operator.release > 0 && operator.file_release == digest).then_some(operator.release)
}

/// Returns the number of wanted replicas: from the file, unless a person scaled the service since. Capped, since a
/// catalog of an earlier version may exceed the limit.
fn wanted_replicas(spec: &ServiceSpec) -> u32 {
    let operator = spec.operator.as_ref();
    let scaled = operator.filter(|operator| operator.file_replicas == spec.replicas);
    scaled
        .and_then(|operator| operator.replicas)
        .unwrap_or(spec.replicas)
        .min(REPLICAS_MAX)
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

/// Returns true if nothing but the row is left of a replica.
fn is_over(one: &Owned) -> bool {
    one.is_deleted || (!one.spec.is_wanted && one.record.stage == Stage::Gone)
}

fn there(one: &Owned) -> There {
    let availability = match one.record.stage {
        _ if !one.spec.is_wanted => Availability::Stopping,
        // It is about to be stopped.
        _ if one.record.restarts != one.spec.restarts && !one.record.is_new() => Availability::Unready,
        _ if one.record.is_ready() => Availability::Ready,
        Stage::Completed if one.record.has_answered(&one.spec) => Availability::Completed,
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
            Stage::Failed if one.record.has_answered(&one.spec) => one.record.reason.clone(),
            _ => String::new(),
        },
        restarts: one.spec.restarts,
        is_new: one.record.counter == 0,
        is_starting: match one.record.stage {
            Stage::Starting => true,
            Stage::Pending => one.record.failed_start.is_none(),
            _ => false,
        },
        trouble: trouble::of_replica(&one.spec, &one.record),
    }
}

/// Conversion of a decision to edits of replicas.
struct Writer<'a> {
    context: &'a Context<ServiceReconciler>,
    spec: &'a ServiceSpec,
    /// Settings in the file that apply without a new release.
    manners: Manners,
    owned: &'a [Owned],
    services: Vec<String>,
}

impl Writer<'_> {
    /// Returns the edits, and advances the record's counter by the number of new replicas.
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

    /// Returns the replicas to restart in place now, with their new restart counters: all at once for an immediate
    /// restart; the ones that don't serve, while new replicas replace the others; or a few at a time, if a fixed port
    /// permits no second replica.
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
        let is_settled = done.iter().all(|one| {
            let has_ended = matches!(one.record.stage, Stage::Failed | Stage::Completed);
            one.record.has_answered(&one.spec) && (one.record.is_ready() || has_ended)
        });
        let unavailable = self
            .spec
            .rollout
            .as_ref()
            .map_or(0, |rollout| rollout.unavailable);
        let serves = |one: &&&Owned| one.record.is_ready();
        let is_fixed = record
            .release(record.active)
            .is_some_and(|release| release.program.has_fixed_port());
        let in_place: Vec<&&Owned> = match (operator.is_now, is_fixed) {
            (true, _) => open.iter().collect(),
            (false, false) if record.restarting.is_some() => open.iter().filter(|one| !serves(one)).collect(),
            (false, true) if is_settled => {
                let at_once = usize::try_from(unavailable.max(1)).unwrap_or(usize::MAX);
                open.iter().take(at_once).collect()
            }
            (false, _) => Vec::new(),
        };
        in_place.iter().map(|one| (one.spec.number, wanted)).collect()
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
        let manners = match (record.release(release), before) {
            // Its release was dropped, with what was said of it.
            (None, Some(before)) => Manners {
                checks: before.spec.checks.clone(),
                stop: before.spec.stop.clone(),
                codes: before.spec.restart.codes.clone(),
            },
            _ => record.manners_of(release, &self.manners).clone(),
        };
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
            retries: record.retries,
            stop: manners.stop,
            logs: self.spec.logs.as_ref().into(),
            restart: Restart {
                codes: manners.codes,
                ..settings::restart(self.spec.restart.as_ref())
            },
            checks: manners.checks,
            on_server_stop: self.spec.on_server_stop.clone(),
        })
    }
}

fn unwritten(error: watershed_controller::message::EncodeError) -> Error {
    Error::permanent("internal", error.to_string())
}

/// Returns the outcome of the invocation.
fn tell(
    context: &Context<ServiceReconciler>,
    [before, record]: [&ServiceRecord; 2],
    owned: &[Owned],
    decided: &Decided,
) -> Result<Outcome, Error> {
    let requeue_after = decided.wake.map(|wake| wait(context.now(), wake));
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
        error.requeue_after = requeue_after;
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
    if let Some(message) = record
        .taken_back()
        .and_then(|number| record.release(number)?.failed.as_ref())
    {
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
    let outcome = Outcome {
        retrigger: decided.wake,
        requeue_after,
        ..Outcome::from_work(work(before, record))
    };
    if is_ready {
        return Ok(outcome);
    }
    Ok(outcome.unready(why(record, owned)))
}

/// Returns the work of a pass: `Built` if the service has come up anew, with another release or number of replicas, or
/// after a restart. Transitions record steps and crashes in between.
fn work(before: &ServiceRecord, now: &ServiceRecord) -> Work {
    match before.come_up == now.come_up {
        true => Work::None,
        false => Work::Built,
    }
}

/// Describes why a service is not ready.
fn why(record: &ServiceRecord, owned: &[Owned]) -> String {
    let wanted = record.replicas;
    match (wanted, record.completed) {
        (0, _) => return "it is scaled to 0".to_owned(),
        (_, completed) if record.is_over && completed == wanted => return "it has completed".to_owned(),
        (_, completed) if record.is_over => {
            return format!("{completed} of {wanted} replicas have completed");
        }
        _ => {}
    }
    let ready = format!("{} of {wanted} replicas are ready", record.ready);
    let there = owned.iter().filter(|one| !one.is_deleted);
    match trouble(record, there.map(|one| (&one.spec, &one.record))) {
        Some(trouble) => format!("{ready}: {}", trouble.message),
        None => ready,
    }
}

/// Returns the error of a failed replica of the active release that nothing is about to restart; none if there is no
/// such replica.
fn broken(record: &ServiceRecord, owned: &[Owned]) -> Option<Error> {
    let active = owned
        .iter()
        .filter(|one| one.spec.is_wanted && !one.is_deleted && one.spec.release == record.active);
    // One that has not answered a person's request yet, or is to be restarted, is about to be started again.
    let is_restarted =
        |one: &Owned| record.restarted < record.restarts && one.spec.restarts < record.restarts;
    let has_answered = |one: &&Owned| {
        one.record.has_answered(&one.spec) && one.spec.retries == record.retries && !is_restarted(one)
    };
    let mut failed = active
        .filter(|one| one.record.stage == Stage::Failed)
        .filter(has_answered);
    failed.next().and_then(|one| failure_of(&one.spec, &one.record))
}

/// Returns the time limit for a service to become ready: its deadline plus the longest start period of its checks.
pub fn time_to_be_ready(spec: &ServiceSpec) -> Duration {
    let start_period = settings::start_period(&settings::manners(spec).checks);
    start_period.saturating_add(settings::rollout(spec, wanted_replicas(spec)).deadline)
}

/// Returns the key of a service by its name.
pub fn key(name: &str) -> Key {
    Key::new(KIND, name)
}

//! Changes of services by hand: they are stored with what is wanted, so the controller carries them out (rule W16).

use std::time::{Duration, Instant};

use watershed_api::documents::{Operated, Operation, Phase};
use watershed_api::request::ServiceChange;
use watershed_api::{Answer, Code, Problem};
use watershed_controller::resource::Row;
use watershed_controller::store::SqliteStore;
use watershed_controller::{Controller, Handle, Resource};
use watershed_core::ErrorKind;
use watershed_proto::Operator;
use watershed_workloads::service::{self, REPLICAS_MAX, ServiceRecord};
use watershed_workloads::{Program, Service};

use super::operate::{document, listed};
use super::{INSTANCE, Instance, OpenError};
use crate::report::document::Project;
use crate::report::explain::Life;
use crate::report::{Entry, names};
use crate::state_folder::StateFolder;

/// The time in which the store has to take changes made by hand.
const GRACE: Duration = Duration::from_secs(10);
/// The time that a copy has to stop, beside that in which another one is to be ready.
const STOP: Duration = Duration::from_secs(30);

impl Instance {
    /// Scales, restarts or rolls back services.
    pub(super) async fn operate_services(
        &self,
        change: ServiceChange,
        typed: &[String],
    ) -> Result<Answer, Problem> {
        operate(self.controller(), &self.project, change, typed, Life::Live).await
    }
}

/// Scales or rolls back services of a folder that this process holds: it takes effect when the project runs.
///
/// # Errors
/// When the catalog can't be opened.
pub(crate) async fn operate_services_alone(
    project: &Project,
    state: &StateFolder,
    change: ServiceChange,
    typed: &[String],
) -> Result<Result<Answer, Problem>, OpenError> {
    if matches!(change, ServiceChange::Restart { .. }) {
        let refusal = Problem::new(
            Code::Unattended,
            "no process runs the project, so nothing can be restarted",
        );
        return Ok(Err(refusal.hint("`watershed start` starts its services")));
    }
    let store = SqliteStore::open(state.catalog()).await?;
    let controller = Controller::builder().instance(INSTANCE).store(store);
    let controller = controller.start().await?;
    let answer = operate(controller.as_ref(), project, change, typed, Life::AtRest).await;
    Ok(match controller.shutdown(GRACE).await {
        Ok(()) => answer,
        Err(error) => answer.and(Err(Problem::new(Code::Unavailable, error.to_string()))),
    })
}

async fn operate(
    handle: &Handle,
    project: &Project,
    change: ServiceChange,
    typed: &[String],
    life: Life,
) -> Result<Answer, Problem> {
    let entries = listed(handle);
    let mut found = Vec::new();
    for name in typed {
        let entry = names::resolve(&entries, name)?;
        if entry.row.kind.as_str() != service::KIND {
            let message = format!("`{}/{}` is no service", entry.row.kind, entry.row.name);
            return Err(Problem::new(Code::WrongState, message));
        }
        found.push(changed(entry, change, life)?);
    }
    let mut resources = Vec::new();
    for (entry, service, detail) in found {
        let began = Instant::now();
        let updated = handle.update_spec(entry.row.uid, &service).await;
        updated.map_err(|error| Problem::new(Code::Unavailable, error.to_string()))?;
        let detail = match (change, life) {
            (ServiceChange::Restart { .. }, Life::Live) => until_restarted(handle, entry, &service, began)
                .await
                .map(|after| format!("{detail}, {after}"))?,
            _ => detail,
        };
        resources.push(Operated {
            kind: entry.row.kind.to_string(),
            name: entry.row.name.to_string(),
            changed: true,
            paused: entry.row.paused,
            phase: match change {
                ServiceChange::Scale(_) | ServiceChange::Rollback { .. } if life == Life::Live => {
                    Phase::Pending
                }
                _ => Phase::Idle,
            },
            detail,
        });
    }
    let operation = match change {
        ServiceChange::Scale(_) => Operation::Scale,
        ServiceChange::Restart { .. } => Operation::Restart,
        ServiceChange::Rollback { .. } => Operation::Rollback,
    };
    Ok(document(project, operation, resources, life))
}

/// Waits until the copies of a service that is restarted are there and ready: `ready after 4.1 s`.
///
/// # Errors
/// When they do not come up: what was ready before stays, unless all were restarted at once.
async fn until_restarted(
    handle: &Handle,
    entry: &Entry,
    service: &Service,
    began: Instant,
) -> Result<String, Problem> {
    let asked = service
        .0
        .operator
        .as_ref()
        .map_or(0, |operator| operator.restarts);
    // Each copy may take its whole time, and stop in its grace period.
    let each = service::time_to_be_ready(&service.0).saturating_add(STOP);
    let longest = each.saturating_mul(entry_replicas(entry).saturating_add(1));
    let ended = |found: Option<&Resource>| found.is_none_or(|found| restarted(&found.row, asked).is_some());
    // Whether it has ended is read below.
    let _ = handle.wait_until(entry.row.key(), ended, longest).await;
    let name = &entry.row.name;
    let found = handle.get(entry.row.uid).ok();
    let refuse = |why: String| {
        let message = format!("service/{name} was not ready after its restart: {why}");
        let hint = format!("see `watershed status {name}` and `watershed logs {name}`");
        Err(Problem::new(Code::ProjectError, message).hint(hint))
    };
    match found.and_then(|found| restarted(&found.row, asked)) {
        Some(Ok(())) => {
            let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            Ok(format!("ready after {}.{} s", ms / 1_000, ms % 1_000 / 100))
        }
        Some(Err(why)) => refuse(why),
        None => refuse("it takes longer than it may".to_owned()),
    }
}

/// Returns what has come of a restart, once something has.
fn restarted(row: &Row, asked: u64) -> Option<Result<(), String>> {
    let record = Resource::state_of::<ServiceRecord>(row).ok().flatten()?;
    // Another one that came meanwhile stands for it.
    if record.restarted >= asked {
        return Some(record.restart_failed.map_or(Ok(()), Err));
    }
    // An error of before is gone with the run that takes up the restart.
    let has_seen = row.last_run.as_ref().and_then(|run| run.seen.as_ref());
    let has_seen = has_seen.is_some_and(|seen| seen.spec_version == row.spec_version);
    let error = row
        .error
        .as_ref()
        .filter(|error| error.kind != ErrorKind::Transient);
    let error = error.filter(|_| has_seen && record.restarts >= asked)?;
    Some(Err(error.message.to_string()))
}

fn entry_replicas(entry: &Entry) -> u32 {
    let record = Resource::state_of::<ServiceRecord>(&entry.row).ok().flatten();
    record.map_or(1, |record| record.replicas)
}

/// Returns the service as it is wanted then, with the change in words.
fn changed(entry: &Entry, change: ServiceChange, life: Life) -> Result<(&Entry, Service, String), Problem> {
    let row = &entry.row;
    let unread = |error: watershed_controller::message::DecodeError| {
        Problem::new(Code::StateUnreadable, error.to_string())
    };
    let mut service = Resource::spec_of::<Service>(row).map_err(unread)?;
    let record = Resource::state_of::<ServiceRecord>(row)
        .map_err(unread)?
        .unwrap_or_default();
    let spec = &mut service.0;
    let mut operator = spec.operator.clone().unwrap_or_default();
    let name = &row.name;
    let later = match life {
        Life::Live => "",
        Life::AtRest => "; it takes effect when the project runs",
    };
    let detail = match change {
        ServiceChange::Scale(Some(wanted)) if wanted > REPLICAS_MAX => {
            let message = format!("a service has at most {REPLICAS_MAX} replicas, not {wanted}");
            return Err(Problem::new(Code::BadArgument, message));
        }
        ServiceChange::Scale(wanted) => {
            let before = operator
                .replicas
                .filter(|_| operator.file_replicas == spec.replicas);
            operator.replicas = wanted;
            operator.file_replicas = spec.replicas;
            let (before, file) = (before.unwrap_or(spec.replicas), spec.replicas);
            match wanted {
                Some(wanted) => {
                    format!(
                        "{before} -> {wanted} (file: {file}; undo with `watershed scale {name} file`){later}"
                    )
                }
                None => format!("{before} -> {file}, as its file says{later}"),
            }
        }
        ServiceChange::Restart { now } => {
            operator.restarts += 1;
            operator.is_now = now;
            let replicas = record.replicas;
            crate::render::units::count(u64::from(replicas), "replica")
        }
        ServiceChange::Rollback { to } => {
            let release = release_to(&record, to, name.as_str())?;
            let program = spec.program.clone().unwrap_or_default();
            operator.file_release = Program::from_spec(&program, &spec.variables).digest();
            operator.release = release;
            format!("{} -> {release} (until its file changes){later}", record.target())
        }
    };
    let is_plain = operator == Operator::default();
    spec.operator = (!is_plain).then_some(operator);
    Ok((entry, service, detail))
}

/// Finds the release that is meant: the given one, or the newest before the active one that ever came up.
fn release_to(record: &ServiceRecord, to: Option<u64>, name: &str) -> Result<u64, Problem> {
    let earlier = || {
        let releases = record.releases.iter();
        releases.filter(|release| release.number < record.target())
    };
    let found = match to {
        Some(number) => record.release(number).map(|release| release.number),
        None => earlier()
            .filter(|release| release.may_serve_again())
            .map(|release| release.number)
            .max(),
    };
    found.ok_or_else(|| {
        let known: Vec<String> = record
            .releases
            .iter()
            .map(|release| release.number.to_string())
            .collect();
        let message = match to {
            Some(number) => format!("service/{name} has no release {number}"),
            None if earlier().next().is_some() => {
                format!("no earlier release of service/{name} ever came up")
            }
            None => format!("service/{name} has no earlier release"),
        };
        Problem::new(Code::UnknownName, message).hint(format!("it keeps: {}", known.join(", ")))
    })
}

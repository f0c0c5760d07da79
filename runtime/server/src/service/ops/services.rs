//! Changes of services by hand, stored with the desired spec, so that the controller carries them out (rule W16).

use std::time::{Duration, Instant};

use watershed_api::documents::{OperateDocument, Operated, Operation, Phase};
use watershed_api::request::{RestartRequest, RollbackRequest, ScaleRequest};
use watershed_api::{Code, Problem, hint};
use watershed_controller::resource::Row;
use watershed_controller::{Handle, Resource};
use watershed_core::ErrorKind;
use watershed_proto::Operator;
use watershed_workloads::service::{self, REPLICAS_MAX, ServiceRecord};
use watershed_workloads::{Program, Service};

use super::operate::{document, listed};
use crate::out::Out;
use crate::report::explain::Life;
use crate::report::{Entry, names};
use crate::service::Principal;
use crate::service::place::Place;

/// The time that a replica has to stop, in addition to the time in which its successor must become ready.
const STOP: Duration = Duration::from_secs(30);

/// A change to services by an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Changes the number of replicas; none restores the number in the file.
    Scale(Option<u32>),
    /// Restarts the replicas.
    Restart {
        /// True to restart all replicas at once, false for one after the other.
        now: bool,
    },
    /// Returns to an earlier release.
    Rollback {
        /// The number of the release; none for the one before the active one.
        to: Option<u64>,
    },
}

/// Changes the number of replicas of services.
pub(crate) async fn scale(
    place: &impl Place,
    _: &Principal,
    input: ScaleRequest,
    _: &Out,
) -> Result<OperateDocument, Problem> {
    change(
        place,
        Operation::Scale,
        Change::Scale(input.replicas),
        &input.names,
    )
    .await
}

/// Restarts services.
pub(crate) async fn restart(
    place: &impl Place,
    _: &Principal,
    input: RestartRequest,
    _: &Out,
) -> Result<OperateDocument, Problem> {
    let wish = Change::Restart { now: input.now };
    change(place, Operation::Restart, wish, &input.names).await
}

/// Rolls services back to an earlier release.
pub(crate) async fn rollback(
    place: &impl Place,
    _: &Principal,
    input: RollbackRequest,
    _: &Out,
) -> Result<OperateDocument, Problem> {
    let wish = Change::Rollback { to: input.to };
    change(place, Operation::Rollback, wish, &input.names).await
}

async fn change(
    place: &impl Place,
    operation: Operation,
    wish: Change,
    typed: &[String],
) -> Result<OperateDocument, Problem> {
    let life = place.life();
    let start = hint::operation("start", []);
    let runs = |problem: Problem| match problem.code {
        Code::Unattended => problem.hint(format!("{start} runs the project's services")),
        _ => problem,
    };
    let hands = place.hands().await.map_err(runs)?;
    let changed = match (wish, life) {
        (Change::Restart { .. }, Life::AtRest) => {
            let message = "no process runs the project, so nothing can be restarted";
            let start = format!("{start} starts its services");
            Err(Problem::new(Code::Unattended, message).hint(start))
        }
        _ => operate(&hands.handle, wish, typed, life).await,
    };
    let resources = hands.end(changed).await?;
    Ok(document(place.project(), operation, resources, life))
}

async fn operate(
    handle: &Handle,
    change: Change,
    typed: &[String],
    life: Life,
) -> Result<Vec<Operated>, Problem> {
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
            (Change::Restart { .. }, Life::Live) => until_restarted(handle, entry, &service, began)
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
                Change::Scale(_) | Change::Rollback { .. } if life == Life::Live => Phase::Pending,
                _ => Phase::Idle,
            },
            detail,
        });
    }
    Ok(resources)
}

/// Waits until the replicas of a restarted service are ready, and returns a text such as `ready after 4.1 s`.
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

/// Returns the result of a restart; none until it is known.
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

/// Returns the service with the change applied, and a description of the change.
fn changed(entry: &Entry, change: Change, life: Life) -> Result<(&Entry, Service, String), Problem> {
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
        Change::Scale(Some(wanted)) if wanted > REPLICAS_MAX => {
            let message = format!("a service has at most {REPLICAS_MAX} replicas, not {wanted}");
            return Err(Problem::new(Code::BadArgument, message));
        }
        Change::Scale(wanted) => {
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
        Change::Restart { now } => {
            operator.restarts += 1;
            operator.is_now = now;
            let replicas = record.replicas;
            match replicas {
                1 => "1 replica".to_owned(),
                replicas => format!("{replicas} replicas"),
            }
        }
        Change::Rollback { to } => {
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

/// Finds the release to return to: the given one, or the newest one before the active release that ever became ready.
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

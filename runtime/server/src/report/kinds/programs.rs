//! Jobs, services and their replicas in documents.

use serde_json::{Value, json};
use watershed_api::documents::{HistoryTransition, ResourceName, RunDocument, Time};
use watershed_controller::Resource;
use watershed_controller::message::Message;
use watershed_core::{Attempts, Row, Timestamp};
use watershed_workloads::job::{self, JobRecord};
use watershed_workloads::replica::{self, LastExit, ReplicaRecord, ReplicaSpec, Stage};
use watershed_workloads::service::{self, ServiceRecord};
use watershed_workloads::{Program, Service, Transition};

use crate::report::Entry;
use crate::report::copies::Copies;
use crate::report::run_id;

/// Returns the result of a program; none for other kinds and before its first start.
pub(super) fn result(row: &Row) -> Option<Value> {
    match row.kind.as_str() {
        job::KIND => state::<JobRecord>(row).map(|record| job_state(&record)),
        service::KIND => state::<ServiceRecord>(row).map(|record| service_state(row, &record)),
        replica::KIND => {
            let spec = Resource::spec_of::<ReplicaSpec>(row).ok()?;
            Some(replica_state(&spec, &state(row)?))
        }
        _ => None,
    }
}

/// Returns the transitions of a program, oldest first; none for other kinds.
pub(crate) fn transitions(row: &Row) -> Vec<Transition> {
    let found = match row.kind.as_str() {
        job::KIND => state::<JobRecord>(row).map(|record| record.transitions),
        service::KIND => state::<ServiceRecord>(row).map(|record| record.transitions),
        replica::KIND => state::<ReplicaRecord>(row).map(|record| record.transitions),
        _ => None,
    };
    found.unwrap_or_default()
}

/// Returns the transitions of all programs, or of one and the resources it owns, for `history`.
pub(crate) fn past_transitions(entries: &[Entry], of: Option<&Row>) -> Vec<HistoryTransition> {
    let is_meant = |row: &Row| of.is_none_or(|of| row.uid == of.uid || row.owner == Some(of.uid));
    let rows = entries.iter().map(|entry| entry.row.as_ref());
    let told = |row: &Row| {
        let resource = ResourceName::new(row.kind.as_str(), row.name.as_str());
        let past = transitions(row).into_iter();
        past.map(move |one| HistoryTransition {
            at: Time::from_millis(one.at.0),
            resource: resource.clone(),
            from: one.from,
            to: one.to,
            reason: one.reason,
            detail: one.detail,
            run: run_id(one.epoch, one.invocation.0),
            moment: None,
            rows: None,
            messages: Vec::new(),
        })
        .collect::<Vec<_>>()
    };
    rows.filter(|row| is_program(row) && is_meant(row))
        .flat_map(told)
        .collect()
}

/// Returns true if a resource is a replica, whose failures its service reports.
pub(crate) fn is_copy(row: &Row) -> bool {
    row.kind.as_str() == replica::KIND && !row.intents.is_deleted()
}

/// Marks the states of programs in a document as last known, since no process runs the project.
pub(crate) fn say_last_known(document: &mut RunDocument) {
    let programs = document
        .resources
        .iter_mut()
        .filter(|one| [job::KIND, service::KIND, replica::KIND].contains(&one.kind.as_str()));
    for result in programs.filter_map(|one| one.result.as_mut()) {
        if let Value::Object(result) = result {
            result.insert("last_known".to_owned(), true.into());
        }
    }
}

/// Returns true if a resource is a job, a service or a replica.
pub(crate) fn is_program(row: &Row) -> bool {
    [job::KIND, service::KIND, replica::KIND].contains(&row.kind.as_str())
}

/// Returns true if the process of a job was started at a time or later.
///
/// A look at a finished job starts no process, and failed replicas wait for a request whatever else is started.
pub(crate) fn has_run_since(row: &Row, time: Time) -> bool {
    let job = || state::<JobRecord>(row).filter(|_| row.kind.as_str() == job::KIND);
    job().is_some_and(|record| record.counter > 0 && record.started.0 >= time.millis())
}

/// Adds the replicas of a service to its result, in order of their numbers.
pub(crate) fn show_copies(copies: &Copies<'_>, result: &mut Option<Value>, service: &Row) {
    let Some(Value::Object(result)) = result else {
        return;
    };
    if service.kind.as_str() != service::KIND {
        return;
    }
    let copy = |row: &&Row| {
        let spec = Resource::spec_of::<ReplicaSpec>(row).ok()?;
        let record = state::<ReplicaRecord>(row).unwrap_or_default();
        Some((spec.number, replica_state(&spec, &record)))
    };
    let mut replicas: Vec<(u64, Value)> = copies.of_service(service).iter().filter_map(copy).collect();
    replicas.sort_by_key(|(number, _)| *number);
    let replicas: Vec<Value> = replicas.into_iter().map(|(_, replica)| replica).collect();
    result.insert("replicas".to_owned(), replicas.into());
}

fn state<M: Message>(row: &Row) -> Option<M> {
    Resource::state_of(row).ok().flatten()
}

pub(super) fn time(at: Timestamp) -> Value {
    serde_json::to_value(Time::from_millis(at.0)).unwrap_or_default()
}

fn job_state(record: &JobRecord) -> Value {
    json!({
        "stage": record.stage.as_str(),
        "reason": record.reason,
        "since": time(record.since),
        "process": record.backend_id,
        "last_exit": record.last_exit.as_ref().map(exit),
        "failures": record.exits.count,
        "next_start": next(record.exits),
    })
}

fn service_state(row: &Row, record: &ServiceRecord) -> Value {
    let active = record.release(record.active);
    let rolled_back = Resource::spec_of::<Service>(row).ok().and_then(|Service(spec)| {
        let program = spec.program.clone().unwrap_or_default();
        let digest = Program::from_spec(&program, &spec.variables).digest();
        service::rolled_back(&spec, &digest)
    });
    json!({
        "stage": record.stage(),
        "release": record.active,
        "released_at": active.map(|release| time(release.at)),
        "rolled_back_to": rolled_back,
        "candidate": record.candidate.as_ref().map(|candidate| candidate.release),
        "replicas_wanted": record.replicas,
        "replicas_ready": record.ready,
        "replicas_completed": record.completed,
        "ports": record.ports,
    })
}

fn replica_state(spec: &ReplicaSpec, record: &ReplicaRecord) -> Value {
    let stage = match record.is_ready() {
        true => "ready",
        false => record.stage.as_str(),
    };
    json!({
        "number": spec.number,
        "release": spec.release,
        "stage": stage,
        "reason": record.reason,
        "since": since(record.ready_since.unwrap_or(record.since)),
        "message": record.failed_start.as_ref().map(|failed| failed.message.as_str()),
        "process": record.backend_id.as_ref().filter(|_| record.is_open),
        "ports": record.ports,
        "last_exit": record.last_exit.as_ref().map(exit),
        "failures": record.exits.count,
        "attempts": spec.restart.attempts,
        "next_start": match record.stage {
            Stage::BackingOff => next(record.exits),
            Stage::Pending => next(record.starts),
            _ => None,
        },
    })
}

/// Converts a time to JSON; none where it was never set.
fn since(at: Timestamp) -> Option<Value> {
    (at != Timestamp::default()).then(|| time(at))
}

/// Returns the time of the next attempt, at most its wait from now, even if the clock was set back.
fn next(attempts: Attempts) -> Option<Value> {
    let now = Timestamp(Time::now().millis());
    attempts.by_clock(now).next.map(time)
}

fn exit(last: &LastExit) -> Value {
    json!({
        "end": watershed_workloads::replica::told(last.exit),
        "at": time(last.at),
        "after_ms": last.after_ms,
        "intended": last.was_intended,
    })
}

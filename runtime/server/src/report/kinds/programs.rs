//! Jobs, services and their replicas in documents.

use std::collections::HashMap;

use serde_json::{Value, json};
use watershed_controller::Resource;
use watershed_controller::message::Message;
use watershed_core::{Attempts, Row, Timestamp, Uid};
use watershed_workloads::Transition;
use watershed_workloads::job::{self, JobRecord};
use watershed_workloads::replica::{self, LastExit, ReplicaRecord, ReplicaSpec, Stage};
use watershed_workloads::service::{self, ServiceRecord};

use crate::documents::{HistoryTransition, ResourceName, Time};
use crate::report::Entry;
use crate::report::resource::run_id;

/// Returns the result of a program; none of other kinds, and before it was ever started.
pub(super) fn result(row: &Row) -> Option<Value> {
    match row.kind.as_str() {
        job::KIND => state::<JobRecord>(row).map(|record| job_state(&record)),
        service::KIND => state::<ServiceRecord>(row).map(|record| service_state(&record)),
        replica::KIND => {
            let spec = Resource::spec_of::<ReplicaSpec>(row).ok()?;
            Some(replica_state(&spec, &state(row)?))
        }
        _ => None,
    }
}

/// Returns the transitions of a program, oldest first; none of other kinds.
pub(crate) fn transitions(row: &Row) -> Vec<Transition> {
    let found = match row.kind.as_str() {
        job::KIND => state::<JobRecord>(row).map(|record| record.transitions),
        service::KIND => state::<ServiceRecord>(row).map(|record| record.transitions),
        replica::KIND => state::<ReplicaRecord>(row).map(|record| record.transitions),
        _ => None,
    };
    found.unwrap_or_default()
}

/// Returns the transitions of all programs, or of one and what it owns, in the words of `history`.
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

/// Returns true if a resource is a program, or one running copy of one.
pub(crate) fn is_program(row: &Row) -> bool {
    [job::KIND, service::KIND, replica::KIND].contains(&row.kind.as_str())
}

/// The replicas of all services of one reading.
pub(crate) struct Replicas<'a>(HashMap<Uid, Vec<&'a Row>>);

impl<'a> Replicas<'a> {
    /// Finds the owners of all replicas, in one pass.
    pub(crate) fn of(entries: &'a [Entry]) -> Self {
        let mut by_owner: HashMap<Uid, Vec<&Row>> = HashMap::new();
        let rows = entries.iter().map(|entry| entry.row.as_ref());
        for row in rows.filter(|row| row.kind.as_str() == replica::KIND && !row.intents.is_deleted()) {
            if let Some(owner) = row.owner {
                by_owner.entry(owner).or_default().push(row);
            }
        }
        Self(by_owner)
    }

    /// Puts the replicas of a service into its result, in order of their numbers.
    pub(crate) fn show_in(&self, result: &mut Option<Value>, service: &Row) {
        let Some(Value::Object(result)) = result else {
            return;
        };
        if service.kind.as_str() != service::KIND {
            return;
        }
        let rows = self.0.get(&service.uid).into_iter().flatten();
        let replica = |row: &&Row| {
            let spec = Resource::spec_of::<ReplicaSpec>(row).ok()?;
            let record = state::<ReplicaRecord>(row).unwrap_or_default();
            Some((spec.number, replica_state(&spec, &record)))
        };
        let mut replicas: Vec<(u64, Value)> = rows.filter_map(replica).collect();
        replicas.sort_by_key(|(number, _)| *number);
        let replicas: Vec<Value> = replicas.into_iter().map(|(_, replica)| replica).collect();
        result.insert("replicas".to_owned(), replicas.into());
    }
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

fn service_state(record: &ServiceRecord) -> Value {
    let active = record.release(record.active);
    json!({
        "stage": record.stage(),
        "release": record.active,
        "released_at": active.map(|release| time(release.at)),
        "candidate": record.candidate.as_ref().map(|candidate| candidate.release),
        "replicas_wanted": record.replicas,
        "replicas_ready": record.ready,
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
        "since": time(record.ready_since.unwrap_or(record.since)),
        "process": record.backend_id.as_ref().filter(|_| record.is_open),
        "ports": record.ports,
        "last_exit": record.last_exit.as_ref().map(exit),
        "failures": record.exits.count,
        "attempts": spec.restart.attempts,
        "next_start": next(record.exits).filter(|_| record.stage == Stage::BackingOff),
    })
}

fn next(attempts: Attempts) -> Option<Value> {
    attempts.next.map(time)
}

fn exit(last: &LastExit) -> Value {
    json!({
        "end": watershed_workloads::replica::told(last.exit),
        "at": time(last.at),
        "after_ms": last.after_ms,
        "intended": last.was_intended,
    })
}

//! Results of checks, in the status of services that are asked for by name.

use std::path::Path;

use serde_json::{Map, Value, json};
use watershed_api::documents::{ResourceDocument, RunDocument, Time};
use watershed_controller::Resource;
use watershed_core::{Row, Timestamp};
use watershed_workloads::replica::{self, ReplicaRecord, ReplicaSpec};
use watershed_workloads::{CheckResult, CheckSpec, Probed, results_of, service};

use super::programs::time;
use crate::report::Entry;

/// One replica with the stored results of its checks.
struct Replica {
    spec: ReplicaSpec,
    record: ReplicaRecord,
    results: Vec<Vec<CheckResult>>,
}

/// Adds the results of checks to the services of a document, read from the output folder of programs.
pub(crate) fn show_in(document: &mut RunDocument, entries: &[Entry], programs: &Path) {
    for resource in &mut document.resources {
        show_of(resource, entries, programs);
    }
}

/// Adds the results of checks to a service; changes nothing of other kinds and before the first start.
pub(crate) fn show_of(resource: &mut ResourceDocument, entries: &[Entry], programs: &Path) {
    let now = Timestamp(Time::now().millis());
    let Some(Value::Object(result)) = resource
        .result
        .as_mut()
        .filter(|_| resource.kind == service::KIND)
    else {
        return;
    };
    let is_it = |row: &Row| row.kind.as_str() == service::KIND && row.name.as_str() == resource.name;
    let Some(row) = entries.iter().map(|entry| &entry.row).find(|row| is_it(row)) else {
        return;
    };
    let owned = entries
        .iter()
        .filter(|entry| entry.row.owner == Some(row.uid) && entry.row.kind.as_str() == replica::KIND);
    let replicas: Vec<Replica> = owned
        .filter_map(|entry| replica_of(&entry.row, programs, now))
        .collect();
    show(result, &replicas);
}

fn replica_of(row: &Row, programs: &Path, now: Timestamp) -> Option<Replica> {
    let spec = Resource::spec_of::<ReplicaSpec>(row).ok()?;
    if row.intents.is_deleted() {
        return None;
    }
    let record = Resource::state_of::<ReplicaRecord>(row)
        .ok()
        .flatten()
        .unwrap_or_default();
    let results = results_of(programs, &row.uid.to_string(), &spec.checks, now);
    Some(Replica {
        spec,
        record,
        results,
    })
}

fn show(result: &mut Map<String, Value>, replicas: &[Replica]) {
    let wanted: Vec<&Replica> = replicas.iter().filter(|one| one.spec.is_wanted).collect();
    let checks = wanted.first().map(|one| one.spec.checks.as_slice());
    let checks: Vec<Value> = checks
        .unwrap_or_default()
        .iter()
        .map(|check| summary(check, &wanted))
        .collect();
    if checks.is_empty() {
        return;
    }
    result.insert("checks".to_owned(), checks.into());
    let listed = result.get_mut("replicas").and_then(Value::as_array_mut);
    for value in listed.into_iter().flatten() {
        let number = value.get("number").and_then(Value::as_u64);
        let of = replicas.iter().find(|one| Some(one.spec.number) == number);
        if let (Value::Object(value), Some(of)) = (value, of) {
            value.insert("checks".to_owned(), all(of).into());
        }
    }
}

/// Summarises a check over all replicas, as JSON.
fn summary(check: &CheckSpec, replicas: &[&Replica]) -> Value {
    let digest = check.digest();
    let of = |one: &&Replica| Some((one.spec.number, one.latest(&digest)?.clone()));
    let latest = replicas.iter().filter_map(of).max_by_key(|(_, last)| last.at);
    json!({
        "check": check.name(),
        "passing": replicas.iter().filter(|one| one.is_passing(&digest)).count(),
        "replicas": replicas.len(),
        "latest": latest.map(|(number, last)| json!({
            "replica": number,
            "at": time(last.at),
            "result": last.result,
        })),
    })
}

/// Returns the stored results of one replica's checks as JSON, oldest first.
fn all(of: &Replica) -> Vec<Value> {
    let result = |one: &CheckResult| {
        json!({
            "at": time(one.at),
            "start": one.start,
            "result": one.result,
        })
    };
    let check = |(check, results): (&CheckSpec, &Vec<CheckResult>)| {
        json!({
            "check": check.name(),
            "passing": of.is_passing(&check.digest()),
            "results": results.iter().map(result).collect::<Vec<Value>>(),
        })
    };
    of.spec.checks.iter().zip(&of.results).map(check).collect()
}

impl Replica {
    fn latest(&self, digest: &str) -> Option<&CheckResult> {
        let mut results = self.results.iter().filter_map(|results| results.last());
        results.rfind(|result| result.check == digest)
    }

    /// Returns true if the last result is a success of the process that now runs.
    fn is_passing(&self, digest: &str) -> bool {
        let latest = self.latest(digest);
        self.record.is_open
            && latest.is_some_and(|last| last.start == self.record.counter && last.result == Probed::Success)
    }
}

//! Jobs and services in the status of resources.

use serde_json::Value;
use watershed_api::documents::{ResourceDocument, RunDocument, Time};

use super::columns::{Cell, fitting};
use super::palette::{DIM, STRONG, WARN};
use super::units::{ago, ahead, count, duration};

/// The remark that the states of processes are the last known ones, as no process runs the project.
pub(super) const LAST_KNOWN: &str = "this is what was last known: no process runs the project";

/// Most resources in a status that shows the replicas of services: a longer status is not about single ones.
const MOST_SERVICES: usize = 3;

pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn number(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or_default()
}

pub(super) fn time(value: &Value, key: &str) -> Option<Time> {
    serde_json::from_value(value.get(key)?.clone()).ok()
}

/// Renders a program's state in a few words: `2 of 3 ready`, `exited with code 3`.
///
/// A program whose edits wait for another resource has that named too.
pub(super) fn glance(resource: &ResourceDocument) -> String {
    let Some(result) = &resource.result else {
        return String::new();
    };
    let standing = match resource.kind.as_str() {
        "service" => format!(
            "{} of {} ready{}",
            number(result, "replicas_ready"),
            number(result, "replicas_wanted"),
            match number(result, "rolled_back_to") {
                0 => String::new(),
                release => format!(", rolled back to release {release}"),
            }
        ),
        "job" | "replica" | "managed" => text(result, "stage").to_owned(),
        _ => return String::new(),
    };
    let is_program = matches!(resource.kind.as_str(), "service" | "job");
    match resource.blocked_by.as_slice() {
        [] => standing,
        causes if is_program => {
            let causes: Vec<String> = causes.iter().map(ToString::to_string).collect();
            format!("{standing}, edits wait for {}", super::units::some_of(&causes, 3))
        }
        _ => standing,
    }
}

/// Returns true if the state of a program is the last known one, as no process runs the project.
pub(super) fn is_last_known(resource: &ResourceDocument) -> bool {
    let result = resource.result.as_ref();
    result.is_some_and(|result| result.get("last_known").is_some())
}

/// Renders the replicas of services, if the document has few resources.
pub(super) fn details(document: &RunDocument, now: Time, width: Option<u16>) -> String {
    let services = || document.resources.iter().filter(|one| one.kind == "service");
    if document.resources.len() > MOST_SERVICES || services().next().is_none() {
        return String::new();
    }
    services()
        .filter_map(|service| detail(service, now, width))
        .collect()
}

fn detail(service: &ResourceDocument, now: Time, width: Option<u16>) -> Option<String> {
    let result = service.result.as_ref()?;
    let released = time(result, "released_at").map(|at| format!(", {}", ago(at, now)));
    let mut out = format!(
        "\n{STRONG}service/{}{STRONG:#}  {}, {}   release {}{}\n",
        service.name,
        text(result, "stage").replace('_', " "),
        glance(service),
        number(result, "release"),
        released.unwrap_or_default(),
    );
    if is_last_known(service) {
        out.push_str(&format!("  {DIM}{LAST_KNOWN}{DIM:#}\n"));
    }
    let replicas = result.get("replicas").and_then(Value::as_array)?;
    if replicas.is_empty() {
        return Some(out);
    }
    let title = |text: &str| Cell::left(text, DIM);
    let titles = [
        "REPLICA",
        "STAGE",
        "SINCE",
        "PROCESS",
        "PORTS",
        "LAST EXIT",
        "NEXT START",
    ];
    let mut rows = vec![titles.iter().map(|text| title(text)).collect::<Vec<_>>()];
    rows.extend(replicas.iter().map(|replica| line(replica, now)));
    out.push_str(&fitting("  ", &rows, width));
    let checks = result.get("checks").and_then(Value::as_array);
    out.extend(checks.into_iter().flatten().map(|check| check_line(check, now)));
    Some(out)
}

/// Renders a check in one line: `check http /health: 2 of 3 passing (latest: failure of replica 2, 3 s ago)`.
fn check_line(check: &Value, now: Time) -> String {
    let (passing, replicas) = (number(check, "passing"), number(check, "replicas"));
    let latest = check.get("latest").filter(|latest| !latest.is_null());
    let latest = latest.map_or_else(
        || "no result yet".to_owned(),
        |latest| {
            let at = time(latest, "at").map(|at| format!(", {}", ago(at, now)));
            format!(
                "latest: {} of replica {}{}",
                text(latest, "result"),
                number(latest, "replica"),
                at.unwrap_or_default()
            )
        },
    );
    let style = if passing < replicas {
        WARN
    } else {
        anstyle::Style::new()
    };
    format!(
        "  check {}: {style}{passing} of {replicas} passing{style:#} {DIM}({latest}){DIM:#}\n",
        text(check, "check").replace(char::is_control, " ")
    )
}

fn line(replica: &Value, now: Time) -> Vec<Cell> {
    let stage = text(replica, "stage");
    let style = if stage == "ready" {
        anstyle::Style::new()
    } else {
        WARN
    };
    let since = time(replica, "since").map(|at| ago(at, now)).unwrap_or_default();
    let ports = replica.get("ports").and_then(Value::as_object);
    let ports: Vec<String> = ports
        .into_iter()
        .flatten()
        .map(|(name, port)| format!("{name}={port}"))
        .collect();
    let exit = replica
        .get("last_exit")
        .filter(|exit| !exit.is_null())
        .map(|exit| {
            format!(
                "{} after {}",
                text(exit, "end"),
                duration(number(exit, "after_ms"))
            )
        });
    let next = time(replica, "next_start").map(|at| {
        let (failures, attempts) = (number(replica, "failures"), number(replica, "attempts"));
        let of = match attempts {
            0 => count(failures, "failure"),
            attempts => format!("{failures} of {attempts}"),
        };
        format!("{} ({of})", ahead(at, now))
    });
    vec![
        Cell::left(number(replica, "number").to_string(), anstyle::Style::new()),
        Cell::left(stage, style),
        Cell::left(since, DIM),
        Cell::plain(text(replica, "process")),
        Cell::plain(ports.join(" ")),
        Cell::left(exit.unwrap_or_default(), DIM),
        Cell::left(next.unwrap_or_default(), WARN),
    ]
}

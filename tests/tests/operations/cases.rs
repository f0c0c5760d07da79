//! A good request for each operation of the table, and what an owner and a folder at rest make of it.

use serde_json::{Value, json};
use watershed::Code;
use watershed::api::Request;
use watershed::api::operations::Info;

use crate::project::Place;

/// The agreement between an owner and the same folder at rest.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Agreement {
    /// Both answer with the same document, but for the keys that are listed.
    Same(&'static [&'static str]),
    /// The owner answers, and a folder at rest has nobody who could.
    Unattended,
    /// The owner has nothing to do it to, and a folder at rest nobody who could.
    Nothing(Code),
    /// A folder at rest answers, and the owner is refused for this reason: the operation needs a folder that nobody has.
    OwnerRefused(Code),
}

/// Keys with moments, lengths of time and names of runs, which are others each time.
const RUN: &[&str] = &["run_id", "started_at", "duration_ms"];

/// Numbers that an owner alone has, or that say that there is one.
const OWNERS_NUMBERS: &[&str] = &[
    "watershed_up",
    "watershed_last_success",
    "watershed_settled",
    "_total",
    "commit",
    "loop_lag",
    "lease",
    "convergence",
    "dropped",
    "watershed_waiting",
    "watched_bytes",
    "watershed_resource_last",
    "watershed_kind_resources",
];

/// Keys that tell a change that is made at once from one that takes effect later.
const CHANGE: &[&str] = &["live", "detail", "phase"];

/// As [`RUN`], and what an owner knows beyond that which is stored: runs that found nothing to do, and programs as they are now.
const STATUS: &[&str] = &[
    "run_id",
    "started_at",
    "duration_ms",
    "last_run",
    "runs_total",
    "health",
    "last_known",
];

/// Returns the case of an operation.
pub(crate) fn case(line: &Info) -> (Value, Agreement) {
    use Agreement::{Nothing, OwnerRefused, Same, Unattended};
    let run = json!({"variables": {}, "fail_fast": false, "warn_error": false, "all": false});
    let options = json!({"at": null, "shown": 10, "sql": false, "file": null, "force": false});
    match line.name {
        "run" => (run, Unattended),
        "approve" => (
            json!({"names": ["model/late"], "run": run}),
            Nothing(Code::BadArgument),
        ),
        "reconcile" | "retry" => (json!({"names": ["model/late"], "run": run}), Unattended),
        "refresh" => (
            json!({"names": ["model/late"], "full": false, "downstream": false, "run": run}),
            Unattended,
        ),
        "status" => (json!({"names": [], "all": true}), Same(STATUS)),
        "engine" => (json!({}), Same(&[])),
        "validate" => (json!({"all": true, "warn_error": false, "spec": true}), Same(RUN)),
        "plan" => (json!({"exit_code": false}), Same(&[])),
        "graph" => (json!({"name": null, "all": true}), Same(&["health"])),
        "history" => (json!({"name": "model/late", "limit": 10}), Same(&[])),
        "partitions" => (json!({"name": "parts", "errored": false, "limit": 10}), Same(&[])),
        "explain" => (json!({"name": "model/late"}), Same(&["live"])),
        "test" => (json!({"names": ["tested"], "warn_error": false}), Same(RUN)),
        "logs" => (
            json!({"name": "model/late", "limit": 10, "follow": false}),
            Same(&[]),
        ),
        "instances" => (json!({}), Same(&["state", "since"])),
        "stats" => (json!({}), Same(&["at", "process", "process_stats", "settled"])),
        "prometheus" => (json!({}), Same(OWNERS_NUMBERS)),
        "query" => (
            json!({"sql": "SELECT origin FROM late ORDER BY 1", "limit": 10, "timeout_ms": null}),
            Same(&[]),
        ),
        "show" => (
            json!({"name": "connector/archive", "limit": 10}),
            Same(&["last_run", "runs_total"]),
        ),
        "compile" => (json!({"name": "tested"}), Same(&[])),
        "export" => (
            json!({"rows": {"of": "model/late"}, "limit": null, "timeout_ms": null, "file": "ROOT/rows.csv", "force": true}),
            Same(&[]),
        ),
        "metrics" => (
            json!({"query": {"metrics_view": "delays", "dimensions": ["origin"], "measures": ["flights"],
                "sort": [{"name": "origin"}]}, "condition": null, "having": null, "user": null, "options": options}),
            Same(&[]),
        ),
        "metrics-bounds" => (json!({"view": "delays"}), Same(&[])),
        "call" => (
            json!({"api": "by_origin", "args": {"origin": "JFK"}, "user": null, "options": options}),
            Same(&[]),
        ),
        "report" => (json!({"name": "late", "options": options}), Same(&[])),
        "alert-test" => (
            json!({"name": "bad", "at": "2024-03-03T00:00:00Z", "send": false, "exit_code": false}),
            Same(&[]),
        ),
        "pause" | "resume" | "cancel" => (json!({"names": ["tested"]}), Same(&["live"])),
        "scale" => (json!({"names": ["steady"], "replicas": 2}), Same(CHANGE)),
        "restart" => (json!({"names": ["steady"], "now": true}), Unattended),
        "rollback" => (json!({"names": ["steady"]}), Same(CHANGE)),
        "set" => (json!({"name": "thing", "desired": "active"}), Same(CHANGE)),
        "event" => (
            json!({"body": r#"{"specversion": "1.0", "id": "1", "source": "/tests", "type": "changed", "subject": "thing"}"#}),
            Same(&["live"]),
        ),
        "snooze" => (
            json!({"name": "bad", "until_ms": 4_000_000_000_000_u64}),
            Same(CHANGE),
        ),
        "trash-list" => (json!({}), Same(&[])),
        "trash-restore" => (json!({"name": "gone", "to": "back", "dry_run": false}), Same(&[])),
        "trash-empty" => (json!({"names": [], "dry_run": false}), Same(&[])),
        "check" => (json!({}), Same(&["live"])),
        "doctor" => (json!({}), Same(&["live"])),
        "repair" => (json!({}), OwnerRefused(Code::HeldElsewhere)),
        "gc" => (json!({}), Same(&["engine_bytes_before", "engine_bytes_after"])),
        "backup" => (
            json!({"file": "ROOT/../copy.tar", "force": true}),
            Same(&["bytes", "created_at"]),
        ),
        "restore" => (
            json!({"file": "ROOT/../copy.tar", "dry_run": true}),
            OwnerRefused(Code::HeldElsewhere),
        ),
        name => panic!("`{name}` is in the table of operations and has no case here"),
    }
}

/// Returns the request of an operation at a place.
pub(crate) fn request(line: &Info, place: &Place) -> Request {
    let input = case(line).0.to_string();
    let root = place.root().display().to_string();
    let body = format!(r#"{{"{}": {}}}"#, line.name, input.replace("ROOT", &root));
    let request: Request = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
    assert_eq!(request.info(), *line);
    request
}

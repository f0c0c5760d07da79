//! Results of checks: kept beside the output of programs, and told by `status`.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::going::Going;
use crate::processes::{pids, until};
use crate::sandbox::Sandbox;

/// A service of two copies, each ready while a file is there.
const SERVICE: &str = "type: service
run: exec sleep 100000
replicas: 2
checks:
  - {command: [test, -f, up], readiness: true, interval: 100ms, min_healthy_time: 0s, on_failure: alert}
";

fn project() -> Sandbox {
    Sandbox::with(&[("watershed.yaml", ""), ("services/api.yaml", SERVICE), ("up", "")])
}

/// The service in a document that is about it alone.
fn service(project: &Sandbox) -> Value {
    let document = project.call(&["status", "api", "--json"]).json();
    document["resources"][0]["result"].clone()
}

fn is_passing(project: &Sandbox, passing: u64, result: &str) -> bool {
    let check = service(project)["checks"][0].clone();
    check["passing"] == passing && check["latest"]["result"] == result
}

/// The files of results.
fn files(project: &Sandbox) -> Vec<PathBuf> {
    let folder = project.path().join(".watershed/dev/programs/checks");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// W10 and W14: kept over the end of the program, also where a file was damaged, and gone with the service.
#[test]
fn results_of_checks_outlive_the_program_and_go_with_their_service() {
    let project = project();
    let start = Going::settled(&project);
    until("both pass", || is_passing(&project, 2, "success"));
    let text = project.call(&["status", "api"]).stdout;
    assert!(
        text.contains("check command test -f up: 2 of 2 passing (latest: success of replica "),
        "{text}"
    );
    project.remove("up");
    until("both fail", || is_passing(&project, 0, "failure"));
    until("nothing is ready", || service(&project)["replicas_ready"] == 0);
    start.kill();

    let found = service(&project);
    let results = found["replicas"][0]["checks"][0]["results"]
        .as_array()
        .unwrap()
        .clone();
    assert!(results.len() >= 2 && results.len() <= 50, "{found}");
    assert_eq!(results.first().unwrap()["result"], "success");
    assert_eq!(results.last().unwrap()["result"], "failure");
    assert_eq!(found["checks"][0]["replicas"], 2);
    let whole = project.call(&["status", "--json"]).json();
    let services = whole["resources"].as_array().unwrap();
    let api = services.iter().find(|one| one["name"] == "api").unwrap();
    assert_eq!(
        api["result"]["checks"],
        Value::Null,
        "only of those asked for by name"
    );

    let damaged = files(&project);
    assert_eq!(damaged.len(), 2);
    for (path, damage) in damaged.iter().zip(["{\"check\": \"torn", "\0\0\0\n[1]\n"]) {
        let text = fs::read_to_string(path).unwrap();
        fs::write(path, text + damage).unwrap();
    }
    let after = service(&project)["replicas"][0]["checks"][0]["results"].clone();
    assert_eq!(after, json!(results), "what is damaged is left out");

    project.write("up", "");
    let start = Going::start(&project);
    until("both pass again", || is_passing(&project, 2, "success"));
    let lines = |path: &PathBuf| fs::read_to_string(path).unwrap();
    assert!(
        damaged
            .iter()
            .all(|path| !lines(path).contains("torn") && !lines(path).contains("[1]")),
        "what is damaged is dropped"
    );

    project.remove("services/api.yaml");
    until("nothing is left", || {
        pids(&project).is_empty() && files(&project).is_empty()
    });
    start.stop();
}

/// W10: readiness keeps its stored value, and failures are counted anew, when another program goes on.
#[test]
fn a_program_that_starts_again_leaves_a_copy_ready_until_a_result_contradicts_it() {
    let project = project();
    project.edit("services/api.yaml", "interval: 100ms", "interval: 1h");
    let start = Going::settled(&project);
    until("both are ready", || service(&project)["replicas_ready"] == 2);
    let ready_since = |found: &Value| found["replicas"][0]["since"].clone();
    let before = service(&project);
    start.kill();
    let start = Going::settled(&project);
    let after = service(&project);
    assert_eq!(
        (after["replicas_ready"].clone(), ready_since(&after)),
        (json!(2), ready_since(&before))
    );
    start.kill();
    project.remove("up");
    let start = Going::start(&project);
    until("the first result contradicts it", || {
        service(&project)["replicas_ready"] == 0
    });
    assert_eq!(service(&project)["replicas"][0]["failures"], 0);
    start.stop();
}

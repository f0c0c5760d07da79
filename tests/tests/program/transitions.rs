//! Transitions of jobs, services and replicas in `history`.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read};
use std::process::Stdio;
use std::sync::mpsc::channel;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::going::Going;
use crate::processes::{kill, pids, until};
use crate::sandbox::Sandbox;

/// A service with a check that says when a copy is ready, and one that only tells.
const SERVICE: &str = "type: service
run: exec sleep 100000
environment: {LABEL: first}
replicas: 2
stop: {grace: 1s}
restart: {base: 10ms}
checks:
  - {command: [sh, -c, 'test \"$LABEL\" != bad'], readiness: true, interval: 100ms, min_healthy_time: 0s}
  - {command: [test, -f, quiet], interval: 100ms, threshold: 1, on_failure: alert}
rollout: {deadline: 5m}
";

const JOB: &str = "type: job\nrun: exit 0\n";

fn project() -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        ("quiet", ""),
        ("services/api.yaml", SERVICE),
        (
            "services/plain.yaml",
            "type: service\nrun: exec sleep 100000\nstop: {grace: 1s}\n",
        ),
        ("jobs/import.yaml", JOB),
    ])
}

fn history(project: &Sandbox, arguments: &[&str]) -> Value {
    let mut all = vec!["history", "--json"];
    all.extend(arguments);
    if !all.contains(&"--limit") {
        all.extend(["--limit", "100000"]);
    }
    project.call(&all).json()
}

fn transitions(document: &Value) -> Vec<Value> {
    document["transitions"].as_array().cloned().unwrap_or_default()
}

/// The reasons of the transitions of one resource, the latest first.
fn reasons(document: &Value, kind: &str) -> Vec<String> {
    transitions(document)
        .iter()
        .filter(|one| one["resource"]["kind"] == kind)
        .map(|one| one["reason"].as_str().unwrap_or_default().to_owned())
        .collect()
}

fn are_ready(project: &Sandbox, name: &str, replicas: u64, release: u64) -> bool {
    let document = project.call(&["status", name, "--json"]).json();
    let result = &document["resources"][0]["result"];
    let rows = result["replicas"].as_array().cloned().unwrap_or_default();
    let is_one = |row: &Value| row["stage"] == "ready" && row["release"] == release;
    u64::try_from(rows.len()) == Ok(replicas) && rows.iter().all(is_one)
}

/// W4 and W15: each sort of transition is told by `history`, for a service with its replicas, and merged by time.
#[test]
fn history_tells_the_transitions_of_services_and_their_replicas() {
    let project = project();
    let start = Going::settled(&project);
    until("both are ready", || are_ready(&project, "api", 2, 1));
    kill(*pids(&project).first().unwrap());
    until("one has started again", || {
        reasons(&history(&project, &[]), "replica").contains(&"exited".to_owned())
            && are_ready(&project, "api", 2, 1)
    });
    project.remove("quiet");
    until("a check is told of", || {
        reasons(&history(&project, &["api"]), "replica").contains(&"check".to_owned())
    });
    project.write("quiet", "");
    project.call(&["scale", "api", "3"]);
    until("three are ready", || are_ready(&project, "api", 3, 1));
    project.call(&["restart", "api", "--now"]);
    until("it is told of", || {
        reasons(&history(&project, &["api"]), "replica").contains(&"restarted".to_owned())
    });
    until("three are ready again", || are_ready(&project, "api", 3, 1));
    project.edit("services/api.yaml", "LABEL: first", "LABEL: second");
    until("the second release has rolled out", || {
        are_ready(&project, "api", 3, 2)
    });
    project.edit("services/api.yaml", "deadline: 5m", "deadline: 2s");
    project.edit("services/api.yaml", "LABEL: second", "LABEL: bad");
    until("the third one is taken back", || {
        reasons(&history(&project, &["api"]), "service").contains(&"rollout_failed".to_owned())
    });
    project.edit("services/plain.yaml", "run: exec", "run: true; exec");
    until("the other service is replaced at once", || {
        reasons(&history(&project, &["plain"]), "service").contains(&"force_replace".to_owned())
    });

    let of_api = history(&project, &["api"]);
    let names: BTreeSet<String> = reasons(&of_api, "service").into_iter().collect();
    for reason in [
        "release",
        "ready",
        "scaled",
        "restarted",
        "force_replace",
        "unready",
        "rollout",
        "rollout_step",
        "rollout_complete",
        "rollout_failed",
    ] {
        assert!(names.contains(reason), "{reason} is missing among {names:?}");
    }
    let about = |document: &Value| -> BTreeSet<String> {
        let names = transitions(document).into_iter();
        names
            .map(|one| one["resource"]["name"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert!(
        about(&of_api)
            .iter()
            .all(|name| name == "api" || name.starts_with("api."))
    );
    // Its replica ends after the change that replaces it is told.
    until("replicas of the other service are told of", || {
        about(&history(&project, &[]))
            .iter()
            .any(|name| name.starts_with("plain."))
    });
    let steps = transitions(&of_api);
    let failed = steps
        .iter()
        .find(|one| one["reason"] == "rollout_failed")
        .unwrap();
    assert_eq!(
        (failed["from"].as_str(), failed["to"].as_str()),
        (Some("rolling_out"), Some("running"))
    );
    let detail = failed["detail"].as_str().unwrap_or_default();
    assert!(
        detail.starts_with("release 3 made no progress in time: "),
        "{detail}"
    );
    // The run that recorded it is in the same document, with its causal chain.
    let run = of_api["runs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|run| run["id"] == failed["run"]);
    assert_eq!(run.expect("its run is there")["resource"]["name"], "api");
    let times: Vec<&str> = steps.iter().filter_map(|one| one["at"].as_str()).collect();
    assert!(
        times.is_sorted_by(|later, earlier| later >= earlier),
        "the latest first"
    );

    let text = project.call(&["history", "api", "--limit", "100000"]).stdout;
    let line = |text: &str, word: &str| text.lines().position(|line| line.contains(word));
    assert!(
        line(&text, "rollout complete") < line(&text, "rollout failed"),
        "{text}"
    );
    assert!(
        text.contains("starting → running") && text.contains("2 -> 3"),
        "{text}"
    );
    let few = history(&project, &["api", "--limit", "7"]);
    let count = |key: &str| few[key].as_array().map_or(0, Vec::len);
    assert_eq!(
        count("runs") + count("transitions"),
        7,
        "the limit is that of both"
    );
    let lines = project
        .call(&["history", "api", "--format", "jsonl", "--limit", "7"])
        .stdout;
    assert_eq!(lines.lines().count(), 7);
    assert!(lines.lines().all(|line| line.contains("watershed.history/1")));

    start.kill();
    let at_rest = transitions(&history(&project, &["api"]));
    let of_service = |steps: &[Value]| -> Vec<Value> {
        let all = steps.iter().filter(|one| one["resource"]["kind"] == "service");
        all.cloned().collect()
    };
    let (at_rest, before) = (of_service(&at_rest), of_service(&steps));
    assert!(
        at_rest.ends_with(&before),
        "at rest it is the same, and what came since"
    );
}

/// W15.
#[test]
fn history_tells_the_transitions_of_jobs() {
    let project = project();
    project.remove("services/api.yaml");
    project.remove("services/plain.yaml");
    project.run(0);
    assert_eq!(
        reasons(&history(&project, &["import"]), "job"),
        ["completed", "start"]
    );
    let text = project.call(&["history", "import"]).stdout;
    assert!(text.contains("running → completed"), "{text}");
}

/// A program that crashes is told of in full once; that it is started again mends nothing.
#[test]
fn start_tells_a_crash_loop_once_and_no_restart_as_a_mending() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "services/web.yaml",
            "type: service\nrun: sleep 0.1; exit 3\nrestart: {base: 200ms}\n",
        ),
    ]);
    let mut start = project
        .command(&["start"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let (lines, said) = channel();
    let stdout: Box<dyn Read + Send> = Box::new(start.stdout.take().expect("a pipe"));
    for pipe in [stdout, Box::new(start.stderr.take().expect("a pipe"))] {
        let lines = lines.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                // Nobody listens once the test has failed.
                drop(lines.send(line));
            }
        });
    }
    drop(lines);
    let mut all = String::new();
    while !all.contains("error[crash-loop]") {
        let line = said.recv().expect("the loop is told");
        all.push_str(&line);
        all.push('\n');
    }
    kill_process(Pid::from_child(&start), Signal::TERM).expect("it can be ended");
    start.wait().expect("it ends");
    // Those that follow fast are told by their last one alone.
    assert!(all.matches("error[exited]").count() < 2, "{all}");
    assert!(all.matches("crashed").count() > 2, "{all}");
    assert!(!all.contains("fixed") && !all.contains("is up to date"), "{all}");
}

//! Several calls on one project at a time, and calls that are stopped.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::going::Going;
use crate::sandbox::{Said, Sandbox};

/// Longer than any test waits; it is stopped before.
const ENDLESS: &str =
    "-- @materialize: true\nSELECT sum(a.range * b.range) AS s FROM range(10000000) a, range(90000) b\n";
/// A second or two: long enough for others to come meanwhile.
const LONG: &str =
    "-- @materialize: true\nSELECT sum(a.range * b.range) AS s FROM range(10000000) a, range(20) b\n";

/// A quick model, a slow one, and one that reads that.
fn project(slow: &str) -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/quick.sql", "-- @materialize: true\nSELECT 1 AS one\n"),
        ("models/slow.sql", slow),
        ("models/below.sql", "SELECT * FROM slow\n"),
    ])
}

const SLOW_STARTED: (&str, &str) = ("resource_started", "slow");
const QUICK_FINISHED: (&str, &str) = ("resource_finished", "quick");

#[test]
fn a_second_run_asks_the_first_and_ends_with_the_same_document() {
    let project = project(LONG);
    let mut first = Going::run(&project);
    first.until(&[SLOW_STARTED]);
    let second = project.call(&["run", "--json"]);
    let document = first.document();
    assert_eq!(
        (first.code(), second.code),
        (Some(0), Some(0)),
        "{}",
        second.stderr
    );
    let (ours, theirs) = (healths(&document), healths(&second.json()));
    assert_eq!(ours, theirs);
    assert_eq!(ours, ["below ok", "quick ok", "slow ok"]);
    assert_eq!(
        work(&second.json(), "slow"),
        "built",
        "it was built while the second one looked on"
    );
    assert_eq!(project.done(0), "", "and only once");
}

#[test]
fn tables_can_be_read_while_others_are_built() {
    let project = project(ENDLESS);
    let mut run = Going::run(&project);
    run.until(&[QUICK_FINISHED, SLOW_STARTED]);
    assert_eq!(project.query("SELECT one FROM quick")["rows"], json!([[1]]));
    let status = project.call(&["status", "--json"]).json();
    assert_eq!(resource(&status, "slow")["phase"], "running");
    assert_eq!(resource(&status, "below")["phase"], "pending");
    let graph = project.call(&["graph", "--json"]);
    assert_eq!(graph.code, Some(0), "{}", graph.stderr);
    run.signal(Signal::INT);
    assert_eq!(run.code(), Some(130));
}

#[test]
fn a_signal_stops_in_order_and_nothing_is_lost() {
    for (signal, code) in [(Signal::HUP, 129), (Signal::INT, 130), (Signal::TERM, 143)] {
        let project = project(ENDLESS);
        let mut run = Going::run(&project);
        run.until(&[QUICK_FINISHED, SLOW_STARTED]);
        run.signal(signal);
        let document = run.document();
        assert_eq!(run.code(), Some(code));
        assert_eq!(document["exit_code"], code);
        assert_eq!(resource(&document, "slow")["last_run"]["outcome"], "cancelled");
        assert_eq!(work(&document, "quick"), "built");
        project.write("models/slow.sql", "SELECT 2 AS s");
        assert_eq!(project.done(0), "below:built slow:built");
    }
}

#[test]
fn a_stopped_owner_is_named_and_what_it_stored_can_be_looked_at() {
    let project = project("SELECT 1 AS s");
    let start = Going::settled(&project);
    start.signal(Signal::STOP);
    let silent = format!("process {} does not answer", start.process());
    for arguments in [
        &["query", "SELECT 1"][..],
        &["run"],
        &["cancel", "slow"],
        &["start"],
    ] {
        let said = project.call(&[arguments, &["--wait", "1s"]].concat());
        assert_eq!(said.code, Some(3), "{arguments:?}: {}", said.stderr);
        assert!(said.stderr.contains(&silent), "{arguments:?}: {}", said.stderr);
    }
    for arguments in [&["status"][..], &["graph"], &["history"], &["explain", "slow"]] {
        let said = project.call(&[arguments, &["--wait", "1s"]].concat());
        assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.stderr);
        assert!(said.stderr.contains(&silent), "{arguments:?}: {}", said.stderr);
        assert!(said.stdout.contains("slow"), "{arguments:?}: {}", said.stdout);
    }
    start.signal(Signal::CONT);
    assert_eq!(project.query("SELECT s FROM below")["rows"], json!([[1]]));
}

#[test]
fn a_killed_owner_leaves_a_socket_that_is_in_nobodys_way() {
    let project = project(ENDLESS);
    let mut run = Going::run(&project);
    run.until(&[SLOW_STARTED]);
    run.kill();
    assert!(project.path().join(".watershed/dev/socket").exists());
    assert_eq!(project.call(&["status"]).code, Some(0));
    project.write("models/slow.sql", "SELECT 2 AS s");
    project.run(0);
    assert!(!project.path().join(".watershed/dev/socket").exists());
}

#[test]
fn the_second_of_two_runs_goes_on_when_the_first_is_stopped_or_killed() {
    for how in ["stopped", "killed"] {
        let project = project(ENDLESS);
        let mut first = Going::run(&project);
        first.until(&[QUICK_FINISHED, SLOW_STARTED]);
        let mut second = Going::run(&project);
        assert_eq!(
            second.next()["event"],
            "run_started",
            "{how}: it follows the first"
        );
        project.write("models/slow.sql", "-- @materialize: true\nSELECT 2 AS s");
        match how {
            "stopped" => {
                first.signal(Signal::INT);
                assert_eq!(first.code(), Some(130));
            }
            _ => first.kill(),
        }
        let document = second.document();
        assert_eq!(healths(&document), ["below ok", "quick ok", "slow ok"], "{how}");
        assert_eq!(second.code(), Some(0), "{how}");
        assert_eq!(
            project.query("SELECT s FROM below")["rows"],
            json!([[2]]),
            "{how}"
        );
    }
}

#[test]
fn a_run_beside_a_start_leaves_no_runs_that_nobody_cancelled() {
    let project = project("-- @materialize: true\nSELECT 3 AS s");
    for n in 0..8 {
        let below = if n == 0 {
            "below".to_owned()
        } else {
            format!("m{}", n - 1)
        };
        project.write(&format!("models/m{n}.sql"), &format!("SELECT * FROM {below}"));
    }
    let start = Going::settled(&project);
    for _ in 0..5 {
        assert_eq!(project.call(&["run"]).code, Some(0));
        assert_eq!(
            project.call(&["refresh", "quick", "slow", "--downstream"]).code,
            Some(0)
        );
    }
    let history = project.call(&["history", "--json", "--limit", "1000"]).json();
    let runs = history["runs"].as_array().cloned().unwrap_or_default();
    assert!(!runs.is_empty());
    let cancelled: Vec<_> = runs.iter().filter(|run| run["outcome"] == "cancelled").collect();
    assert!(cancelled.is_empty(), "{cancelled:#?}");
    start.stop();
}

#[test]
fn another_environment_is_another_state() {
    let project = project(ENDLESS);
    let mut run = Going::run(&project);
    run.until(&[SLOW_STARTED]);
    project.write("models/slow.sql", "SELECT 2 AS s");
    let other = project.call(&["run", "--json", "--environment", "test"]);
    assert_eq!(other.code, Some(0), "{}", other.stderr);
    run.signal(Signal::TERM);
    assert_eq!(run.code(), Some(143));
}

#[test]
fn fail_fast_ends_with_the_first_failure() {
    let project = project(ENDLESS);
    project.write("models/wrong.sql", "SELECT nothing FROM quick");
    let said: Said = project.call(&["run", "--fail-fast", "--json"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert_eq!(resource(&said.json(), "slow")["last_run"]["outcome"], "cancelled");
}

fn healths(document: &Value) -> Vec<String> {
    let resources = document["resources"].as_array().expect("resources are listed");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    resources
        .iter()
        .map(|r| format!("{} {}", text(&r["name"]), text(&r["health"])))
        .collect()
}

fn resource<'a>(document: &'a Value, name: &str) -> &'a Value {
    let resources = document["resources"].as_array().expect("resources are listed");
    resources
        .iter()
        .find(|resource| resource["name"] == name)
        .expect("the resource is listed")
}

fn work(document: &Value, name: &str) -> String {
    resource(document, name)["work"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

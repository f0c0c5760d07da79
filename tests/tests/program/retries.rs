//! Failed builds that are tried again, as a model says.

use serde_json::{Value, json};

use crate::going::Going;
use crate::sandbox::Sandbox;

/// A model over a file that is not there, with these keys under `retry`.
fn project(retry: &[&str]) -> Sandbox {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/below.sql", "SELECT * FROM flaky\n"),
    ]);
    project.write("models/flaky.sql", &flaky(retry));
    project
}

fn flaky(retry: &[&str]) -> String {
    let keys: String = retry.iter().map(|key| format!("-- @retry.{key}\n")).collect();
    format!("-- @materialize: true\n{keys}SELECT sum(n) AS n FROM read_csv('data/late.csv')\n")
}

/// Reason and outcome of every run, the first one first.
fn runs(project: &Sandbox, name: &str) -> Vec<String> {
    let document = project.call(&["history", name, "--json"]).json();
    let runs = document["runs"].as_array().expect("runs are listed").iter();
    let said = |run: &Value| format!("{} {}", run["reason"], run["outcome"]).replace('"', "");
    runs.rev().map(said).collect()
}

fn explained(project: &Sandbox) -> Value {
    project.call(&["explain", "flaky", "--json"]).json()
}

#[test]
fn a_run_waits_for_a_retry_that_is_due_soon() {
    let project = project(&[
        "attempts: 50",
        "delay: 1s",
        "exponential_backoff: false",
        "if_error_matches: late",
    ]);
    let mut run = Going::run(&project);
    run.until(&[("resource_finished", "flaky")]);
    project.write("data/late.csv", "n\n1\n2\n");
    assert_eq!(run.document()["exit_code"], 0);
    let runs = runs(&project, "flaky");
    assert_eq!(runs.first().map(String::as_str), Some("created failed"));
    assert_eq!(runs.last().map(String::as_str), Some("retry done"));
    assert_eq!(
        project.query("SELECT n::INTEGER AS n FROM below")["rows"],
        json!([[3]])
    );
}

#[test]
fn attempts_end_survive_the_process_and_are_forgotten_by_an_edit() {
    let retry = ["delay: 0", "if_error_matches: late"];
    let project = project(&[&["attempts: 2"], &retry[..]].concat());
    project.run(1);
    assert_eq!(
        runs(&project, "flaky"),
        ["retry failed"],
        "what is told again is counted"
    );
    let history = project.call(&["history", "flaky", "--json"]).json();
    assert_eq!(history["runs"][0]["repeats"]["runs"], 2);
    let policy = json!({"attempts": 2, "delay_ms": 0, "longest_delay_ms": 300_000});
    assert_eq!(explained(&project)["resource"]["attempts"], 2);
    assert_eq!(explained(&project)["resource"]["retry"], policy);
    let said = project.call(&["explain", "flaky"]).stdout;
    assert!(said.contains("attempt 2 of 2"), "{said}");
    // Each start looks once: there are no attempts left.
    project.run(1);
    assert_eq!(explained(&project)["resource"]["attempts"], 3);
    project.write(
        "models/flaky.sql",
        &flaky(&[&["attempts: 3"], &retry[..]].concat()),
    );
    project.run(1);
    assert_eq!(explained(&project)["resource"]["attempts"], 3, "counted anew");
    assert_eq!(
        runs(&project, "flaky").last().map(String::as_str),
        Some("retry failed")
    );
}

#[test]
fn another_policy_builds_nothing_and_an_error_that_it_does_not_name_is_final() {
    let project = project(&["attempts: 9", "if_error_matches: nothing like it"]);
    project.run(1);
    assert_eq!(runs(&project, "flaky"), ["created failed"]);
    assert_eq!(explained(&project)["causes"][0]["code"], "failed");
    project.write("data/late.csv", "n\n1\n");
    project.run(0);
    project.write("models/flaky.sql", &flaky(&["attempts: 4", "delay: 1m"]));
    assert_eq!(project.done(0), "");
    let policy = json!({"attempts": 4, "delay_ms": 60_000, "longest_delay_ms": 300_000});
    assert_eq!(explained(&project)["resource"]["retry"], policy);
    project.write("models/flaky.sql", &flaky(&[]));
    assert_eq!(project.done(0), "");
    assert_eq!(explained(&project)["resource"]["retry"], Value::Null);
}

#[test]
fn a_start_tells_when_the_next_attempt_is_due() {
    let project = project(&["attempts: 9", "delay: 10m", "if_error_matches: late"]);
    let start = Going::settled(&project);
    let document = explained(&project);
    assert_eq!(document["causes"][0]["code"], "retrying", "{document}");
    assert!(document["causes"][0]["until"].is_string(), "{document}");
    assert!(
        project
            .call(&["explain", "flaky"])
            .stdout
            .contains("attempt 1 of 9")
    );
    start.stop();
}

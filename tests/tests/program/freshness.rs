//! Rows that are older than they may be: told, and in nobody's way.

use crate::going::Going;
use crate::sandbox::Sandbox;

fn project(freshness: &str) -> Sandbox {
    let model = format!("type: model\nmaterialize: true\nsql: SELECT 1 AS x\nfreshness: {freshness}\n");
    Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/a.yaml", &model),
        ("models/b.sql", "-- @materialize: true\nSELECT x FROM a\n"),
    ])
}

#[test]
fn rows_past_their_age_are_stale_and_block_nobody() {
    let project = project("{error: 0s}");
    let said = project.call(&["run", "--json"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let document = said.json();
    let standing = |at: usize| document["resources"][at]["health"].clone();
    assert_eq!((standing(0), standing(1)), ("stale".into(), "ok".into()));
    assert_eq!(document["summary"]["outcomes"]["done"], 2);
    let found = &document["diagnostics"][0];
    assert_eq!(
        (&found["code"], &found["severity"], &found["line"]),
        (&"stale".into(), &"error".into(), &4.into())
    );
    let status = project.call(&["status"]);
    assert_eq!(status.code, Some(1));
    assert!(status.stdout.contains("stale"), "{}", status.stdout);
    project.edit("models/a.yaml", "error: 0s", "error: 24h");
    assert_eq!(project.done(0), "", "an edit of the bounds builds nothing");
}

#[test]
fn rows_past_their_age_are_explained_and_alerted_on() {
    let project = project("{error: 2s}");
    project.write(
        "alerts/health.yaml",
        "type: alert\ndata: {resource_status: {where_error: true}}\nnotify: {file: outbox}\n",
    );
    project.write(
        "connectors/outbox.yaml",
        "type: connector\ndriver: file\npath: outbox\n",
    );
    let mut start = Going::settled(&project);
    let verdict = || {
        let status = project.call(&["status", "--json"]).json();
        let resources = status["resources"].as_array().expect("a list").clone();
        let mut named = resources.into_iter().filter(|one| one["name"] == "health");
        named.next().expect("the alert")["result"]["verdict"].clone()
    };
    // Nothing is built when rows get too old, and the alert is looked at all the same.
    while verdict() != "fail" {
        start.round();
    }
    start.stop();
    let explained = project.call(&["explain", "a"]);
    assert!(
        explained.stdout.contains("and are stale after 2s"),
        "{}",
        explained.stdout
    );
    let all = project.call(&["explain", "--json"]).json();
    assert_eq!(all["causes"][0]["code"], "stale");
}

#[test]
fn rows_past_the_first_age_are_a_warning() {
    let project = project("{warn: 0s, error: 24h}");
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(
        said.stderr.contains("warning[stale]: the rows of \"a\" came"),
        "{}",
        said.stderr
    );
    assert_eq!(project.call(&["run", "--warn-error"]).code, Some(1));
    assert_eq!(
        project.call(&["run", "--select", "b"]).stderr,
        "",
        "b has no bounds"
    );
}

#[test]
fn a_program_that_goes_on_tells_when_rows_pass_their_age() {
    let project = project("{error: 2s}");
    let mut start = Going::settled(&project);
    let round = start.round();
    assert_eq!(round.told("diagnostic"), ["stale models/a.yaml:4"]);
    assert_eq!(round.exit_code(), Some(1));
    project.write("models/c.sql", "SELECT 1 AS x\n");
    loop {
        let round = start.round();
        for kind in ["fixed", "diagnostic"] {
            assert_eq!(round.told(kind), [""; 0], "they are as old as they were");
        }
        if round.done().split(' ').any(|done| done.starts_with("c:")) {
            break;
        }
    }
    start.stop();
}

#[test]
fn the_next_run_is_that_of_the_schedule_and_not_the_next_bound_of_an_age() {
    let next = |project: &Sandbox| {
        project.run(0);
        let status = project.call(&["status", "--json"]).json();
        status["resources"][0]["next_run_at"].clone()
    };
    let alone = project("{warn: 1h, error: 24h}");
    assert!(next(&alone).is_null(), "nothing is built when rows get old");
    let scheduled = project("{warn: 1h, error: 24h}\nrefresh: {cron: 0 3 1 1 *, run_in_dev: true}");
    let at = next(&scheduled).as_str().expect("a time").to_owned();
    assert!(at.contains("-01-01T03:00:00"), "{at}");
}

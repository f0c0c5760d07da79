//! Tests of models that change while nothing else does: they are run again, and nothing is built.

use serde_json::Value;

use crate::going::Going;
use crate::sandbox::Sandbox;

/// A table that shows by its `build` whether it was built again, with one test, and a reader of it.
fn project() -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/counted.yaml", COUNTED),
        (
            "models/reader.sql",
            "-- @materialize: true\nSELECT x FROM counted\n",
        ),
    ])
}

const COUNTED: &str = "\
type: model
materialize: true
sql: SELECT range AS x, uuid() AS build FROM range(3)
tests:
  - name: small
    assert: x < 3
";

fn build(project: &Sandbox) -> Value {
    project.query("SELECT max(build)::VARCHAR AS build FROM counted")["rows"].clone()
}

#[test]
fn a_test_that_fails_shows_and_vanishes_when_it_is_mended_and_builds_nothing() {
    let project = project();
    let mut start = Going::settled(&project);
    let built = build(&project);
    project.edit("models/counted.yaml", "x < 3", "x < 2");
    let round = start.round();
    assert_eq!(round.done(), "counted:failed reader:skipped");
    assert_eq!(round.told("diagnostic"), ["test-failed models/counted.yaml:1"]);
    assert_eq!(round.exit_code(), Some(1));
    project.edit("models/counted.yaml", "x < 2", "x < 30");
    let round = start.round();
    assert_eq!(round.done(), "", "what only looks is not counted as work");
    assert_eq!(round.told("mended"), ["test-failed models/counted.yaml:1"]);
    assert_eq!(round.exit_code(), Some(0));
    project.edit("models/counted.yaml", "x < 30", "x < 3 AND nothing > 1");
    assert_eq!(start.round().done(), "counted:failed reader:skipped");
    project.edit(
        "models/counted.yaml",
        "tests:\n  - name: small\n    assert: x < 3 AND nothing > 1\n",
        "",
    );
    assert_eq!(start.round().exit_code(), Some(0));
    assert_eq!(build(&project), built, "its rows were good all the while");
    start.stop();
    assert_eq!(project.done(0), "");
}

#[test]
fn tests_that_changed_between_runs_are_run_once() {
    let project = project();
    project.run(0);
    let built = build(&project);
    project.edit("models/counted.yaml", "x < 3", "x < 2");
    for _ in 0..2 {
        project.run(1);
    }
    project.edit("models/counted.yaml", "x < 2", "x < 4");
    let checked = |said: Value| said["resources"][0]["work"].clone();
    let run = || project.call(&["run", "--json"]).json();
    assert_eq!(checked(run()), "checked");
    assert_eq!(checked(run()), "none");
    project.rename("models/counted.yaml", "models/total.yaml");
    project.edit("models/reader.sql", "counted", "total");
    assert_eq!(
        project.done(0),
        "total:renamed",
        "tests look at the model by any name"
    );
    project.edit("models/reader.sql", "total", "counted");
    project.rename("models/total.yaml", "models/counted.yaml");
    assert_eq!(project.done(0), "counted:renamed");
    assert_eq!(build(&project), built);
}

//! Promises of the engine: what is shown of them, and a project on an engine that has none.

use crate::sandbox::{Sandbox, assert_kept, sample};

/// A project on an engine of which every call says that it has no such thing.
fn stub() -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", "display_name: Stub\nolap_connector: stub\n"),
        ("models/a.sql", "SELECT 1 AS x"),
        ("models/b.sql", "SELECT x FROM a"),
    ])
}

#[test]
fn the_promises_of_the_engine_are_shown_without_opening_it() {
    let project = Sandbox::with(&[("watershed.yaml", "display_name: Plain\n")]);
    let said = project.call(&["status", "--engine"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(
        said.stdout.lines().all(|line| line.chars().count() <= 80),
        "{}",
        said.stdout
    );
    assert_kept(&sample("engine.expected.txt"), &said.stdout);
    let document = project.call(&["status", "--engine", "--json"]).json();
    assert_eq!(document["driver"], "duckdb");
    let promises = document["promises"].as_array().unwrap();
    assert!(
        promises.iter().all(|promise| promise["weaker"] == false),
        "{document}"
    );
    assert!(!project.engine_file().exists());
}

#[test]
fn a_project_on_an_engine_that_builds_nothing_is_refused_at_the_key_that_chose_it() {
    let project = stub();
    let said = project.call(&["validate", "--json"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let document = said.json();
    let errors = document["diagnostics"].as_array().unwrap();
    let [error] = errors.as_slice() else {
        panic!("{document}")
    };
    assert_eq!(
        (&error["code"], &error["path"], &error["line"], &error["column"]),
        (
            &"engine-lacks".into(),
            &"watershed.yaml".into(),
            &2.into(),
            &17.into()
        )
    );
}

#[test]
fn a_run_on_an_engine_that_builds_nothing_ends_with_one_error_and_touches_nothing() {
    let project = stub();
    let said = project.call(&["run", "--no-progress"]);
    assert_eq!(said.code, Some(1), "{}{}", said.stdout, said.stderr);
    let errors = said.stderr.matches("error[").count() + said.stdout.matches("error[").count();
    assert_eq!(errors, 1, "{}{}", said.stdout, said.stderr);
    assert!(!project.engine_file().exists());
}

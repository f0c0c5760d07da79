//! Looking at a project that nobody runs leaves it as it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sandbox::Sandbox;

fn project() -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/a.sql", "-- @materialize: true\nSELECT 1 AS n\n"),
        ("models/b.sql", "SELECT n + 1 AS n FROM a\n"),
    ])
}

/// Every file below a folder with its content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder can be listed") {
        let path = entry.expect("a folder's entry can be read").path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.insert(path.clone(), fs::read(path).expect("a file can be read"));
        }
    }
    all
}

#[test]
fn a_look_at_a_folder_that_nobody_owns_writes_nothing() {
    let project = project();
    project.run(0);
    let state = project.path().join(".watershed");
    let before = files(&state);
    for arguments in [
        &["status"][..],
        &["status", "--engine"],
        &["history"],
        &["history", "a"],
        &["show", "a"],
        &["graph"],
        &["explain"],
        &["explain", "b"],
        &["stats"],
        &["cancel", "a"],
        &["query", "FROM b"],
    ] {
        let said = project.call(arguments);
        assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.stderr);
        let changed: Vec<PathBuf> = files(&state)
            .into_iter()
            .filter(|(path, content)| before.get(path) != Some(content))
            .map(|(path, _)| path)
            .collect();
        assert_eq!(changed, [""; 0].map(PathBuf::from), "{arguments:?} wrote");
    }
}

#[test]
fn the_history_keeps_what_is_no_longer_there() {
    let project = project();
    project.run(0);
    project.remove("models/b.sql");
    project.run(0);
    for arguments in [&["history", "b", "--json"][..], &["history", "model/B", "--json"]] {
        let said = project.call(arguments);
        assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.stderr);
        let works: Vec<String> = said.json()["runs"]
            .as_array()
            .expect("runs are listed")
            .iter()
            .map(|run| run["work"].as_str().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(works, ["dropped", "built"], "the newest comes first");
    }
    assert_eq!(project.call(&["history", "never"]).code, Some(2));
}

#[test]
fn runs_have_the_same_name_in_status_and_history() {
    let project = project();
    project.run(0);
    let status = project.call(&["status", "a", "--json"]).json();
    let history = project.call(&["history", "a", "--json"]).json();
    assert_eq!(status["resources"][0]["last_run"]["id"], history["runs"][0]["id"]);
}

#[test]
fn a_rename_is_told_in_one_line() {
    let project = project();
    project.run(0);
    project.rename("models/a.sql", "models/c.sql");
    project.write("models/b.sql", "SELECT n + 1 AS n FROM c\n");
    let said = project.call(&["run"]);
    let lines: Vec<&str> = said
        .stdout
        .lines()
        .filter(|line| line.contains("  renamed "))
        .collect();
    assert_eq!(lines.len(), 1, "{}", said.stdout);
    assert!(lines[0].contains("a → c"), "{}", said.stdout);
}

#[test]
fn a_variable_that_is_not_set_is_told_once() {
    let project = project();
    project.write("models/b.sql", "SELECT {{ .env.factor }} * n AS n FROM a\n");
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1));
    assert_eq!(
        said.stderr.matches("\"factor\" is not set").count(),
        1,
        "{}",
        said.stderr
    );
}

#[test]
fn rows_of_what_has_none_are_a_mistake_wherever_rows_are_asked_for() {
    let project = project();
    let file = project.path().join("b.csv");
    let file = file.to_str().expect("the path is text");
    for arguments in [
        &["show", "b", "--format", "csv"][..],
        &["show", "b", "--format", "jsonl"],
        &["show", "b", "--out", file],
    ] {
        let said = project.call(arguments);
        assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.stderr);
        assert!(
            !said.stdout.contains("watershed.show"),
            "{arguments:?}: {}",
            said.stdout
        );
        assert!(
            said.stderr.contains("`b` has no rows to write"),
            "{arguments:?}: {}",
            said.stderr
        );
    }
    project.run(0);
    assert_eq!(project.call(&["show", "b", "--format", "csv"]).stdout, "n\n2\n");
}

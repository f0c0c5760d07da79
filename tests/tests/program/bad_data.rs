//! Rows of data that can't be read: told in one line, at their own place.

use crate::sandbox::Sandbox;

/// A source whose last row does not fit the type that was found in the rows before it.
fn late() -> Sandbox {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "sources/late.yaml",
            "type: source\nconnector: local_file\npath: data/late.csv\n",
        ),
    ]);
    let rows: String = (0..30_000).map(|n| format!("{n},a{n}\n")).collect();
    project.write("data/late.csv", &format!("n,s\n{rows}oops,b\n"));
    project
}

#[test]
fn a_row_that_can_not_be_read_is_told_with_its_reason_file_and_line() {
    let project = late();
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1));
    let reason = "Could not convert string \"oops\" to 'BIGINT' in column \"n\"";
    assert!(said.stdout.contains(reason), "{}", said.stdout);
    assert!(said.stderr.contains("--> data/late.csv:30002"), "{}", said.stderr);
    assert!(
        said.stderr.lines().all(|line| line.len() < 200),
        "{}",
        said.stderr
    );
    assert!(!said.stderr.contains("Auto-Detected"), "{}", said.stderr);
    let document = project.call(&["status", "--json"]).json();
    let error = &document["resources"][0]["error"];
    assert_eq!(error["message"], reason);
    assert_eq!(error["at"]["path"], "data/late.csv");
    assert_eq!(error["at"]["line"], 30_002);
    let all = project.call(&["run", "-v"]);
    assert!(all.stderr.contains("Auto-Detected"), "{}", all.stderr);
}

#[test]
fn the_options_that_the_hint_names_help_and_are_no_warning() {
    for option in ["types: {n: VARCHAR}", "ignore_errors: true"] {
        let project = late();
        let source = format!("type: source\nconnector: local_file\npath: data/late.csv\n{option}\n");
        project.write("sources/late.yaml", &source);
        let said = project.call(&["run"]);
        assert_eq!(
            (said.code, said.stderr.as_str()),
            (Some(0), ""),
            "{option}: {}",
            said.stdout
        );
    }
}

#[test]
fn a_query_that_meets_such_a_row_says_where_it_is() {
    let project = late();
    project.write("models/all.sql", "SELECT * FROM read_csv('data/late.csv')\n");
    let said = project.call(&["run", "--json"]);
    assert_eq!(said.code, Some(1));
    let said = project.call(&["query", "SELECT count(n) FROM \"all\""]);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert!(said.stderr.contains("data/late.csv:30002"), "{}", said.stderr);
}

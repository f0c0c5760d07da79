//! Commands that can't be carried out: what a person reads, and the document that a program reads.

use serde_json::json;

use crate::sandbox::Sandbox;

fn project() -> Sandbox {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "models/numbers.sql",
            "-- @materialize: true\nSELECT * FROM range(3) AS numbers(number)\n",
        ),
    ]);
    project.run(0);
    project
}

#[test]
fn each_mistake_is_a_document_where_json_is_asked_for() {
    let project = project();
    for (arguments, code, exit) in [
        (&["nosuch", "--json"][..], "usage", 2),
        (&["run", "--json", "--jobs", "x"], "usage", 2),
        (&["run", "--json", "--target", "prod"], "usage", 2),
        (&["show", "--json"], "usage", 2),
        (&["show", "nosuch", "--json"], "usage", 2),
        (&["status", "nosuch", "--format", "json"], "usage", 2),
        (&["history", "nosuch", "--format=jsonl"], "usage", 2),
        (&["graph", "--format", "jsonl"], "usage", 2),
        (&["run", "-C", "/nowhere", "--json"], "usage", 2),
        (&["init", "elsewhere", "--json"], "usage", 2),
        (
            &["query", "--json", "SELECT nope FROM numbers"],
            "unknown-column",
            1,
        ),
        (&["query", "--json", "SELECT 1 FROM numbrs"], "unknown-table", 1),
        (&["query", "--json", "SELEC 1"], "sql-syntax", 1),
        (&["query", "--json", "DROP TABLE numbers"], "project", 1),
    ] {
        let said = project.call(arguments);
        assert_eq!(said.code, Some(exit), "{arguments:?}: {}", said.stderr);
        let document = said.json();
        assert_eq!(document["schema"], "watershed.error/1", "{arguments:?}");
        assert_eq!(document["exit_code"], exit, "{arguments:?}");
        assert_eq!(document["error"]["code"], code, "{arguments:?}: {document}");
        let message = document["error"]["message"].as_str().unwrap_or_default();
        assert!(!message.is_empty() && !message.contains('\n'), "{document}");
        assert!(said.stderr.contains("error"), "{arguments:?}: {}", said.stderr);
    }
    // What comes behind `--` is no option.
    let text = project.call(&["query", "--", "--json"]);
    assert!(!text.stdout.contains("watershed.error"), "{}", text.stdout);
}

#[test]
fn a_mistake_in_a_query_is_drawn_at_its_place() {
    let project = project();
    let said = project.call(&["query", "SELECT 1\nFROM numbrs"]);
    let drawn = "error[unknown-table]: Table with name numbrs does not exist!\n --> query:2:6\n";
    assert!(said.stderr.starts_with(drawn), "{}", said.stderr);
    assert!(said.stderr.contains("FROM numbrs\n  |      ^"), "{}", said.stderr);
    assert!(
        said.stderr.contains("Did you mean \"numbers\"?"),
        "{}",
        said.stderr
    );
    project.write("ask.sql", "SELECT number,\n  nope\nFROM numbers\n");
    let said = project.call(&["query", "-f", "ask.sql", "--json"]);
    let at = json!({"path": "ask.sql", "line": 2, "column": 3});
    assert_eq!(said.json()["error"]["at"], at, "{}", said.stderr);
    let said = project.call(&["query", "selec 1"]);
    assert!(said.stderr.contains("syntax error at or near"), "{}", said.stderr);
    let said = project.call(&["query", "COPY numbers TO 'x.csv'"]);
    assert!(
        said.stderr.contains("only read-only statements can be run here"),
        "{}",
        said.stderr
    );
    assert!(!project.path().join("x.csv").exists());
}

#[test]
fn rows_name_their_schema() {
    let project = project();
    for arguments in [
        &["query", "--json", "FROM numbers"][..],
        &["show", "numbers", "--json"],
    ] {
        let document = project.call(arguments).json();
        assert_eq!(document["schema"], "watershed.query/1", "{arguments:?}");
    }
}

#[test]
fn a_missing_name_is_answered_with_the_names_to_choose_from() {
    let project = project();
    for command in ["show", "logs", "refresh", "reconcile", "pause", "compile"] {
        let said = project.call(&[command]);
        assert_eq!(said.code, Some(2));
        assert!(
            said.stderr.contains("the name of a resource is missing"),
            "{}",
            said.stderr
        );
        assert!(said.stderr.contains("numbers"), "{}", said.stderr);
    }
    let said = project.call(&["run", "numbers"]);
    assert!(
        said.stderr.contains("`watershed reconcile numbers`"),
        "{}",
        said.stderr
    );
}

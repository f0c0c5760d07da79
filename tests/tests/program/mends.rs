//! Mistakes are placed, the rest is built, and after mending only the needed ones run.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// Two good models, and room for mistakes beside them.
const GOOD: &[(&str, &str)] = &[
    ("watershed.yaml", ""),
    ("data/numbers.csv", "n\n1\n2\n3\n"),
    (
        "sources/numbers.yaml",
        "type: source\nconnector: local_file\npath: data/numbers.csv\n",
    ),
    (
        "models/doubled.sql",
        "-- @materialize: true\nSELECT 2 * n AS n FROM numbers\n",
    ),
];

#[test]
fn a_syntax_error_is_placed_and_mended() {
    let project = Sandbox::with(GOOD);
    project.write("models/wrong.sql", "SELECT n\nFORM numbers");
    assert_eq!(project.done(1), "doubled:built numbers:built");
    let place = place_of_the_only_error(&project, "models/wrong.sql");
    assert_eq!(place["line"], json!(2), "{place}");
    project.write("models/wrong.sql", "SELECT n\nFROM numbers");
    assert_eq!(project.done(0), "wrong:built");
}

#[test]
fn an_unknown_column_is_placed_and_mended() {
    let project = Sandbox::with(GOOD);
    project.write("models/wrong.sql", "SELECT n,\n  nn\nFROM numbers");
    project.write("models/below.sql", "SELECT * FROM wrong");
    assert_eq!(project.done(1), "doubled:built numbers:built");
    let document = project.call(&["status", "--json"]).json();
    let wrong = resource(&document, "wrong");
    assert_eq!(
        wrong["error"]["at"],
        json!({"path": "models/wrong.sql", "line": 2, "column": 3}),
        "{wrong}"
    );
    let below = resource(&document, "below");
    assert_eq!(
        (&below["health"], &below["last_run"]["outcome"]),
        (&json!("blocked"), &json!("skipped")),
        "{below}"
    );
    assert!(below["blocked_by"].to_string().contains("wrong"), "{below}");
    project.write("models/wrong.sql", "SELECT n,\n  n AS nn\nFROM numbers");
    assert_eq!(project.done(0), "below:built wrong:built");
}

#[test]
fn a_cycle_is_spelled_out_on_each_member_and_mended() {
    let project = Sandbox::with(GOOD);
    project.write("models/a.sql", "SELECT * FROM b");
    project.write("models/b.sql", "SELECT * FROM c");
    project.write("models/c.sql", "SELECT * FROM a");
    assert_eq!(project.done(1), "doubled:built numbers:built");
    let document = project.call(&["status", "--json"]).json();
    for name in ["a", "b", "c"] {
        let message = resource(&document, name)["error"]["message"].to_string();
        assert!(
            ["a", "b", "c"].iter().all(|member| message.contains(member)),
            "{name}: {message}"
        );
    }
    project.write("models/c.sql", "SELECT * FROM doubled");
    assert_eq!(project.done(0), "a:built b:built c:built");
}

#[test]
fn of_two_models_of_one_name_the_first_path_counts_until_it_goes() {
    let project = Sandbox::with(GOOD);
    project.write("models/one/same.sql", "SELECT 'one' AS which");
    project.write("models/two/same.sql", "SELECT 'two' AS which");
    assert_eq!(project.done(1), "doubled:built numbers:built same:built");
    assert_eq!(project.query("SELECT which FROM same")["rows"], json!([["one"]]));
    place_of_the_only_error(&project, "models/two/same.sql");
    project.remove("models/one/same.sql");
    assert_eq!(project.done(0), "same:built");
    assert_eq!(project.query("SELECT which FROM same")["rows"], json!([["two"]]));
}

#[test]
fn a_missing_file_is_named_and_the_last_good_table_stays() {
    let project = Sandbox::with(GOOD);
    project.run(0);
    project.remove("data/numbers.csv");
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("data/numbers.csv"), "{}", said.stderr);
    assert_eq!(
        project.query("SELECT count(*)::INTEGER FROM doubled")["rows"],
        json!([[3]])
    );
    project.write("data/numbers.csv", "n\n1\n2\n3\n");
    let done = project.run(0);
    assert!(
        !done.contains_key("doubled") || done.contains_key("numbers"),
        "{done:?}"
    );
    assert_eq!(project.done(0), "");
}

/// Returns the place of the only error that `validate` finds.
fn place_of_the_only_error(project: &Sandbox, path: &str) -> Value {
    let said = project.call(&["validate", "--json"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let document = said.json();
    let diagnostics = document["diagnostics"]
        .as_array()
        .expect("the document lists diagnostics");
    let errors: Vec<_> = diagnostics
        .iter()
        .filter(|found| found["severity"] == "error")
        .collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0]["path"], json!(path));
    errors[0].clone()
}

fn resource<'a>(document: &'a Value, name: &str) -> &'a Value {
    let resources = document["resources"].as_array().into_iter().flatten();
    let found = resources.clone().find(|resource| resource["name"] == name);
    found.unwrap_or_else(|| panic!("no `{name}` in {document}"))
}

#[test]
fn a_fixed_resource_is_counted_once() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/a.sql", "SELECT 1 AS n\n"),
        ("models/b.sql", "SELECT 2 AS n\n"),
        ("models/c.sql", "SELECT 3 AS n\n"),
    ]);
    project.run(0);
    project.edit("models/a.sql", "1 AS n", "nope AS n");
    project.run(1);
    project.edit("models/a.sql", "nope AS n", "1 AS n");
    let said = project.call(&["run"]);
    assert!(
        said.stdout.contains(": 3 resources, 1 fixed, 2 unchanged ("),
        "{}",
        said.stdout
    );
}

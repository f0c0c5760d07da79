//! Rows that failed tests, kept for people.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

const CHECKED: &str = "\
type: model
materialize: true
sql: SELECT range AS x, 'it''s' AS y FROM range(5)
tests:
  - {name: small, assert: x < 3, store_failures: true}
  - {name: few, assert: x < 1, severity: warn, store_failures: 2}
";

fn kept(sandbox: &Sandbox) -> Value {
    let sql = "SELECT table_name, test, number, data FROM _watershed.failures ORDER BY ALL";
    sandbox.query(sql)["rows"].clone()
}

fn row(test: &str, number: u64, x: u64) -> Value {
    json!(["checked", test, number, format!("{{\"x\":{x},\"y\":\"it's\"}}")])
}

#[test]
fn failing_rows_are_kept_although_the_build_is_undone_until_the_tests_hold() {
    let sandbox = Sandbox::with(&[("watershed.yaml", ""), ("models/checked.yaml", CHECKED)]);
    let said = sandbox.call(&["run"]);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert!(said.stderr.contains("_watershed.failures"), "{}", said.stderr);
    let small = [row("small", 1, 3), row("small", 2, 4)];
    let few = [row("few", 1, 1), row("few", 2, 2)];
    assert_eq!(kept(&sandbox), json!([few[0], few[1], small[0], small[1]]));
    // What the tests warn of is kept beside a build that stands.
    sandbox.edit("models/checked.yaml", "range(5)", "range(3)");
    sandbox.run(0);
    assert_eq!(kept(&sandbox), json!(few));
    assert_eq!(sandbox.done(0), "");
    // Tests alone: nothing is built.
    sandbox.edit("models/checked.yaml", "x < 1", "x < 3");
    sandbox.run(0);
    assert_eq!(kept(&sandbox), json!([]));
    sandbox.edit(
        "models/checked.yaml",
        "name: few, assert: x < 3",
        "name: few, assert: x < 2",
    );
    sandbox.run(0);
    assert_eq!(kept(&sandbox), json!([row("few", 1, 2)]));
    assert_eq!(sandbox.call(&["gc"]).code, Some(0));
    assert_eq!(sandbox.call(&["doctor"]).code, Some(0));
    assert_eq!(kept(&sandbox), json!([row("few", 1, 2)]));
    sandbox.remove("models/checked.yaml");
    sandbox.run(0);
    assert_eq!(kept(&sandbox), json!([]));
}

#[test]
fn rows_of_a_model_that_never_stood_go_with_it() {
    let sandbox = Sandbox::with(&[("watershed.yaml", ""), ("models/checked.yaml", CHECKED)]);
    sandbox.run(1);
    assert_ne!(kept(&sandbox), json!([]));
    sandbox.remove("models/checked.yaml");
    sandbox.run(0);
    assert_eq!(kept(&sandbox), json!([]));
}

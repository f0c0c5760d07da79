//! Edits of models that read something that has failed.

use serde_json::json;

use crate::going::Going;
use crate::sandbox::Sandbox;

const PROJECT: &[(&str, &str)] = &[
    ("watershed.yaml", ""),
    ("models/orders.sql", "-- @materialize: true\nSELECT 1 AS x\n"),
    (
        "models/daily.sql",
        "-- @materialize: true\nSELECT x FROM orders\n",
    ),
    (
        "models/total.sql",
        "-- @materialize: true\nSELECT sum(x) AS x FROM daily\n",
    ),
];

#[test]
fn an_edit_below_a_failure_is_built_from_its_last_good_rows_with_a_warning() {
    let project = Sandbox::with(PROJECT);
    project.run(0);
    project.edit("models/orders.sql", "SELECT 1", "SELECT error('no')");
    assert_eq!(project.done(1), "");
    project.edit("models/daily.sql", "SELECT x", "SELECT x + 10 AS x");
    let planned = project.call(&["plan"]);
    assert_eq!(planned.code, Some(0), "{}", planned.stderr);
    let said = project.call(&["run", "--json"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let document = said.json();
    let resources = document["resources"].as_array().expect("a list");
    let named = |name: &str| {
        resources
            .iter()
            .find(|one| one["name"] == name)
            .expect("it is there")
    };
    let daily = named("daily");
    assert_eq!(
        (&daily["work"], &daily["health"], &daily["blocked_by"][0]["name"]),
        (&json!("built"), &json!("blocked"), &json!("orders"))
    );
    assert_eq!(daily["warnings"][0]["code"], "stale-input");
    assert_eq!(named("total")["work"], "none");
    assert_eq!(project.query("SELECT x FROM daily")["rows"], json!([[11]]));
    assert_eq!(project.query("SELECT x::INT FROM total")["rows"], json!([[1]]));
    // Nothing is built twice, and the warning stays as long as the cause.
    assert_eq!(project.done(1), "");
    let status = project.call(&["status", "--json"]).json();
    assert!(status.to_string().contains("stale-input"), "{status}");
    project.edit("models/orders.sql", "SELECT error('no')", "SELECT 2");
    assert_eq!(project.done(0), "daily:built orders:built total:built");
    assert_eq!(project.query("SELECT x::INT FROM total")["rows"], json!([[12]]));
    let status = project.call(&["status", "--json"]).json();
    assert!(!status.to_string().contains("stale-input"), "{status}");
}

#[test]
fn a_program_that_goes_on_builds_such_an_edit_too() {
    let project = Sandbox::with(PROJECT);
    let mut start = Going::settled(&project);
    project.edit("models/orders.sql", "SELECT 1", "SELECT error('no')");
    assert_eq!(start.round().done(), "daily:skipped orders:failed total:skipped");
    project.edit("models/daily.sql", "SELECT x", "SELECT x + 10 AS x");
    let round = start.round();
    assert_eq!(round.done(), "daily:built total:skipped");
    assert!(
        round
            .told("diagnostic")
            .iter()
            .any(|it| it.contains("stale-input"))
    );
    start.stop();
}

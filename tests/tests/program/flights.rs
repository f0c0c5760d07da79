//! The flights project: right answers, and only what changed is built.

use std::fs;

use serde_json::Value;

use crate::sandbox::{Sandbox, sample};

/// The resources of the project: five sources and twenty-two models.
pub(crate) const RESOURCES: usize = 27;

#[test]
fn the_answers_are_those_that_the_engine_alone_gives() {
    let project = Sandbox::from_project("flights");
    assert_eq!(project.run(0).len(), RESOURCES);
    has_the_answers(&project);
}

/// Asserts that a built project gives the answers that are kept.
pub(crate) fn has_the_answers(project: &Sandbox) {
    let kept = fs::read_to_string(sample("flights.answers.json")).expect("the answers are kept");
    let kept: Value = serde_json::from_str(&kept).expect("the answers are JSON");
    for (model, expected) in kept.as_object().expect("one entry a model") {
        let actual = project.query(&format!("SELECT * FROM {model} ORDER BY ALL"));
        let names: Vec<_> = actual["columns"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|c| c["name"].clone())
            .collect();
        assert_eq!(Value::from(names), expected["columns"], "{model}");
        assert_eq!(plain(&actual["rows"]), plain(&expected["rows"]), "{model}");
    }
}

#[test]
fn only_what_an_edit_touches_is_built() {
    let project = Sandbox::from_project("flights");
    project.run(0);
    assert_eq!(names(&project.run(0)), "", "nothing changed");

    project.edit(
        "models/3_answers/delays_by_hour.sql",
        "-- How do",
        "-- And how do",
    );
    assert_eq!(names(&project.run(0)), "", "a comment is no change");

    project.edit("models/3_answers/delays_by_hour.sql", "0.9", "0.95");
    assert_eq!(
        names(&project.run(0)),
        "best_hours delays_by_hour",
        "it and the tables on it"
    );

    let csv = project.path().join("data/airlines.csv");
    let text = fs::read_to_string(&csv).expect("the file can be read");
    fs::write(&csv, &text).expect("the file can be written");
    assert_eq!(names(&project.run(0)), "", "a file that was only touched");

    fs::write(&csv, text.replace("Envoy Air", "Envoy")).expect("the file can be written");
    assert_eq!(
        names(&project.run(0)),
        "airlines carrier_scorecard delays_by_carrier record_delays",
        "a file's content"
    );
}

#[test]
fn a_month_is_built_alone_and_answers_stand_in_a_file() {
    let project = Sandbox::from_project("flights");
    project.run(0);
    let table = fs::read_to_string(project.path().join("exports/carrier_scorecard.csv"));
    let table = table.expect("the file was written");
    assert!(table.starts_with("position,airline,scheduled"), "{table}");
    assert_eq!(table.lines().count(), 17, "{table}");
    let said = project.call(&["refresh", "months", "--partition", "2013-02-01", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let rows = project.query("SELECT count(*) AS rows, sum(scheduled) AS scheduled FROM months");
    assert_eq!(plain(&rows["rows"]), [["36", "336776"]]);
    let latest = project.query("SELECT minutes_late FROM record_delays ORDER BY ALL DESC LIMIT 1");
    assert_eq!(plain(&latest["rows"]), [["1301"]]);
}

#[test]
fn a_variable_touches_only_the_model_that_reads_it() {
    let project = Sandbox::from_project("flights");
    project.run(0);
    project.edit(".env", "3000", "9000");
    assert_eq!(names(&project.run(0)), "late_routes");
    let rows = project.query("SELECT origin, destination FROM late_routes ORDER BY ALL");
    assert_eq!(rows["rows"], serde_json::json!([["JFK", "LAX"], ["LGA", "ATL"]]));
}

#[test]
fn a_compile_of_the_project_has_nothing_to_say() {
    let project = Sandbox::from_project("flights");
    let said = project.call(&["validate", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(said.json()["diagnostics"], serde_json::json!([]));
}

/// The names of what was done something for, views that were made again left in.
fn names(done: &std::collections::BTreeMap<String, String>) -> String {
    done.keys().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// Rows with each number as a float, since documents write decimals and large integers as text.
fn plain(rows: &Value) -> Vec<Vec<String>> {
    let cell = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.parse::<f64>().map_or(text, |number| number.to_string())
    };
    let row = |row: &Value| row.as_array().into_iter().flatten().map(cell).collect();
    rows.as_array().into_iter().flatten().map(row).collect()
}

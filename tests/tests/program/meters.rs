//! The meters project: a day is a partition, and more days cost what they are.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// Everything that its models hold.
fn rows(project: &Sandbox) -> Vec<Value> {
    let rows = |sql: &str| project.query(sql)["rows"].clone();
    vec![
        rows("SELECT meter, read_at, kwh FROM readings ORDER BY ALL"),
        rows("SELECT * FROM consumption ORDER BY ALL"),
        rows("SELECT * FROM peaks ORDER BY ALL"),
    ]
}

/// The time at which each partition was built, by its day.
fn built(project: &Sandbox) -> BTreeMap<String, String> {
    let document = project
        .call(&["partitions", "readings", "--limit", "100", "--json"])
        .json();
    let partitions = document["partitions"].as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    partitions
        .map(|one| (text(&one["data"]["day"]), text(&one["ran_at"])))
        .collect()
}

fn with_days(project: &Sandbox, before: u32, now: u32) {
    let said = |days: u32| format!("days: \"{days}\"");
    project.edit("watershed.yaml", &said(before), &said(now));
}

#[test]
fn more_days_build_their_partitions_alone_and_come_to_what_a_fresh_build_has() {
    let project = Sandbox::from_project("meters");
    let said = project.call(&["validate", "--json"]).json();
    assert_eq!(said["diagnostics"], json!([]));
    project.run(0);
    assert_eq!(project.done(0), "");
    let before = built(&project);
    assert_eq!(before.len(), 31);
    with_days(&project, 31, 33);
    assert_eq!(
        project.done(0),
        "consumption:built days:built peaks:built readings:built"
    );
    let now = built(&project);
    let again: Vec<&String> = now
        .iter()
        .filter(|(day, at)| before.get(*day) != Some(at))
        .map(|(day, _)| day)
        .collect();
    assert_eq!(again, ["2026-02-01", "2026-02-02"]);
    let fresh = Sandbox::from_project("meters");
    with_days(&fresh, 31, 33);
    fresh.run(0);
    assert_eq!(rows(&project), rows(&fresh));
}

#[test]
fn a_day_that_is_asked_for_is_built_again_and_nothing_else_is() {
    let project = Sandbox::from_project("meters");
    project.run(0);
    let (before, held) = (built(&project), rows(&project));
    let said = project.call(&["refresh", "readings", "--partition", "2026-01-05"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let now = built(&project);
    let again = now.iter().filter(|(day, at)| before.get(*day) != Some(at));
    assert_eq!(again.map(|(day, _)| day).collect::<Vec<_>>(), ["2026-01-05"]);
    assert_eq!(rows(&project), held);
}

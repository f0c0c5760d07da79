//! Projects that move between the engine's file and a lake, and back.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::lake_engine::{IN_A_FILE, has_extensions};
use crate::sandbox::Sandbox;

/// Work of each resource in a plan or a run, without those for which nothing is to be done.
type Works = BTreeMap<String, String>;

fn project() -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        ("data/events.csv", "id\n1\n2\n3\n"),
        (
            "sources/events.yaml",
            "type: source\nconnector: local_file\npath: data/events.csv\n",
        ),
        (
            "models/added.yaml",
            "type: model\nincremental: true\nsql: SELECT id FROM events\n",
        ),
        (
            "models/patched.yaml",
            "type: model\nincremental: true\nchange_mode: patch\nsql: SELECT id FROM events\n",
        ),
        (
            "models/loose.yaml",
            "type: model\nincremental: true\nprotect: false\nsql: SELECT id FROM events\n",
        ),
        (
            "models/plain.sql",
            "-- @materialize: true\nSELECT count(*) AS n FROM events",
        ),
        (
            "models/total.sql",
            "-- @materialize: true\nSELECT count(*) AS n FROM added",
        ),
    ])
    .extended()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Work that a plan foresees, and failures that are no other's.
fn planned(project: &Sandbox) -> (Works, Works) {
    let plan = project.call(&["plan", "--json"]).json();
    let steps = plan["steps"].as_array().expect("steps are listed").iter();
    let steps = steps.filter(|step| !["none", "check"].contains(&text(&step["work"]).as_str()));
    let (mut done, mut failed) = (Works::new(), Works::new());
    for step in steps {
        let (name, work) = (text(&step["name"]), text(&step["work"]));
        match step["error"]["code"].as_str() {
            Some("ref-failed") => None,
            Some(code) => failed.insert(name, code.to_owned()),
            None => done.insert(name, work),
        };
        let says_why = text(&step["reason"]).contains("in another place than before");
        assert!(
            says_why || !step["error"].is_null() || step["reason"].is_null(),
            "{step}"
        );
    }
    (done, failed)
}

/// Work of a run, and failures that are no other's.
fn ran(project: &Sandbox) -> (Works, Works) {
    let run = project.call(&["run", "--json"]).json();
    let resources = run["resources"].as_array().expect("resources are listed");
    let failed = resources.iter().filter(|it| !it["error"].is_null());
    let failed = failed.map(|it| (text(&it["name"]), text(&it["error"]["code"])));
    let done = resources
        .iter()
        .filter(|it| it["error"].is_null() && it["work"] == "built");
    let done = done.map(|it| (text(&it["name"]), "build".to_owned()));
    (done.collect(), failed.collect())
}

#[test]
fn e5_rows_that_can_not_be_made_again_are_held_where_the_plan_says_so() {
    if !has_extensions() {
        return;
    }
    let project = project();
    project.run(0);
    project.write("data/events.csv", "id\n9\n");
    project.run(0);
    assert_eq!(project.query("SELECT count(*) FROM added")["rows"], json!([[4]]));

    project.write("connectors/lake.yaml", IN_A_FILE);
    project.write("watershed.yaml", "olap_connector: lake\n");
    let forecast = planned(&project);
    let (done, failed) = &forecast;
    assert_eq!(
        done.keys().collect::<Vec<_>>(),
        ["events", "loose", "plain"],
        "{done:?}"
    );
    let held = |name: &str| failed.get(name).is_some_and(|code| code == "held-change");
    assert!(held("added") && held("patched"), "{failed:?}");
    let said = project.call(&["plan"]);
    assert!(
        said.stdout.contains("in another place than before"),
        "{}",
        said.stdout
    );
    assert_eq!(ran(&project), forecast, "a run does what the plan says");
    let (done, again) = ran(&project);
    assert!(done.is_empty() && again == forecast.1, "{done:?} {again:?}");
    let said = project.call(&["run"]);
    assert!(
        said.stderr.contains("stays in the place of before"),
        "{}",
        said.stderr
    );
    assert!(said.stderr.contains("watershed approve added"), "{}", said.stderr);

    let approved = project.call(&["approve", "added", "patched"]);
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    project.run(0);
    assert_eq!(
        project.query("SELECT n FROM total")["rows"],
        json!([[1]]),
        "from what can be read now"
    );
    assert!(project.run(0).is_empty(), "nothing is left to do");

    project.write("watershed.yaml", "");
    let forecast = planned(&project);
    assert_eq!(ran(&project), forecast, "the same holds for the way back");
    assert_eq!(
        project.query("SELECT count(*) FROM added")["rows"],
        json!([[4]]),
        "what was left there is there"
    );
    assert!(project.run(0).is_empty(), "nothing is left to do");
}

#[test]
fn a_connector_that_becomes_a_lake_under_its_name_is_another_place() {
    if !has_extensions() {
        return;
    }
    let project = project();
    project.run(0);
    project.write("connectors/duckdb.yaml", IN_A_FILE);
    let forecast = planned(&project);
    assert!(!forecast.0.is_empty(), "it is said before it happens");
    assert_eq!(ran(&project), forecast);
}

/// The page on lakes says how rows are brought over.
#[test]
fn rows_of_before_are_brought_over_by_a_source() {
    if !has_extensions() {
        return;
    }
    let project = project();
    project.run(0);
    project.write("data/events.csv", "id\n9\n");
    project.run(0);
    project.write("connectors/lake.yaml", IN_A_FILE);
    project.write("watershed.yaml", "olap_connector: lake\n");
    project.run(1);
    project.write(
        "connectors/before.yaml",
        "type: connector\ndriver: duckdb\npath: .watershed/dev/main.duckdb\n",
    );
    project.write(
        "sources/added_before.yaml",
        "type: source\nconnector: before\ntable: added\n",
    );
    project.write(
        "models/added.yaml",
        "type: model\nincremental: true\n\
         sql: SELECT id FROM {{ if incremental }} events {{ else }} added_before {{ end }}\n",
    );
    project.run(1);
    let approved = project.call(&["approve", "added", "patched"]);
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    assert_eq!(
        project.query("SELECT n FROM total")["rows"],
        json!([[4]]),
        "and what reads it goes on"
    );
}

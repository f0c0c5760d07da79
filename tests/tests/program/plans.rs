//! `plan` says what `run` then does, and touches nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::sandbox::{Sandbox, files_below};
use crate::world::ProjectModel;

/// The changes of a history.
const CHANGES: usize = 10;
/// The seed unless `WATERSHED_SEED` says otherwise.
const SEED: u64 = 5;

const PROJECT: &[(&str, &str)] = &[
    ("watershed.yaml", ""),
    ("data/a.csv", "x\n1\n2\n"),
    (
        "sources/a.yaml",
        "type: source\nconnector: local_file\npath: data/a.csv\n",
    ),
    ("models/b.sql", "-- @materialize: true\nSELECT x\nFROM a\n"),
    ("models/c.sql", "SELECT sum(x) AS x FROM b\n"),
    ("models/other.sql", "-- @materialize: true\nSELECT 1 AS x\n"),
];

#[test]
fn a_plan_tells_of_readers_whose_input_goes_or_gets_another_name() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    sandbox.rename("models/b.sql", "models/renamed.sql");
    let said = sandbox.call(&["plan", "--json"]);
    let failure = |plan: &Value| {
        let steps = plan["steps"].as_array().expect("a list").iter();
        let failed = steps.filter(|step| !step["error"].is_null());
        let told = |step: &Value| format!("{} {}", step["name"], step["error"]["message"]);
        failed.map(told).collect::<Vec<_>>().join("; ")
    };
    let told = failure(&said.json());
    assert_eq!(
        told,
        r#""c" "its query reads \"b\", which is called \"renamed\" now""#
    );
    // And so it is.
    let run = sandbox.call(&["run"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("unknown-table"), "{}", run.stderr);
    assert!(!run.stderr.contains("last good build stays"), "{}", run.stderr);
    sandbox.edit("models/c.sql", "FROM b", "FROM renamed");
    sandbox.run(0);
    sandbox.remove("models/renamed.sql");
    let told = failure(&sandbox.call(&["plan", "--json"]).json());
    assert_eq!(
        told,
        r#""c" "its query reads \"renamed\", which no file declares any more""#
    );
}

#[test]
fn a_plan_names_each_step_with_its_reason_and_touches_nothing() {
    let sandbox = Sandbox::with(PROJECT);
    let first = sandbox.call(&["plan"]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(first.stdout.contains("4 to build"), "{}", first.stdout);
    sandbox.run(0);
    let idle = sandbox.call(&["plan", "--exit-code"]);
    assert_eq!(
        (idle.code, idle.stdout.as_str()),
        (Some(0), "project: 4 resources, nothing to do\n")
    );
    sandbox.edit("models/b.sql", "FROM a", "FROM a WHERE x > 1");
    sandbox.rename("models/c.sql", "models/d.sql");
    sandbox.remove("models/other.sql");
    let before = contents(&sandbox);
    let said = sandbox.call(&["plan"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let shown: Vec<&str> = said
        .stdout
        .lines()
        .map(|line| line.split("  ~").next().unwrap_or(line).trim_end())
        .collect();
    assert_eq!(
        shown,
        [
            "  build  model  b      its definition changed",
            "      - FROM a",
            "      + FROM a WHERE x > 1",
            "  build  model  c → d  `b` is built, and may have other columns",
            "  drop   model  other  its file is gone; the trash keeps its rows for 7 days",
            "",
            shown[6],
        ]
    );
    assert!(
        shown[6].starts_with("project: 3 resources, 2 to build, 1 to drop"),
        "{}",
        shown[6]
    );
    assert_eq!(sandbox.call(&["plan", "--exit-code"]).code, Some(5));
    assert_eq!(contents(&sandbox), before, "a plan touches nothing");
}

#[test]
fn a_plan_without_a_manifest_is_refused_as_a_run_is() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    sandbox.write("watershed.yaml", "models: [\n");
    let said = sandbox.call(&["plan"]);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
}

/// The files of the project's state, but for what any look may write: the cache of parses, and what locks leave.
fn contents(sandbox: &Sandbox) -> BTreeMap<String, Vec<u8>> {
    let files = files_below(&sandbox.path().join(".watershed"));
    let kept = files.into_iter().filter_map(|file| {
        let name = file.file_name()?.to_str()?.to_owned();
        let counts = name.starts_with("main.duckdb") || name == "catalog.db";
        counts.then(|| (name, std::fs::read(&file).unwrap_or_default()))
    });
    kept.collect()
}

#[test]
fn a_run_does_what_its_plan_said_after_any_history_of_edits() {
    let seed = std::env::var("WATERSHED_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or(SEED);
    let mut world = ProjectModel::new(seed);
    let sandbox = Sandbox::with(&[]);
    let mut story = format!("seed {seed}");
    for _ in 0..CHANGES {
        world.write(&sandbox);
        let planned = planned(&sandbox, &story);
        let document = sandbox.call(&["run", "--json"]).json();
        assert_kept(&planned, &document, &story);
        story = format!("{story}, {}", world.change_files());
    }
}

/// Work that is planned, by name.
fn planned(sandbox: &Sandbox, story: &str) -> BTreeMap<String, String> {
    let said = sandbox.call(&["plan", "--json"]);
    assert!(matches!(said.code, Some(0 | 1)), "{story}: {}", said.stderr);
    let document = said.json();
    let steps = document["steps"].as_array().expect("a list of steps").clone();
    let step = |step: Value| (text(&step, "name"), text(&step, "work"));
    steps.into_iter().map(step).collect()
}

/// Checks that all that was built or renamed was planned, and that all that was planned was done unless it failed.
fn assert_kept(planned: &BTreeMap<String, String>, document: &Value, story: &str) {
    let resources = document["resources"].as_array().expect("a list of resources");
    let mut names = BTreeSet::new();
    // What a migration leaves behind is known when it has run.
    let blurred = resources
        .iter()
        .any(|it| text(it, "kind") == "migration" && text(it, "work") == "built");
    for resource in resources {
        let (name, work) = (text(resource, "name"), text(resource, "work"));
        let plan = planned.get(&name).map_or("none", String::as_str);
        let fails = matches!(text(resource, "health").as_str(), "failed" | "blocked");
        let is_view = resource["result"]["type"] == "view";
        let fits = match (work.as_str(), plan) {
            ("built", "build" | "add") | ("restored", "restore") | ("renamed", "rename") => true,
            // A name is given before its own mistake is looked at.
            ("renamed", "failed") => true,
            ("built", "none" | "check") | ("renamed", "build") => blurred,
            // That what it reads has the columns that it had is known when that is built.
            ("checked", "build") if is_view => true,
            ("none" | "checked", "build" | "add" | "rename") => fails || blurred,
            ("none" | "checked", _) => true,
            _ => false,
        };
        assert!(fits, "{name} was planned as {plan} and was {work}: {story}");
        names.insert(name);
    }
    for removed in document["summary"]["removed"].as_array().into_iter().flatten() {
        let name = text(removed, "name");
        let plan = planned.get(&name).map_or("none", String::as_str);
        let known = names.contains(&name) || matches!(plan, "drop" | "none");
        assert!(known, "{name} was planned as {plan} and is gone: {story}");
    }
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_renamed_model_whose_input_fails_is_planned_to_be_renamed() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    sandbox.edit("models/b.sql", "SELECT x", "SELEC x");
    sandbox.rename("models/c.sql", "models/d.sql");
    let planned = planned(&sandbox, "renamed");
    assert_eq!(
        planned.get("d").map(String::as_str),
        Some("rename"),
        "{planned:?}"
    );
    let said = sandbox.call(&["plan"]);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert!(
        said.stdout
            .contains("its file has another name; it is not built, because `b` fails"),
        "{}",
        said.stdout
    );
    let document = sandbox.call(&["run", "--json"]).json();
    assert_kept(&planned, &document, "renamed");
}

#[test]
fn a_plan_says_what_the_trash_gives_back_and_leaves_it_there() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    sandbox.edit("models/b.sql", "SELECT x", "SELECT x + 10 AS x");
    sandbox.remove("models/other.sql");
    sandbox.run(0);
    let other = "-- @materialize: true\nSELECT 1 AS x\n";
    sandbox.write("models/other.sql", other);
    sandbox.edit("models/b.sql", "SELECT x + 10 AS x", "SELECT x");
    // Its content is what counts.
    sandbox.write("data/a.csv", "x\n1\n2\n");
    let before = contents(&sandbox);
    let planned = planned(&sandbox, "restored");
    let of = |name: &str| planned.get(name).map(String::as_str);
    assert_eq!(
        (of("a"), of("b"), of("c"), of("other")),
        (None, Some("restore"), Some("check"), Some("restore"))
    );
    assert_eq!(contents(&sandbox), before, "a plan touches nothing");
    let said = sandbox.call(&["plan"]);
    assert!(said.stdout.contains("2 to restore"), "{}", said.stdout);
    // The view is over the columns that it had.
    assert_eq!(sandbox.done(0), "b:restored other:restored");
}

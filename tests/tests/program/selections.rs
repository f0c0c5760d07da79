//! `--select` and `--exclude`: what is chosen, what is left as it is, and that nothing is forgotten by it.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::Value;

use crate::going::Going;
use crate::sandbox::Sandbox;
use crate::world::ProjectModel;

/// The changes of a journey, each followed by a run of some resources.
const CHANGES: usize = 8;
/// Journeys, unless `WATERSHED_JOURNEYS` says otherwise.
const JOURNEYS: u64 = 3;
/// The seed of the first one, unless `WATERSHED_SEED` says otherwise.
const SEED: u64 = 1;

/// A source, a chain of three models over it, and one beside it.
const PROJECT: &[(&str, &str)] = &[
    ("watershed.yaml", ""),
    ("data/raw.csv", "x\n1\n2\n"),
    (
        "sources/raw.yaml",
        "type: source\nconnector: local_file\npath: data/raw.csv\n",
    ),
    (
        "models/staging/clean.sql",
        "-- @materialize: true\n-- @tags: [core, nightly]\nSELECT x FROM raw\n",
    ),
    (
        "models/total.sql",
        "-- @materialize: true\nSELECT sum(x) AS x FROM clean\n",
    ),
    ("models/shown.sql", "SELECT x FROM total\n"),
    ("models/other.sql", "-- @materialize: true\nSELECT 1 AS x\n"),
];

/// The works of a command's document that are none: `name:work`, by name.
fn done(document: &Value) -> String {
    let resources = document["resources"].as_array().expect("a list");
    let works = resources
        .iter()
        .map(|it| (text(it, "name"), text(it, "work")))
        .filter(|(_, work)| work != "none" && work != "checked");
    let works: BTreeMap<String, String> = works.collect();
    let works = works.iter().map(|(name, work)| format!("{name}:{work}"));
    works.collect::<Vec<_>>().join(" ")
}

/// Runs what these arguments select, and says what was done.
fn run(sandbox: &Sandbox, arguments: &[&str], code: i32) -> (String, Value) {
    let all: Vec<&str> = ["run", "--json"].iter().chain(arguments).copied().collect();
    let said = sandbox.call(&all);
    assert_eq!(said.code, Some(code), "{}\n{}", said.stderr, said.stdout);
    let document = said.json();
    (done(&document), document)
}

#[test]
fn a_run_builds_what_is_selected_and_leaves_the_rest_to_the_next() {
    let sandbox = Sandbox::with(PROJECT);
    let (first, document) = run(&sandbox, &["--select", "+total"], 0);
    assert_eq!(first, "clean:built raw:built total:built");
    assert_eq!(document["summary"]["outcomes"]["not_selected"], 2);
    let standing = |name: &str| resource(&document, name)["health"].clone();
    assert_eq!(
        (standing("total"), standing("other")),
        ("ok".into(), "never_built".into())
    );
    assert_eq!(resource(&document, "other")["selected"], false);
    assert_eq!(sandbox.done(0), "other:built shown:built");

    sandbox.edit("models/staging/clean.sql", "SELECT x", "SELECT x + 1 AS x");
    sandbox.edit("models/other.sql", "1 AS x", "2 AS x");
    let said = sandbox.call(&["run", "--select", "other"]);
    assert!(
        said.stdout
            .contains("✓ project: 1 of 5 resources selected, 1 built ("),
        "{}",
        said.stdout
    );
    let (idle, _) = run(&sandbox, &["-s", "other"], 0);
    assert_eq!(idle, "");
    let (upper, _) = run(&sandbox, &["--select", "clean"], 0);
    assert_eq!(upper, "clean:built", "what reads it is left");
    let status = sandbox.call(&["status", "--json", "total"]).json();
    assert_eq!(resource(&status, "total")["health"], "stale");
    let (rest, _) = run(&sandbox, &[], 0);
    assert_eq!(rest, "total:built");
}

#[test]
fn what_reads_something_that_was_never_built_says_how_to_select_that_too() {
    let sandbox = Sandbox::with(PROJECT);
    let (none, document) = run(&sandbox, &["--select", "total"], 1);
    assert_eq!(none, "");
    let error = &resource(&document, "total")["error"];
    assert_eq!(error["code"], "input-not-selected");
    assert!(text(error, "message").contains("\"clean\", which it reads, was never built"));
    assert!(text(error, "hint").contains("`+`"));
    assert_eq!(
        sandbox.done(0),
        "clean:built other:built raw:built shown:built total:built"
    );
}

#[test]
fn states_tags_kinds_paths_and_exclusions_select() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    sandbox.edit("models/other.sql", "1 AS x", "no_such_column AS x");
    sandbox.edit("models/staging/clean.sql", "SELECT x", "SELECT x + 1 AS x");
    let (modified, document) = run(
        &sandbox,
        &["--select", "state:modified", "--exclude", "clean+"],
        1,
    );
    assert_eq!(modified, "");
    assert_eq!(text(resource(&document, "other"), "health"), "failed");
    sandbox.edit("models/other.sql", "no_such_column AS x", "3 AS x");
    let (failed, _) = run(&sandbox, &["--select", "state:failed"], 0);
    assert_eq!(failed, "other:built");
    let (nothing, _) = run(&sandbox, &["--select", "state:failed"], 0);
    assert_eq!(nothing, "", "nothing stands so any more, which is no mistake");
    let (both, _) = run(
        &sandbox,
        &["--select", "tag:core,path:models/staging kind:source"],
        0,
    );
    assert_eq!(both, "clean:built");
    let (rest, _) = run(&sandbox, &["--exclude", "clean"], 0);
    assert_eq!(rest, "total:built");
}

/// `plan` reads tags, paths, kinds and edits from the files, as the run does that it foretells.
#[test]
fn a_plan_selects_what_the_run_would() {
    const NEW: &str = "-- @tags: [fresh]\nSELECT 2 AS x\n";
    let edited = |was_run: bool| {
        let sandbox = Sandbox::with(PROJECT);
        if was_run {
            sandbox.run(0);
        }
        sandbox.edit(
            "models/other.sql",
            "-- @materialize: true",
            "-- @materialize: true\n-- @tags: fresh",
        );
        sandbox.edit("models/staging/clean.sql", "[core, nightly]", "[nightly]");
        sandbox.edit("models/total.sql", "sum(x)", "max(x)");
        sandbox.write("models/more/new.sql", NEW);
        sandbox
    };
    for was_run in [false, true] {
        let planned = edited(was_run);
        for choice in [
            ["--select", "tag:fresh"],
            ["--select", "tag:nightly"],
            ["--select", "tag:core"],
            ["--exclude", "tag:fresh"],
            ["--select", "path:models/more"],
            ["--select", "state:modified"],
            ["--select", "kind:source"],
        ] {
            let all: Vec<&str> = ["plan", "--json"].iter().chain(&choice).copied().collect();
            let plan = planned.call(&all);
            let all: Vec<&str> = ["run", "--json"].iter().chain(&choice).copied().collect();
            let done = edited(was_run).call(&all);
            let is_refused = [plan.code, done.code].map(|code| code == Some(2));
            assert_eq!(
                is_refused[0], is_refused[1],
                "{choice:?} {was_run}: {}",
                plan.stderr
            );
            if is_refused[0] {
                continue;
            }
            let resources = done.json()["resources"].clone();
            let resources = resources.as_array().cloned().unwrap_or_default();
            let selected = resources.iter().filter(|it| it["selected"] != false).count() as u64;
            let foretold = plan.json()["summary"]["selected"].as_u64();
            assert_eq!(foretold, Some(selected), "{choice:?} {was_run}");
        }
    }
}

#[test]
fn a_selection_that_matches_nothing_does_nothing_and_names_the_nearest() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    sandbox.edit("models/other.sql", "1 AS x", "2 AS x");
    for command in ["run", "plan", "status", "graph", "validate"] {
        let said = sandbox.call(&[command, "--select", "totl+"]);
        assert_eq!(said.code, Some(2), "{command}: {}", said.stdout);
        let known =
            said.stderr.contains("no resource `totl`") && said.stderr.contains("did you mean `total`?");
        assert!(known, "{command}: {}", said.stderr);
    }
    let said = sandbox.call(&["run", "--json", "--select", "state:fialed"]);
    assert_eq!((said.code, said.json()["exit_code"].clone()), (Some(2), 2.into()));
    assert_eq!(sandbox.done(0), "other:built", "nothing was built before");
    let said = sandbox.call(&["refresh", "--select", "totl"]);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    // A state is known to the catalog alone.
    let said = sandbox.call(&["validate", "--select", "state:failed"]);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
}

#[test]
fn mistakes_outside_of_the_selection_fail_nothing() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.write("models/broken.sql", "SELEC 1\n");
    sandbox.write("models/wrong.sql", "SELECT no_such_column FROM other\n");
    let (some, document) = run(&sandbox, &["--select", "other"], 0);
    assert_eq!(some, "other:built");
    assert_eq!(document["diagnostics"].as_array().map(Vec::len), Some(0));
    let (_, document) = run(&sandbox, &["--select", "wrong"], 1);
    assert_eq!(document["summary"]["outcomes"]["failed"], 1);
    let said = sandbox.call(&["run", "--select", "other"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    assert_eq!(sandbox.call(&["validate", "--select", "other"]).code, Some(0));
    assert_eq!(sandbox.call(&["validate", "--select", "broken"]).code, Some(1));
    assert_eq!(sandbox.call(&["run"]).code, Some(1));
}

#[test]
fn looks_show_what_is_selected() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    let names = |document: &Value, list: &str| -> Vec<String> {
        let listed = document[list].as_array().expect("a list");
        listed.iter().map(|it| text(it, "name")).collect()
    };
    let status = sandbox.call(&["status", "--json", "--select", "clean+"]).json();
    assert_eq!(names(&status, "resources"), ["clean", "shown", "total"]);
    let files = sandbox
        .call(&["validate", "--json", "--select", "tag:core"])
        .json();
    assert_eq!(names(&files, "resources"), ["clean"]);
    let graph = sandbox.call(&["graph", "--json", "--select", "1+total"]).json();
    assert_eq!(names(&graph, "nodes"), ["clean", "total"]);
    assert_eq!(graph["edges"].as_array().map(Vec::len), Some(1));
    let refreshed = sandbox.call(&["refresh", "--json", "--select", "total,tag:none other"]);
    assert_eq!(
        refreshed.code,
        Some(2),
        "no resource has that tag: {}",
        refreshed.stderr
    );
    let refreshed = sandbox.call(&["refresh", "--json", "--select", "other"]);
    assert_eq!(done(&refreshed.json()), "other:built");
}

#[test]
fn a_program_that_goes_on_is_asked_for_what_is_selected() {
    let sandbox = Sandbox::with(PROJECT);
    let start = Going::settled(&sandbox);
    let (_, document) = run(&sandbox, &["--select", "clean+"], 0);
    assert_eq!(document["summary"]["outcomes"]["not_selected"], 2);
    let said = sandbox.call(&["run", "--select", "claen"]);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    let refreshed = sandbox.call(&["refresh", "--json", "--select", "total"]).json();
    assert_eq!(done(&refreshed), "total:built");
    drop(start);
}

#[test]
fn a_view_follows_the_name_of_what_it_reads_though_it_is_not_selected() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    sandbox.rename("models/total.sql", "models/sum.sql");
    sandbox.edit("models/shown.sql", "FROM total", "FROM sum");
    let plan = sandbox.call(&["plan", "--json", "--select", "other"]).json();
    let (followed, _) = run(&sandbox, &["--select", "other"], 0);
    assert_eq!(followed, "shown:built sum:renamed");
    let planned = plan["steps"].as_array().expect("a list");
    let planned: Vec<String> = planned
        .iter()
        .map(|it| format!("{}:{}", text(it, "name"), text(it, "work")))
        .collect();
    assert_eq!(planned, ["sum:rename", "shown:build"]);
    assert_eq!(
        sandbox.query("SELECT x::INTEGER AS x FROM shown")["rows"][0][0],
        3
    );
    assert_eq!(sandbox.done(0), "");

    // Also where that was built again.
    sandbox.rename("models/sum.sql", "models/most.sql");
    sandbox.edit("models/most.sql", "sum(x)", "max(x)::HUGEINT");
    sandbox.edit("models/shown.sql", "FROM sum", "FROM most");
    run(&sandbox, &["--select", "most"], 0);
    assert_eq!(
        sandbox.query("SELECT x::INTEGER AS x FROM shown")["rows"][0][0],
        2
    );
}

#[test]
fn after_any_edits_and_selections_a_whole_run_comes_to_a_fresh_build() {
    let first = number("WATERSHED_SEED").unwrap_or(SEED);
    for seed in first..first + number("WATERSHED_JOURNEYS").unwrap_or(JOURNEYS) {
        journey(seed);
    }
}

fn journey(seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut world = ProjectModel::new(seed);
    let sandbox = Sandbox::with(&[]);
    let mut story = format!("seed {seed}");
    world.write(&sandbox);
    sandbox.expect_run(0, &story);
    for _ in 0..CHANGES {
        story = format!("{story}, {}", world.change_files());
        world.write(&sandbox);
        let typed = some(&mut rng, &world.names());
        story = format!("{story}, run {typed}");
        let before = sandbox.table_rows();
        let plan = sandbox.call(&["plan", "--json", "--select", &typed]).json();
        let said = sandbox.call(&["run", "--json", "--select", &typed]);
        assert!(matches!(said.code, Some(0 | 1)), "{story}: {}", said.stderr);
        let document = said.json();
        assert_selected(&typed, &document, &story);
        assert_left(&before, &sandbox.table_rows(), &document, &story);
        assert_planned(&plan, &document, &story);
    }
    sandbox.expect_run(i32::from(world.is_broken()), &story);
    world.assert_built(&sandbox, &story);
    world.mend();
    world.write(&sandbox);
    sandbox.expect_run(0, &story);
    world.assert_built(&sandbox, &story);
}

/// One to three names, each with some reach.
fn some(rng: &mut SmallRng, names: &[String]) -> String {
    let number = rng.random_range(1..=3);
    let terms = (0..number).map(|_| {
        let name = names.choose(rng).expect("some are left");
        let (above, below) = (rng.random_bool(0.5), rng.random_bool(0.3));
        format!(
            "{}{name}{}",
            if above { "+" } else { "" },
            if below { "+" } else { "" }
        )
    });
    terms.collect::<Vec<_>>().join(" ")
}

/// Checks that those are selected that the refs of the document say.
fn assert_selected(typed: &str, document: &Value, story: &str) {
    let resources = document["resources"].as_array().expect("a list");
    let mut edges = Vec::new();
    for resource in resources {
        for parent in resource["refs"].as_array().expect("a list") {
            edges.push((text(parent, "name"), text(resource, "name")));
        }
    }
    let mut wanted = BTreeSet::new();
    for term in typed.split(' ') {
        let name = term.trim_matches('+').to_owned();
        if term.starts_with('+') {
            wanted.extend(closure(&name, |at| {
                ends(&edges, |(above, below)| (below == at).then_some(above))
            }));
        }
        if term.ends_with('+') {
            wanted.extend(closure(&name, |at| {
                ends(&edges, |(above, below)| (above == at).then_some(below))
            }));
        }
        wanted.insert(name);
    }
    // No ref leads to the migration.
    let selected = resources
        .iter()
        .filter(|it| it["selected"] != false && it["kind"] != "migration");
    let selected: BTreeSet<String> = selected.map(|it| text(it, "name")).collect();
    assert_eq!(selected, wanted, "{story}");
}

fn ends<'a>(
    edges: &'a [(String, String)],
    end: impl Fn((&'a String, &'a String)) -> Option<&'a String>,
) -> Vec<String> {
    edges
        .iter()
        .filter_map(|(above, below)| end((above, below)))
        .cloned()
        .collect()
}

/// A name with all that is reached from it.
fn closure(from: &str, next: impl Fn(&str) -> Vec<String>) -> BTreeSet<String> {
    let mut reached = BTreeSet::from([from.to_owned()]);
    let mut open = vec![from.to_owned()];
    while let Some(at) = open.pop() {
        open.extend(next(&at).into_iter().filter(|name| reached.insert(name.clone())));
    }
    reached
}

/// Checks that nothing was done for what is not selected but that names were followed, and that its tables hold what
/// they held.
fn assert_left(
    before: &BTreeMap<String, Vec<String>>,
    after: &BTreeMap<String, Vec<String>>,
    document: &Value,
    story: &str,
) {
    let resources = document["resources"].as_array().expect("a list");
    for resource in resources.iter().filter(|it| it["selected"] == false) {
        let (name, work) = (text(resource, "name"), text(resource, "work"));
        let is_view = resource["result"]["type"] == "view";
        let fits = matches!(work.as_str(), "none" | "renamed") || work == "built" && is_view;
        assert!(fits, "{name} is not selected and was {work}: {story}");
        if work == "none" {
            assert_eq!(after.get(&name), before.get(&name), "{name} was touched: {story}");
        }
    }
}

/// Checks that each build of the run was planned.
fn assert_planned(plan: &Value, document: &Value, story: &str) {
    let steps = plan["steps"].as_array().expect("a list");
    let planned: BTreeMap<String, String> = steps
        .iter()
        .map(|it| (text(it, "name"), text(it, "work")))
        .collect();
    let resources = document["resources"].as_array().expect("a list");
    // What a migration leaves behind is known when it has run.
    let blurred = resources
        .iter()
        .any(|it| text(it, "kind") == "migration" && text(it, "work") == "built");
    for resource in resources.iter().filter(|_| !blurred) {
        let (name, work) = (text(resource, "name"), text(resource, "work"));
        let plan = planned.get(&name).map_or("none", String::as_str);
        assert!(
            work != "built" || plan == "build",
            "{name} was planned as {plan} and built: {story}"
        );
    }
}

fn resource<'a>(document: &'a Value, name: &str) -> &'a Value {
    let mut resources = document["resources"].as_array().expect("a list").iter();
    let found = resources.find(|it| it["name"] == name);
    found.unwrap_or_else(|| panic!("`{name}` is listed: {document}"))
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

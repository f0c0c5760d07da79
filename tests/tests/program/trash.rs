//! The trash: what goes there, comes back without a build, and is thrown away.
//!
//! `WATERSHED_HISTORIES` says how many random histories of branches are played, `WATERSHED_SEED` the first of them.

use std::collections::BTreeMap;

use serde_json::json;

use crate::going::Going;
use crate::sandbox::Sandbox;
use crate::world::ProjectModel;

const PROJECT: &[(&str, &str)] = &[
    ("watershed.yaml", ""),
    ("data/a.csv", "x\n1\n2\n"),
    (
        "sources/a.yaml",
        "type: source\nconnector: local_file\npath: data/a.csv\n",
    ),
    ("models/b.sql", "-- @materialize: true\nSELECT x FROM a\n"),
    (
        "models/c.sql",
        "-- @materialize: true\nSELECT sum(x) AS x FROM b\n",
    ),
    ("models/d.sql", "SELECT x + 1 AS x FROM c\n"),
];

/// The histories of branches that are played.
const HISTORIES: u64 = 3;
/// The branches that a history goes between.
const BRANCHES: usize = 3;
/// The steps of a history.
const STEPS: usize = 8;

#[test]
fn an_edit_that_is_taken_back_and_a_file_that_returns_build_no_table() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    let before = sandbox.tables();
    sandbox.edit("models/b.sql", "SELECT x", "SELECT x + 10 AS x");
    assert_eq!(sandbox.done(0), "b:built c:built");
    sandbox.edit("models/b.sql", "SELECT x + 10 AS x", "SELECT x");
    assert_eq!(
        sandbox.done(0),
        "b:restored c:restored",
        "the view reads what stands there"
    );
    assert_eq!(sandbox.tables(), before);
    assert_eq!(sandbox.done(0), "");

    // The files of a branch that has none of them.
    sandbox.rename("models", "elsewhere.tmp");
    sandbox.rename("sources", "elsewhere.tmp/sources");
    sandbox.write("models/other.sql", "SELECT 1 AS x\n");
    sandbox.write("watershed.yaml", "ignore_paths: [/elsewhere.tmp]\n");
    sandbox.run(0);
    assert_eq!(sandbox.tables().len(), 1);
    sandbox.remove("models/other.sql");
    std::fs::remove_dir(sandbox.path().join("models")).expect("an empty folder");
    sandbox.rename("elsewhere.tmp/sources", "sources");
    sandbox.rename("elsewhere.tmp", "models");
    // Files are known by what they hold: their times are those of the checkout.
    sandbox.write("data/a.csv", "x\n1\n2\n");
    assert_eq!(sandbox.done(0), "a:restored b:restored c:restored d:built");
    assert_eq!(sandbox.tables(), before);
    assert_eq!(sandbox.done(0), "");
}

#[test]
fn what_is_asked_for_anew_is_never_answered_by_the_trash() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    sandbox.edit("models/b.sql", "SELECT x", "SELECT x + 10 AS x");
    sandbox.run(0);
    assert_eq!(sandbox.call(&["refresh", "b"]).code, Some(0));
    sandbox.edit("models/b.sql", "SELECT x + 10 AS x", "SELECT x");
    assert_eq!(sandbox.done(0), "b:built c:built");
    // New data, and the edit of before: no table of before has it.
    sandbox.write("data/a.csv", "x\n5\n");
    sandbox.run(0);
    assert_eq!(sandbox.query("SELECT x FROM d")["rows"], json!([[6]]));
    sandbox.write("data/a.csv", "x\n1\n2\n");
    assert_eq!(sandbox.done(0), "a:restored b:restored c:restored");
    assert_eq!(sandbox.query("SELECT x FROM d")["rows"], json!([[4]]));
}

#[test]
fn rows_that_no_build_could_make_come_back_and_go_on() {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("data/a.csv", "x\n1\n"),
        (
            "sources/a.yaml",
            "type: source\nconnector: local_file\npath: data/a.csv\n",
        ),
        (
            "models/kept.yaml",
            "type: model\nincremental: true\nsql: SELECT x FROM a\n",
        ),
        (
            "models/parts.yaml",
            "type: model\nincremental: true\noutput: {strategy: partition_overwrite}\n\
             partitions: {sql: SELECT x FROM a}\nsql: 'SELECT {{ .partition.x }} AS x'\n",
        ),
    ]);
    sandbox.run(0);
    sandbox.write("data/a.csv", "x\n2\n");
    sandbox.run(0);
    let rows = |model: &str| {
        sandbox.query(&format!(
            "SELECT string_agg(x::VARCHAR, ' ' ORDER BY x) FROM {model}"
        ))["rows"][0][0]
            .clone()
    };
    assert_eq!((rows("kept"), rows("parts")), (json!("1 2"), json!("1 2")));
    sandbox.rename("models", "models.away");
    sandbox.write("watershed.yaml", "ignore_paths: [/models.away]\n");
    sandbox.run(0);
    assert_eq!(sandbox.tables().len(), 1);
    // New rows came meanwhile: they are put into those of before.
    sandbox.write("data/a.csv", "x\n3\n");
    sandbox.run(0);
    sandbox.rename("models.away", "models");
    assert_eq!(sandbox.done(0), "kept:built parts:built");
    assert_eq!((rows("kept"), rows("parts")), (json!("1 2 3"), json!("1 2 3")));
    let partitions = sandbox.call(&["partitions", "parts", "--json"]).json();
    assert_eq!(partitions["counts"]["done"], 3);
    assert_eq!(sandbox.done(0), "");
    sandbox.rename("models", "models.away");
    sandbox.run(0);
    sandbox.rename("models.away", "models");
    assert_eq!(sandbox.done(0), "kept:restored parts:restored");
    assert_eq!((rows("kept"), rows("parts")), (json!("1 2 3"), json!("1 2 3")));
}

/// Deletes a model of the project and runs it.
fn without_c(sandbox: &Sandbox) {
    sandbox.remove("models/d.sql");
    sandbox.remove("models/c.sql");
    sandbox.run(0);
}

#[test]
fn the_trash_is_listed_and_a_table_of_it_becomes_a_persons() {
    let sandbox = Sandbox::with(PROJECT);
    let said = sandbox.call(&["trash", "list"]);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    sandbox.run(0);
    let said = sandbox.call(&["trash", "list"]);
    assert!(said.stdout.contains("the trash is empty"), "{}", said.stdout);
    without_c(&sandbox);
    let document = sandbox.call(&["trash", "list", "--json"]).json();
    assert_eq!(document["schema"], "watershed.trash/1");
    assert_eq!(document["tables"][0]["name"], "c");
    assert_eq!(document["tables"][0]["why"], "deleted");
    assert_eq!(document["tables"][0]["rows"], 1);
    assert_eq!(document["keep_ms"], 7 * 24 * 60 * 60 * 1_000);

    let wrong = sandbox.call(&["trash", "restore", "cc"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("holds no table `cc`"), "{}", wrong.stderr);
    let taken = sandbox.call(&["trash", "restore", "c", "--as", "B"]);
    assert_eq!(taken.code, Some(2));
    assert!(
        taken.stderr.contains("is the table of model \"b\""),
        "{}",
        taken.stderr
    );
    let ours = sandbox.call(&["trash", "restore", "c", "--as", "_watershed_x"]);
    assert_eq!(ours.code, Some(2));
    let would = sandbox.call(&["trash", "restore", "c", "--dry-run"]);
    assert_eq!(
        (would.code, would.stdout.as_str()),
        (Some(0), "would restore c (1 row)\n")
    );
    assert_eq!(sandbox.tables().len(), 2);
    let done = sandbox.call(&["trash", "restore", "C"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(
        done.stdout.contains("c is a table again (1 row)"),
        "{}",
        done.stdout
    );
    assert_eq!(sandbox.query("SELECT x FROM c")["rows"], json!([[3]]));
    assert_eq!(sandbox.done(0), "", "it is no output");
    assert_eq!(sandbox.tables().len(), 3);
    // The file comes back: a table of a person is in its way, and nothing touches that.
    sandbox.write("models/c.sql", PROJECT[4].1);
    let said = sandbox.call(&["run"]);
    assert_eq!(said.code, Some(1));
    assert!(
        said.stderr.contains("that watershed did not make"),
        "{}",
        said.stderr
    );
}

#[test]
fn emptying_the_trash_has_to_be_agreed_to_and_gives_the_room_back() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    without_c(&sandbox);
    sandbox.edit("models/b.sql", "SELECT x", "SELECT x + 10 AS x");
    sandbox.run(0);
    let refused = sandbox.call(&["trash", "empty"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    assert!(
        refused.stderr.contains("throw 2 tables away for good"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("`--yes` agrees"), "{}", refused.stderr);
    let would = sandbox.call(&["trash", "empty", "--dry-run", "--json"]).json();
    assert_eq!(
        (&would["dry_run"], would["tables"].as_array().map(Vec::len)),
        (&json!(true), Some(2))
    );
    let some = sandbox.call(&["trash", "empty", "c", "--yes"]);
    assert_eq!(some.code, Some(0), "{}", some.stderr);
    let left = sandbox.call(&["trash", "list", "--json"]).json();
    assert_eq!(left["tables"][0]["name"], "b");
    assert_eq!(sandbox.call(&["trash", "empty", "-y"]).code, Some(0));
    let said = sandbox.call(&["trash", "empty"]);
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "the trash is empty\n")
    );
    sandbox.write("models/c.sql", PROJECT[4].1);
    assert_eq!(sandbox.done(0), "c:built");
}

#[test]
fn under_start_the_trash_is_asked_for_like_everything_else() {
    let sandbox = Sandbox::with(PROJECT);
    let mut start = Going::settled(&sandbox);
    sandbox.remove("models/d.sql");
    start.round();
    sandbox.remove("models/c.sql");
    start.round();
    let listed = sandbox.call(&["trash", "list", "--json"]).json();
    assert_eq!(listed["tables"][0]["name"], "c", "{listed}");
    sandbox.write("models/c.sql", PROJECT[4].1);
    assert!(start.round().done().contains("c:restored"));
    start.stop();
}

#[test]
fn a_trash_that_was_meddled_with_is_found_and_mended() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    without_c(&sandbox);
    let engine = sandbox.engine();
    let table = "SELECT table_name FROM duckdb_tables() WHERE starts_with(table_name, '_watershed_trash_')";
    let table = engine.lines(table).remove(0);
    engine.run(&format!(
        "DROP TABLE {table}; CREATE TABLE _watershed_trash_x AS SELECT 7 AS x"
    ));
    drop(engine);
    let found = sandbox.call(&["doctor", "--json"]);
    assert_eq!(found.code, Some(4), "{}", found.stderr);
    assert_eq!(found.json()["checks"][3]["what"], "trash");
    assert_eq!(
        found.json()["checks"][3]["findings"].as_array().map(Vec::len),
        Some(2)
    );
    // The file comes back while the record lies: it is built.
    sandbox.write("models/c.sql", PROJECT[4].1);
    assert_eq!(sandbox.done(0), "c:built");
    let mended = sandbox.call(&["doctor", "--repair"]);
    assert_eq!(mended.code, Some(0), "{}", mended.stderr);
    assert_eq!(sandbox.call(&["doctor"]).code, Some(0));
    assert_eq!(
        sandbox.call(&["trash", "restore", "found", "--as", "x"]).code,
        Some(0)
    );
    assert_eq!(sandbox.query("SELECT x FROM x")["rows"], json!([[7]]));
    assert_eq!(sandbox.done(0), "");
}

#[test]
fn a_protected_model_whose_rows_find_no_room_waits_for_approval() {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", "trash: {size: 100KB}\n"),
        (
            "models/precious.yaml",
            "type: model\nmaterialize: true\nprotect: true\nsql: SELECT hash(i) AS x FROM range(100000) t(i)\n",
        ),
        ("models/other.sql", "-- @materialize: true\nSELECT 1 AS x\n"),
    ]);
    sandbox.run(0);
    let text = std::fs::read_to_string(sandbox.path().join("models/precious.yaml")).expect("it is there");
    sandbox.remove("models/precious.yaml");
    let said = sandbox.call(&["run"]);
    assert_eq!(said.code, Some(1), "{}{}", said.stdout, said.stderr);
    assert!(said.stderr.contains("held-change"), "{}", said.stderr);
    assert!(said.stderr.contains("the trash has no room"), "{}", said.stderr);
    assert!(
        said.stderr.contains("watershed approve precious"),
        "{}",
        said.stderr
    );
    assert_eq!(sandbox.tables().len(), 2, "nothing is dropped");
    // The file comes back: nothing has happened.
    sandbox.write("models/precious.yaml", &text);
    assert_eq!(sandbox.done(0), "");
    sandbox.remove("models/precious.yaml");
    assert_eq!(sandbox.call(&["run"]).code, Some(1));
    let approved = sandbox.call(&["approve", "precious"]);
    assert_eq!(approved.code, Some(0), "{}{}", approved.stdout, approved.stderr);
    assert_eq!(sandbox.tables().len(), 1);
    assert_eq!(sandbox.done(0), "");

    // With room it goes to the trash as everything else does.
    sandbox.write("watershed.yaml", "");
    sandbox.write("models/precious.yaml", &text);
    assert_eq!(sandbox.done(0), "precious:built");
    sandbox.remove("models/precious.yaml");
    sandbox.run(0);
    sandbox.write("models/precious.yaml", &text);
    assert_eq!(sandbox.done(0), "precious:restored");
}

#[test]
fn dead_at_any_point_of_a_switch_and_of_the_way_back_nothing_is_lost() {
    let project = Sandbox::with(PROJECT);
    project.run(0);
    let before = project.tables();
    project.edit("models/b.sql", "SELECT x", "SELECT x + 10 AS x");
    project.run(0);
    project.remove("models/c.sql");
    project.remove("models/d.sql");
    project.run(0);
    project.edit("models/b.sql", "SELECT x + 10 AS x", "SELECT x");
    project.write("models/c.sql", PROJECT[4].1);
    project.write("models/d.sql", PROJECT[5].1);
    // What is kept of the switch goes at the end of the run.
    project.write("watershed.yaml", "trash: {size: 0}\n");
    let points = watershed_controller::store::CRASH_POINTS
        .iter()
        .chain(watershed_drivers::CRASH_POINTS);
    let mut deaths = BTreeMap::new();
    for point in points {
        for visits in [0, 1, 2] {
            let sandbox = project.copied();
            if !sandbox.dies_at(point, visits) {
                break;
            }
            *deaths.entry(*point).or_insert(0) += 1;
            let story = format!("dead at {point} after {visits} visits");
            sandbox.expect_run(0, &story);
            assert_eq!(sandbox.tables(), before, "{story}");
            let again = sandbox.expect_run(0, &story);
            assert_eq!(again, BTreeMap::new(), "{story}");
        }
    }
    for point in [
        "drivers::build::before_commit",
        "drivers::trash::before_commit",
        "drivers::trash::after_commit",
    ] {
        assert!(deaths.contains_key(point), "{deaths:?}");
    }
}

#[test]
fn between_branches_in_any_history_only_what_is_new_is_built() {
    let first = number("WATERSHED_SEED").unwrap_or(1);
    for seed in first..first + number("WATERSHED_HISTORIES").unwrap_or(HISTORIES) {
        play(seed);
    }
}

/// Goes to and fro between branches that are edited. Whoever comes back to a branch as it was left builds no table of it.
fn play(seed: u64) {
    let mut world = ProjectModel::new(seed);
    let sandbox = Sandbox::with(&[]);
    let mut branches = Vec::new();
    let mut here = 0;
    let mut story = format!("seed {seed}");
    settle(&mut world, &sandbox, &story);
    for branch in 0..BRANCHES {
        if branch > 0 {
            story = format!("{story}, branch {branch}: {}", world.change_a_model());
            settle(&mut world, &sandbox, &story);
        }
        branches.push(world.branch());
        here = branch;
    }
    for _ in 0..STEPS {
        match world.below(4) {
            0 => {
                story = format!("{story}, {}", world.change_a_model());
                settle(&mut world, &sandbox, &story);
                branches[here] = world.branch();
            }
            1 => {
                let points = watershed_drivers::CRASH_POINTS;
                let point = points[world.below(points.len())];
                let there = world.below(BRANCHES);
                world.checkout(&branches[there]);
                world.write(&sandbox);
                let died = sandbox.dies_at(point, 1);
                story = format!("{story}, to {there} with {point}: {died}");
                settle(&mut world, &sandbox, &story);
                here = there;
            }
            _ => {
                let there = world.below(BRANCHES);
                world.checkout(&branches[there]);
                story = format!("{story}, to {there}");
                let done = settle(&mut world, &sandbox, &story);
                let built: Vec<&String> = done
                    .iter()
                    .filter(|(name, work)| *work == "built" && world.is_table(name))
                    .map(|(name, _)| name)
                    .collect();
                assert!(built.is_empty(), "{built:?} built: {story}");
                here = there;
            }
        }
    }
}

/// Runs the program twice and looks at what it left.
fn settle(world: &mut ProjectModel, sandbox: &Sandbox, story: &str) -> BTreeMap<String, String> {
    world.write(sandbox);
    let done = sandbox.expect_run(0, story);
    world.assert_built(sandbox, story);
    let again = sandbox.expect_run(0, story);
    assert!(again.is_empty(), "a second run did {again:?} after {story}");
    done
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

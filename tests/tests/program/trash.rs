//! The trash: what goes there, comes back without a build, and is thrown away.
//!
//! `WATERSHED_HISTORIES` says how many random histories of branches are played, `WATERSHED_SEED` the first of them.

use std::collections::BTreeMap;

use serde_json::json;

use crate::sandbox::Sandbox;
use crate::world::World;

const PROJECT: &[(&str, &str)] = &[
    ("watershed.yaml", ""),
    ("data/a.csv", "x\n1\n2\n"),
    (
        "sources/a.yaml",
        "type: source\nconnector: local_file\npath: data/a.csv\n",
    ),
    ("models/b.sql", "-- @materialize: true\nSELECT x FROM a\n"),
    ("models/c.sql", "-- @materialize: true\nSELECT sum(x) AS x FROM b\n"),
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
    assert_eq!(sandbox.done(0), "b:built c:built d:built");
    sandbox.edit("models/b.sql", "SELECT x + 10 AS x", "SELECT x");
    assert_eq!(sandbox.done(0), "b:restored c:restored d:built");
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
    assert_eq!(sandbox.done(0), "b:built c:built d:built");
    // New data, and the edit of before: no table of before has it.
    sandbox.write("data/a.csv", "x\n5\n");
    sandbox.run(0);
    assert_eq!(sandbox.query("SELECT x FROM d")["rows"], json!([[6]]));
    sandbox.write("data/a.csv", "x\n1\n2\n");
    assert_eq!(sandbox.done(0), "a:restored b:restored c:restored d:built");
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
        sandbox.query(&format!("SELECT string_agg(x::VARCHAR, ' ' ORDER BY x) FROM {model}"))["rows"][0][0].clone()
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
    let points = watershed_controller::CRASH_POINTS
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
    for point in ["drivers::build::before_commit", "drivers::trash::before_commit", "drivers::trash::after_commit"] {
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
    let mut world = World::new(seed);
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
fn settle(world: &mut World, sandbox: &Sandbox, story: &str) -> BTreeMap<String, String> {
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

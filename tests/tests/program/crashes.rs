//! Dead at any named point around a commit, the program goes on as if nothing had happened.
//!
//! Each test takes a project, makes one sort of change, and lets a run die at every crash point that it passes, at the
//! first visit and at a later one. The run after that must end with the rows of a fresh build and leave nothing else
//! behind; a further one must find nothing to do.

use std::collections::BTreeMap;

use crate::sandbox::Sandbox;

/// Visits of a point that pass before the program dies there: the first dies at once, the others deep in the work.
const VISITS: [u32; 2] = [0, 2];

/// Tables and views in three layers, on a file.
const PROJECT: &[(&str, &str)] = &[
    ("watershed.yaml", ""),
    ("data/orders.csv", "customer,amount\n7,20\n8,5\n"),
    (
        "sources/orders.yaml",
        "type: source\nconnector: local_file\npath: data/orders.csv\n",
    ),
    (
        "models/paid.sql",
        "SELECT customer, amount FROM orders WHERE amount > 0\n",
    ),
    (
        "models/total.sql",
        "-- @materialize: true\nSELECT sum(amount)::INTEGER AS amount FROM paid\n",
    ),
    ("models/first.sql", "-- @materialize: true\nSELECT 1 AS x\n"),
    ("models/second.sql", "-- @materialize: true\nSELECT 2 AS x\n"),
    ("models/gone.sql", "-- @materialize: true\nSELECT 3 AS x\n"),
    ("models/moved.sql", "-- @materialize: true\nSELECT 4 AS x\n"),
    (
        "models/parts.yaml",
        "type: model\npartitions: {sql: 'SELECT unnest([1, 2]) AS n'}\nsql: SELECT {{ .partition.n }} AS n\n",
    ),
    (
        "models/checked.yaml",
        "type: model\nmaterialize: true\nsql: SELECT range AS x FROM range(3)\n\
         tests: [{name: few, assert: x < 2, severity: warn, store_failures: true}]\n",
    ),
];

/// Text that can't be compressed much: enough that its build is followed by a checkpoint.
const LARGE: &str = "-- @materialize: true
SELECT i // 40000 AS part, string_agg(md5(i::VARCHAR), '' ORDER BY i) AS text
FROM range(400000) t(i) GROUP BY 1
";

#[test]
fn dead_at_any_point_of_a_first_build_the_next_run_ends_like_a_fresh_one() {
    let project = Sandbox::with(PROJECT);
    let passed = die_everywhere(&project);
    assert_passed(&passed, |point| {
        point.contains("catalog") || point.contains("build") || point.contains("close")
    });
}

#[test]
fn dead_at_any_point_of_a_change_the_next_run_ends_like_a_fresh_one() {
    let project = Sandbox::with(PROJECT);
    project.run(0);
    project.edit("models/paid.sql", "> 0", "> 10");
    project.edit("models/parts.yaml", "[1, 2]", "[1, 2, 3]");
    project.edit("models/checked.yaml", "range(3)", "range(4)");
    project.edit("models/total.sql", "-- @materialize: true\n", "");
    project.rename("models/moved.sql", "models/other.sql");
    project.remove("models/gone.sql");
    project.rename("models/first.sql", "models/aside.tmp");
    project.rename("models/second.sql", "models/first.sql");
    // A second run of it would fail.
    project.write("init.sql", "CREATE TABLE once AS SELECT 1 AS x\n");
    project.rename("models/aside.tmp", "models/second.sql");
    let passed = die_everywhere(&project);
    assert_passed(&passed, |point| {
        let others = ["retag", "lease", "retrieve"];
        point.contains("commit") && !others.iter().any(|other| point.contains(other))
    });
}

#[test]
fn dead_at_any_point_after_the_loss_of_the_catalog_the_next_run_ends_like_a_fresh_one() {
    let project = Sandbox::with(PROJECT);
    project.run(0);
    project.forget_catalog();
    project.remove("models/gone.sql");
    let passed = die_everywhere(&project);
    assert_passed(&passed, |point| point.contains("retag") || point.contains("drop"));
}

#[test]
fn dead_at_a_checkpoint_the_next_run_ends_like_a_fresh_one() {
    let project = Sandbox::with(PROJECT);
    project.write("models/large.sql", LARGE);
    let passed = die_at(&project, points().filter(|point| point.contains("checkpoint")));
    assert_passed(&passed, |_| true);
}

/// Lets a run of the project die at each point; returns how often it did.
fn die_everywhere(project: &Sandbox) -> BTreeMap<&'static str, usize> {
    die_at(project, points())
}

/// Lets a run of the project die at each of these points; returns how often it did.
fn die_at(project: &Sandbox, points: impl Iterator<Item = &'static str>) -> BTreeMap<&'static str, usize> {
    let fresh = project.copied();
    if fresh.is_known() {
        fresh.forget();
    }
    fresh.run(0);
    let expected = fresh.tables();
    let mut passed = BTreeMap::new();
    for point in points {
        let deaths = VISITS
            .iter()
            .take_while(|visits| dies_and_recovers(project, point, **visits, &expected));
        passed.insert(point, deaths.count());
    }
    passed
}

/// Dies at a point, if it is passed so often, and goes on. Says whether it died.
fn dies_and_recovers(project: &Sandbox, point: &str, visits: u32, expected: &[String]) -> bool {
    let sandbox = project.copied();
    if !sandbox.dies_at(point, visits) {
        return false;
    }
    let story = format!("dead at {point} after {visits} visits");
    sandbox.expect_run(0, &story);
    assert_eq!(sandbox.tables(), expected, "{story}");
    let again = sandbox.expect_run(0, &story);
    assert!(again.is_empty(), "a second run did {again:?} after {story}");
    true
}

fn points() -> impl Iterator<Item = &'static str> {
    watershed_controller::store::CRASH_POINTS
        .iter()
        .chain(watershed_drivers::CRASH_POINTS)
        .copied()
}

/// Fails if a point that this sort of change passes was not passed: the points moved, or the change is none.
fn assert_passed(passed: &BTreeMap<&'static str, usize>, expected: impl Fn(&str) -> bool) {
    let missed = passed
        .iter()
        .filter(|(point, deaths)| **deaths == 0 && expected(point));
    let missed = missed.map(|(point, _)| *point).collect::<Vec<_>>();
    assert!(missed.is_empty(), "nothing died at {missed:?}");
}

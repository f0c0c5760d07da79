//! Incremental models through the program: which rows come, what a death costs, and what an edit waits for.
//!
//! `WATERSHED_ROUNDS` says how many changes of data the random history makes, `WATERSHED_SEED` which.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::going::Going;
use crate::sandbox::Sandbox;

/// One model for each way in which new rows come, and one that reads such a model.
const PROJECT: &[(&str, &str)] = &[
    ("watershed.yaml", ""),
    ("data/events.csv", "id,day,v\n1,1,10\n2,1,20\n3,2,30\n"),
    (
        "sources/events.yaml",
        "type: source\nconnector: local_file\npath: data/events.csv\n",
    ),
    (
        "models/added.yaml",
        "type: model\nincremental: true\nsql: SELECT id, day, v FROM events\n",
    ),
    (
        "models/newest.yaml",
        "type: model\nincremental: true\nstate: {sql: SELECT max(id) AS top FROM newest}\n\
         sql: SELECT id, day, v FROM events {{ if incremental }} WHERE id > {{ .state.top }} {{ end }}\n",
    ),
    (
        "models/merged.yaml",
        "type: model\nincremental: true\noutput: {unique_key: id}\nsql: SELECT id, day, v FROM events\n",
    ),
    (
        "models/by_day.yaml",
        "type: model\nincremental: true\noutput: {partition_by: day}\nsql: SELECT id, day, v FROM events\n",
    ),
    (
        "models/total.yaml",
        "type: model\nmaterialize: true\nsql: SELECT count(*) AS n, sum(v)::BIGINT AS v FROM merged\n",
    ),
];

#[test]
fn new_data_is_added_and_a_run_without_any_adds_nothing() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    assert_eq!(sandbox.done(0), "");
    sandbox.write("data/events.csv", "id,day,v\n3,2,33\n4,3,40\n");
    assert_eq!(
        sandbox.done(0),
        "added:built by_day:built events:built merged:built newest:built total:built"
    );
    let values = |model: &str| {
        let sql = format!("SELECT string_agg(v, ' ' ORDER BY id, v) FROM {model}");
        sandbox.query(&sql)["rows"][0][0].clone()
    };
    assert_eq!(values("added"), "10 20 30 33 40");
    assert_eq!(values("newest"), "10 20 30 40");
    assert_eq!(values("merged"), "10 20 33 40");
    assert_eq!(values("by_day"), "10 20 33 40");
    assert_eq!(sandbox.query("SELECT n, v FROM total")["rows"], json!([[4, 103]]));
    assert_eq!(sandbox.done(0), "");
}

#[test]
fn an_edit_that_would_lose_rows_waits_for_approval() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    sandbox.write("data/events.csv", "id,day,v\n9,9,90\n");
    sandbox.run(0);
    sandbox.edit("models/added.yaml", "id, day, v", "id, day, v * 2 AS v");
    let said = sandbox.call(&["run"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("held"), "{}", said.stderr);
    assert!(said.stderr.contains("watershed approve added"), "{}", said.stderr);
    assert_eq!(sandbox.query("SELECT count(*) FROM added")["rows"], json!([[4]]));

    let wrong = sandbox.call(&["approve", "merged"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    assert!(
        wrong.stderr.contains("no edit that waits for approval"),
        "{}",
        wrong.stderr
    );
    let approved = sandbox.call(&["approve", "added"]);
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    assert_eq!(
        sandbox.query("SELECT id, v FROM added")["rows"],
        json!([[9, 180]])
    );
    assert_eq!(sandbox.done(0), "");
}

#[test]
fn a_new_column_is_refused_until_the_settings_take_it_and_no_row_is_lost() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    sandbox.edit(
        "models/added.yaml",
        "incremental: true",
        "incremental: true\nchange_mode: patch",
    );
    sandbox.edit("models/added.yaml", "id, day, v", "id, day, v, 'x' AS w");
    assert_eq!(sandbox.done(0), "", "a patch builds nothing");
    sandbox.write("data/events.csv", "id,day,v\n9,9,90\n");
    let said = sandbox.call(&["run"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("columns-changed"), "{}", said.stderr);
    assert!(said.stderr.contains("on_schema_change"), "{}", said.stderr);
    // The hint is followed; that throws nothing away, so nothing is held.
    sandbox.edit(
        "models/added.yaml",
        "incremental: true",
        "incremental: true\noutput: {on_schema_change: append_new_columns}",
    );
    assert_eq!(sandbox.done(0), "added:built");
    let rows = sandbox.query("SELECT id, w FROM added ORDER BY id")["rows"].clone();
    assert_eq!(rows, json!([[1, null], [2, null], [3, null], [9, "x"]]));
    // Neither does another way in which later rows come.
    sandbox.edit("models/merged.yaml", "unique_key: id", "unique_key: [id, day]");
    assert_eq!(sandbox.done(0), "");
}

#[test]
fn dead_at_any_point_of_a_step_no_row_is_lost_or_comes_twice() {
    let project = Sandbox::with(PROJECT);
    project.run(0);
    project.write("data/events.csv", "id,day,v\n3,2,33\n4,3,40\n");
    let undisturbed = project.copied();
    undisturbed.run(0);
    let expected = undisturbed.tables();
    let points = watershed_controller::store::CRASH_POINTS
        .iter()
        .chain(watershed_drivers::CRASH_POINTS);
    let mut deaths = BTreeMap::new();
    for point in points {
        for visits in [0, 1, 3] {
            let sandbox = project.copied();
            if !sandbox.dies_at(point, visits) {
                break;
            }
            *deaths.entry(*point).or_insert(0) += 1;
            let story = format!("dead at {point} after {visits} visits");
            sandbox.expect_run(0, &story);
            assert_eq!(sandbox.tables(), expected, "{story}");
            let again = sandbox.expect_run(0, &story);
            assert_eq!(again, BTreeMap::new(), "{story}");
        }
    }
    assert_eq!(
        deaths.get("drivers::build::before_commit"),
        Some(&3),
        "{deaths:?}"
    );
    assert_eq!(deaths.get("drivers::build::after_commit"), Some(&3), "{deaths:?}");
}

/// A row: id, day, v.
type Row = (i64, i64, i64);

/// The rows of each model, by a reference that knows no SQL.
struct Reference {
    added: Vec<Row>,
    newest: Vec<Row>,
    merged: Vec<Row>,
    by_day: Vec<Row>,
}

impl Reference {
    fn from_rows(first: &[Row]) -> Self {
        Self {
            added: first.to_vec(),
            newest: first.to_vec(),
            merged: first.to_vec(),
            by_day: first.to_vec(),
        }
    }

    fn take(&mut self, rows: &[Row]) {
        self.added.extend(rows);
        let top = self.newest.iter().map(|row| row.0).max();
        self.newest.extend(rows.iter().filter(|row| Some(row.0) > top));
        self.merged.retain(|old| rows.iter().all(|new| new.0 != old.0));
        self.merged.extend(rows);
        self.by_day.retain(|old| rows.iter().all(|new| new.1 != old.1));
        self.by_day.extend(rows);
    }

    fn expected(&self) -> Value {
        let all = [&self.added, &self.by_day, &self.merged, &self.newest];
        let sorted = all.map(|rows| {
            let mut rows = rows.clone();
            rows.sort_unstable();
            rows
        });
        json!(sorted)
    }
}

fn held(sandbox: &Sandbox) -> Value {
    let all = ["added", "by_day", "merged", "newest"].map(|model| {
        let sql = format!("SELECT id, day, v FROM {model} ORDER BY ALL");
        sandbox.query(&sql)["rows"].clone()
    });
    json!(all)
}

#[test]
fn random_data_and_random_deaths_leave_what_a_naive_reference_holds() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("WATERSHED_SEED").unwrap_or(7);
    let rounds = number("WATERSHED_ROUNDS").unwrap_or(8);
    let mut rng = SmallRng::seed_from_u64(seed);
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    let mut reference = Reference::from_rows(&[(1, 1, 10), (2, 1, 20), (3, 2, 30)]);
    let points: Vec<&str> = watershed_controller::store::CRASH_POINTS
        .iter()
        .chain(watershed_drivers::CRASH_POINTS)
        .copied()
        .collect();
    for round in 0..rounds {
        let rows = random_rows(&mut rng, i64::try_from(round).expect("a small number"));
        let mut text = "id,day,v\n".to_owned();
        for (id, day, v) in &rows {
            writeln!(text, "{id},{day},{v}").expect("a text takes all");
        }
        sandbox.write("data/events.csv", &text);
        reference.take(&rows);
        let mut story = format!("seed {seed}, round {round}");
        for _ in 0..rng.random_range(0..3) {
            let point = points.choose(&mut rng).expect("a crash point");
            let died = sandbox.dies_at(point, rng.random_range(0..4));
            write!(story, ", {point}: {died}").expect("a text takes all");
        }
        sandbox.expect_run(0, &story);
        assert_eq!(held(&sandbox), reference.expected(), "{story}");
    }
}

/// Some rows with different ids, a few of which were there before. Their values tell rounds apart, so that no file has
/// the content of another.
fn random_rows(rng: &mut SmallRng, round: i64) -> Vec<Row> {
    let first = 2 * round + rng.random_range(0..3);
    let count = rng.random_range(1..6);
    (first..first + count)
        .map(|id| (id, rng.random_range(0..4), 1_000 * (round + 1) + id))
        .collect()
}

/// A model that takes one row whenever it is built, every second.
const TICKS: &[(&str, &str)] = &[
    ("watershed.yaml", ""),
    (
        "models/tick.yaml",
        "type: model\nincremental: true\nrefresh: {every: 1s, run_in_dev: true}\nsql: SELECT now() AS at\n",
    ),
    (
        "models/at_night.yaml",
        "type: model\nrefresh: {cron: 0 3 * * *}\nsql: SELECT 1 AS x\n",
    ),
];

#[test]
fn a_schedule_is_kept_under_start_and_made_up_for_by_the_next_run() {
    let sandbox = Sandbox::with(TICKS);
    let mut start = Going::settled(&sandbox);
    for _ in 0..3 {
        start.until_done(&["tick:built"]);
    }
    let status = sandbox.call(&["status", "--json"]).json();
    let resources = status["resources"].as_array().expect("a list of resources");
    let next = |name: &str| {
        let is_it = |resource: &&Value| resource["name"] == name;
        resources.iter().find(is_it).expect("a resource")["next_run_at"].clone()
    };
    assert!(next("tick").is_string(), "{status}");
    assert!(next("at_night").is_null(), "times do not count in dev: {status}");
    start.stop();
    let rows = || {
        sandbox.query("SELECT count(*) FROM tick")["rows"][0][0]
            .as_i64()
            .expect("a number")
    };
    let before = rows();
    assert!(before >= 4, "{before} rows");
    // It is due by now, or will be within the second.
    while sandbox.done(0).is_empty() {}
    assert!(rows() > before, "missed times are made up for");
    let hint = sandbox.call(&["validate"]);
    assert!(hint.stderr.contains("schedule-not-in-dev"), "{}", hint.stderr);
    let prod = sandbox.call(&["validate", "--environment", "prod"]);
    assert!(!prod.stderr.contains("schedule-not-in-dev"), "{}", prod.stderr);
}

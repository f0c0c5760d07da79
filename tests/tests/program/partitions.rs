//! Partitioned models through the program: which partitions are built, what a death costs, and how people see them.
//!
//! `WATERSHED_ROUNDS` says how many changes of files the random history makes, `WATERSHED_SEED` which.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// Two models over the same files: one adds partitions, one makes all of them anew.
const PROJECT: &[(&str, &str)] = &[
    ("watershed.yaml", ""),
    ("data/1.csv", "id,v\n1,10\n2,20\n"),
    ("data/2.csv", "id,v\n3,30\n"),
    ("data/3.csv", "id,v\n4,40\n"),
    (
        "models/added.yaml",
        "type: model\nincremental: true\npartitions: {glob: 'data/*.csv'}\n\
         sql: SELECT id::BIGINT AS id, v::BIGINT AS v FROM read_csv('{{ .partition.uri }}', header = true)\n",
    ),
    (
        "models/whole.yaml",
        "type: model\npartitions: {glob: {path: 'data/*.csv'}}\n\
         sql: SELECT id::BIGINT AS id, v::BIGINT AS v FROM read_csv('{{ .partition.uri }}', header = true)\n",
    ),
    (
        "models/total.yaml",
        "type: model\nmaterialize: true\nsql: SELECT count(*) AS n, sum(v)::BIGINT AS v FROM added\n",
    ),
];

fn ids(sandbox: &Sandbox, model: &str) -> Value {
    let sql = format!("SELECT coalesce(string_agg(v, ' ' ORDER BY id, v), '') FROM {model}");
    sandbox.query(&sql)["rows"][0][0].clone()
}

#[test]
fn new_and_changed_files_are_read_and_others_are_not() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    assert_eq!(sandbox.done(0), "");
    sandbox.write("data/2.csv", "id,v\n3,33\n");
    sandbox.write("data/4.csv", "id,v\n5,50\n");
    assert_eq!(sandbox.done(0), "added:built total:built whole:built");
    assert_eq!(ids(&sandbox, "added"), "10 20 33 40 50");
    assert_eq!(ids(&sandbox, "whole"), "10 20 33 40 50");
    assert_eq!(sandbox.query("SELECT n, v FROM total")["rows"], json!([[5, 153]]));
    assert_eq!(sandbox.done(0), "");

    let listed = sandbox.call(&["partitions", "added", "--json"]).json();
    assert_eq!(listed["schema"], "watershed.partitions/1");
    assert_eq!(
        listed["counts"],
        json!({"done": 4, "staged": 0, "failed": 0, "asked": 0, "gone": 0})
    );
    let ran = |uri: &str| {
        let all = listed["partitions"].as_array().expect("a list");
        let one = all
            .iter()
            .find(|one| one["data"]["uri"] == uri)
            .expect("a partition");
        one["ran_at"].as_str().expect("a time").to_owned()
    };
    assert_eq!(ran("data/1.csv").min(ran("data/3.csv")), ran("data/1.csv"));
    assert!(ran("data/1.csv") < ran("data/2.csv"), "{listed}");
    let text = sandbox.call(&["partitions", "added"]).stdout;
    assert!(text.contains("added: 4 partitions: 4 done"), "{text}");
    assert!(text.contains("uri=data/2.csv"), "{text}");
}

#[test]
fn folders_that_a_query_chose_are_read_again_when_one_of_their_files_is_another() {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("data/1/a.csv", "v\n1\n"),
        ("data/1/b.csv", "v\n2\n"),
        ("data/2/a.csv", "v\n3\n"),
        ("data/3/a.csv", "v\n4\n"),
        (
            "models/chosen.yaml",
            "type: model\nincremental: true\npartitions:\n  glob:\n    path: 'data/*/*.csv'\n    partition: directory\n\
             \x20   transform_sql: SELECT * FROM {{ .table }} WHERE uri <> 'data/3'\n\
             output: {incremental_strategy: partition_overwrite}\n\
             sql: SELECT v::BIGINT AS v, '{{ .partition.uri }}' AS folder FROM read_csv('{{ .partition.uri }}/*.csv')\n",
        ),
    ]);
    let rows = || sandbox.query("SELECT folder, v FROM chosen ORDER BY ALL")["rows"].clone();
    sandbox.run(0);
    assert_eq!(rows(), json!([["data/1", 1], ["data/1", 2], ["data/2", 3]]));

    // Its time is the one of before, as in a store whose times are seconds.
    let file = sandbox.path().join("data/2/a.csv");
    let time = std::fs::metadata(&file)
        .and_then(|data| data.modified())
        .expect("a time");
    sandbox.write("data/2/a.csv", "v\n33\n");
    let written = std::fs::File::options()
        .write(true)
        .open(&file)
        .expect("the file is there");
    written.set_modified(time).expect("a time is set");
    sandbox.run(0);
    assert_eq!(rows(), json!([["data/1", 1], ["data/1", 2], ["data/2", 33]]));

    // The newest of the folder stays.
    sandbox.remove("data/1/a.csv");
    sandbox.run(0);
    assert_eq!(rows(), json!([["data/1", 2], ["data/2", 33]]));
    assert_eq!(sandbox.done(0), "");
}

#[test]
fn a_broken_file_fails_alone_and_is_built_again_on_request() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    sandbox.write("data/2.csv", "id,v\nthree,30\n");
    sandbox.write("data/5.csv", "id,v\n6,60\n");
    let said = sandbox.call(&["run"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("partitions-failed"), "{}", said.stderr);
    assert!(said.stderr.contains("data/2.csv"), "{}", said.stderr);
    assert!(
        said.stderr.contains("watershed partitions added --errored"),
        "{}",
        said.stderr
    );
    // The table that adds has the others; the one that is made anew stays as it was.
    assert_eq!(ids(&sandbox, "added"), "10 20 30 40 60");
    assert_eq!(ids(&sandbox, "whole"), "10 20 30 40");
    let listed = sandbox
        .call(&["partitions", "added", "--errored", "--json"])
        .json();
    let failed = listed["partitions"].as_array().expect("a list");
    assert_eq!(failed.len(), 1, "{listed}");
    assert_eq!(failed[0]["data"]["uri"], "data/2.csv");
    assert!(
        failed[0]["error"].as_str().expect("an error").contains("three"),
        "{listed}"
    );

    sandbox.write("data/2.csv", "id,v\n3,31\n");
    let again = sandbox.call(&["refresh", "added", "--errored"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(ids(&sandbox, "added"), "10 20 31 40 60");
    let none = sandbox.call(&["refresh", "added", "--errored", "--json"]);
    assert_eq!(none.code, Some(0), "{}", none.stderr);
    assert_eq!(none.json()["summary"]["outcomes"]["done"], 0);
}

#[test]
fn single_partitions_are_named_by_key_or_by_value() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    let one = sandbox.call(&["refresh", "added", "--partition", "data/3.csv"]);
    assert_eq!(one.code, Some(0), "{}", one.stderr);
    let listed = sandbox
        .call(&["partitions", "added", "--json", "--limit", "1"])
        .json();
    let latest = &listed["partitions"][0];
    assert_eq!(latest["data"]["uri"], "data/3.csv", "{listed}");
    let key = latest["key"].as_str().expect("a key");
    let by_key = sandbox.call(&["refresh", "added", "--partition", &key[..6]]);
    assert_eq!(by_key.code, Some(0), "{}", by_key.stderr);
    assert_eq!(ids(&sandbox, "added"), "10 20 30 40");

    for (arguments, message) in [
        (
            ["refresh", "added", "--partition", "data/9.csv"],
            "has no partition \"data/9.csv\"",
        ),
        (
            ["refresh", "whole", "--partition", "data/1.csv"],
            "is not incremental",
        ),
        (
            ["refresh", "total", "--partition", "data/1.csv"],
            "has no partitions",
        ),
    ] {
        let said = sandbox.call(&arguments);
        assert_eq!(said.code, Some(2), "{}", said.stderr);
        assert!(said.stderr.contains(message), "{}", said.stderr);
    }
}

#[test]
fn dead_at_any_point_of_a_partition_it_goes_on_and_ends_alike() {
    let project = Sandbox::with(PROJECT);
    project.run(0);
    project.write("data/2.csv", "id,v\n3,33\n");
    project.write("data/4.csv", "id,v\n5,50\n");
    let undisturbed = project.copied();
    undisturbed.run(0);
    let expected = [ids(&undisturbed, "added"), ids(&undisturbed, "whole")];
    let points = watershed_drivers::CRASH_POINTS
        .iter()
        .filter(|point| point.contains("::stage::") || point.contains("::build::"));
    let mut deaths = BTreeMap::new();
    for point in points {
        for visits in [0, 1, 4] {
            let sandbox = project.copied();
            if !sandbox.dies_at(point, visits) {
                break;
            }
            *deaths.entry(*point).or_insert(0) += 1;
            let story = format!("dead at {point} after {visits} visits");
            sandbox.expect_run(0, &story);
            assert_eq!(
                [ids(&sandbox, "added"), ids(&sandbox, "whole")],
                expected,
                "{story}"
            );
            assert_eq!(
                sandbox.query("SELECT n, v FROM total")["rows"],
                json!([[5, 153]]),
                "{story}"
            );
            assert_eq!(sandbox.expect_run(0, &story), BTreeMap::new(), "{story}");
        }
    }
    // Two partitions of one model, four of the other.
    assert_eq!(deaths["drivers::stage::before_commit"], 3, "{deaths:?}");
    assert_eq!(deaths["drivers::stage::after_commit"], 3, "{deaths:?}");
}

#[test]
fn random_files_and_random_deaths_leave_what_the_files_hold() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("WATERSHED_SEED").unwrap_or(5);
    let rounds = number("WATERSHED_ROUNDS").unwrap_or(6);
    let mut rng = SmallRng::seed_from_u64(seed);
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    // The value in each file; a file that is gone keeps its rows in what adds.
    let mut files: BTreeMap<u64, u64> = BTreeMap::from([(2, 30), (3, 40)]);
    let mut added = files.clone();
    let points: Vec<&str> = watershed_controller::store::CRASH_POINTS
        .iter()
        .chain(watershed_drivers::CRASH_POINTS)
        .copied()
        .collect();
    for round in 0..rounds {
        let mut story = format!("seed {seed}, round {round}");
        for _ in 0..rng.random_range(1..4) {
            let file = rng.random_range(2..9);
            if rng.random_range(0..4) == 0 {
                let path = format!("data/{file}.csv");
                if files.remove(&file).is_some() {
                    sandbox.remove(&path);
                }
            } else {
                let value = 100 * (round + 1) + rng.random_range(0..50);
                sandbox.write(&format!("data/{file}.csv"), &format!("id,v\n{file},{value}\n"));
                files.insert(file, value);
                added.insert(file, value);
            }
        }
        for _ in 0..rng.random_range(0..3) {
            let point = points.choose(&mut rng).expect("a crash point");
            let died = sandbox.dies_at(point, rng.random_range(0..6));
            write!(story, ", {point}: {died}").expect("a text takes all");
        }
        sandbox.expect_run(0, &story);
        let held = |model: &str| {
            let sql = format!("SELECT id, v FROM {model} WHERE v NOT IN (10, 20) ORDER BY ALL");
            sandbox.query(&sql)["rows"].clone()
        };
        let rows = |of: &BTreeMap<u64, u64>| {
            let rows = of.iter().map(|(file, value)| {
                let id = match value {
                    30 => 3,
                    40 => 4,
                    _ => *file,
                };
                (id, *value)
            });
            let mut rows: Vec<(u64, u64)> = rows.collect();
            rows.sort_unstable();
            json!(rows)
        };
        assert_eq!(held("whole"), rows(&files), "{story}");
        assert_eq!(held("added"), rows(&added), "{story}");
        assert_eq!(sandbox.expect_run(0, &story), BTreeMap::new(), "{story}");
    }
}

#[test]
fn partitions_come_in_once_a_file_whose_columns_did_not_fit_is_put_right() {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "models/raw.yaml",
            "type: model\nincremental: true\npartitions: {glob: 'data/f_*.csv'}\n\
             sql: SELECT * FROM read_csv('{{ .partition.uri }}')\n",
        ),
        ("data/f_1.csv", "day,n\n1,1\n1,2\n"),
        ("data/f_2.csv", "day,n\n2,1\n2,2\n"),
    ]);
    sandbox.run(0);
    sandbox.write("data/f_3.csv", "day,n\n3,1\n3,oops\n");
    let refused = sandbox.call(&["run"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("columns-changed"), "{}", refused.stderr);
    sandbox.write("data/f_3.csv", "day,n\n3,1\n3,2\n");
    sandbox.write("data/f_4.csv", "day,n\n4,1\n");
    sandbox.run(0);
    let rows = "SELECT day, count(*) FROM raw GROUP BY day ORDER BY day";
    assert_eq!(
        sandbox.query(rows)["rows"],
        json!([[1, 2], [2, 2], [3, 2], [4, 1]])
    );
    assert!(sandbox.run(0).is_empty(), "nothing is left to do");
}

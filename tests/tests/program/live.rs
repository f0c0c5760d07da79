//! Edits while `start` goes on: what each costs, what is told, and what others see of it.

use std::os::unix::fs::symlink;

use rustix::process::Signal;
use serde_json::json;

use crate::going::Going;
use crate::sandbox::{Sandbox, chain_of};

const TABLE: &str = "-- @materialize: true\n";
/// Longer than any test waits; it is stopped or edited before.
const ENDLESS: &str =
    "-- @materialize: true\nSELECT sum(a.range * b.range) AS s FROM range(10000000) a, range(90000) b\n";

/// A source, two tables over it, one that reads both, and one apart.
fn project() -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        ("data/raw.csv", "k,v\n1,10\n2,20\n"),
        (
            "sources/raw.yaml",
            "type: source\nconnector: local_file\npath: data/raw.csv\n",
        ),
        ("models/one.sql", &table("SELECT k, v AS one FROM raw")),
        ("models/two.sql", &table("SELECT k, v * 2 AS two FROM raw")),
        (
            "models/joined.sql",
            &table("SELECT * FROM one JOIN two USING (k)"),
        ),
        ("models/apart.sql", &table("SELECT 7 AS seven")),
    ])
}

fn table(query: &str) -> String {
    format!("{TABLE}{query}\n")
}

#[test]
fn an_edit_builds_what_it_touches_and_what_depends_on_it() {
    let project = project();
    let mut start = Going::settled(&project);
    project.edit("models/two.sql", "v * 2", "v * 3");
    assert_eq!(start.done(), "joined:built two:built");
    assert_eq!(
        project.query("SELECT two::INTEGER AS two FROM joined ORDER BY 1")["rows"],
        json!([[30], [60]])
    );
    project.write("models/more.sql", "SELECT count(*) AS n FROM joined\n");
    assert_eq!(start.done(), "more:built");
    project.remove("models/more.sql");
    assert_eq!(start.done(), "more:dropped");
    start.stop();
    assert_eq!(project.done(0), "", "nothing is left to do for a run");
}

#[test]
fn an_edit_that_changes_no_meaning_does_nothing() {
    let project = project();
    let mut start = Going::settled(&project);
    project.edit("models/two.sql", "SELECT k", "-- why twice?\nSELECT  k");
    project.write("README.md", "not a project file");
    assert_eq!(start.round().done(), "");
    project.edit("models/apart.sql", "7", "8");
    assert_eq!(start.done(), "apart:built");
}

#[test]
fn a_mistake_is_told_with_its_place_and_is_said_to_be_mended() {
    let project = project();
    let mut start = Going::settled(&project);
    project.edit("models/two.sql", "v * 2", "nothing * 2");
    let round = start.round();
    assert_eq!(round.done(), "joined:skipped two:failed");
    assert_eq!(round.told("diagnostic"), ["unknown-column models/two.sql:2"]);
    assert_eq!(round.exit_code(), Some(1));
    assert_eq!(
        project.query("SELECT count(*) AS n FROM joined")["rows"],
        json!([[2]]),
        "the last good rows stay"
    );
    project.edit("models/two.sql", "nothing * 2", "v * 2");
    let round = start.round();
    assert_eq!(round.told("fixed"), ["unknown-column models/two.sql:2"]);
    assert_eq!((round.exit_code(), round.done().as_str()), (Some(0), ""));
}

#[test]
fn a_broken_file_that_is_renamed_is_not_said_to_be_fixed() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/old.sql", "SELECT * FROM nope"),
        ("models/whole.sql", "SELECT 1 AS x"),
    ]);
    let mut start = Going::settled(&project);
    project.rename("models/old.sql", "models/new.sql");
    project.write("models/last.sql", "SELECT 2 AS x");
    let mut fixed = Vec::new();
    loop {
        let round = start.round();
        fixed.extend(round.told("fixed"));
        if round.done().contains("last:built") {
            assert_eq!(round.exit_code(), Some(1));
            break;
        }
    }
    assert!(fixed.is_empty(), "{fixed:?}");
    // Another one that says the same is one of its own.
    project.write("models/second.sql", "SELECT * FROM nope");
    start.until_done(&["second:failed"]);
    project.remove("models/second.sql");
    let round = start.round();
    assert_eq!(round.told("fixed"), ["unknown-table models/second.sql:1"]);
}

#[test]
fn a_file_that_does_not_compile_keeps_its_output_until_it_is_mended() {
    let project = project();
    let mut start = Going::settled(&project);
    let whole = "type: source\nconnector: local_file\npath: data/raw.csv\n";
    project.write("sources/raw.yaml", "type: source\nconnector: [local_file\n");
    let round = start.round();
    assert_eq!(round.exit_code(), Some(1));
    assert_eq!(
        round.told("diagnostic").len(),
        1,
        "{:?}",
        round.told("diagnostic")
    );
    assert_eq!(
        project.query("SELECT count(*) AS n FROM raw")["rows"],
        json!([[2]])
    );
    project.write("sources/raw.yaml", whole);
    let round = start.round();
    assert_eq!(round.told("fixed").len(), 1);
    assert_eq!((round.exit_code(), round.done().as_str()), (Some(0), ""));
}

#[test]
fn a_missing_manifest_deletes_nothing() {
    let project = project();
    let mut start = Going::settled(&project);
    project.rename("watershed.yaml", "kept");
    let round = start.round();
    assert_eq!((round.exit_code(), round.done().as_str()), (Some(1), ""));
    project.rename("kept", "watershed.yaml");
    let round = start.round();
    assert_eq!((round.exit_code(), round.done().as_str()), (Some(0), ""));
    assert_eq!(
        project.query("SELECT count(*) AS n FROM joined")["rows"],
        json!([[2]])
    );
}

#[test]
fn data_files_are_watched_wherever_they_are() {
    let project = project();
    let outside = tempfile::tempdir().expect("a folder can be made");
    let pattern = outside.path().join("deep/*.csv");
    let query = format!("SELECT sum(n) AS n FROM read_csv('{}')", pattern.display());
    project.write("models/outside.sql", &table(&query));
    let mut start = Going::settled(&project);
    project.write("data/raw.csv", "k,v\n1,10\n2,20\n3,30\n");
    assert_eq!(start.done(), "joined:built one:built raw:built two:built");
    std::fs::create_dir(outside.path().join("deep")).expect("a folder can be made");
    std::fs::write(outside.path().join("deep/a.csv"), "n\n1\n").expect("a file can be written");
    start.until_done(&["outside:built"]);
    std::fs::write(outside.path().join("deep/b.csv"), "n\n2\n").expect("a file can be written");
    start.until_done(&["outside:built"]);
    assert_eq!(
        project.query("SELECT n::INTEGER AS n FROM outside")["rows"],
        json!([[3]])
    );
    project.write("data/late/x.csv", "x\n5\n");
    project.write(
        "models/late.sql",
        &table("SELECT * FROM read_csv('data/late/*.csv')"),
    );
    start.until_done(&["late:built"]);
    project.write("data/late/y.csv", "x\n6\n");
    start.until_done(&["late:built"]);
}

#[test]
fn files_that_links_lead_to_are_watched() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "sources/raw.yaml",
            "type: source\nconnector: local_file\npath: data/raw.csv\n",
        ),
        ("models/of_env.sql", &table("SELECT {{ .env.n }} AS n")),
        ("data/here.txt", ""),
    ]);
    let outside = tempfile::tempdir().expect("a folder can be made");
    let write = |path: &str, text: &str| {
        let path = outside.path().join(path);
        std::fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder can be made");
        std::fs::write(path, text).expect("a file can be written");
    };
    let link = |target: &str, link: &std::path::Path| symlink(target, link).expect("a link can be made");
    write("m.sql", &table("SELECT 1 AS x"));
    write("..one/raw.csv", "k\n1\n");
    write("..two/raw.csv", "k\n2\n");
    write("env", "n=1\n");
    // As settings of containers are mounted: all of them change with one link.
    link("..one", &outside.path().join("..data"));
    link("..data/raw.csv", &outside.path().join("raw.csv"));
    for (target, place) in [
        ("m.sql", "models/m.sql"),
        ("raw.csv", "data/raw.csv"),
        ("env", ".env"),
    ] {
        let target = outside.path().join(target);
        link(
            target.to_str().expect("it is a text"),
            &project.path().join(place),
        );
    }
    let mut start = Going::settled(&project);
    write("m.sql", &table("SELECT 2 AS x"));
    start.until_done(&["m:built"]);
    write("new.sql", &table("SELECT 3 AS x"));
    std::fs::rename(outside.path().join("new.sql"), outside.path().join("m.sql"))
        .expect("it takes the place");
    start.until_done(&["m:built"]);
    write("env", "n=2\n");
    start.until_done(&["of_env:built"]);
    link("..two", &outside.path().join("..next"));
    std::fs::rename(outside.path().join("..next"), outside.path().join("..data"))
        .expect("it takes the place");
    start.until_done(&["raw:built"]);
    write("..two/raw.csv", "k\n3\n");
    start.until_done(&["raw:built"]);
    let rows = project.query("SELECT m.x, of_env.n, raw.k::INTEGER AS k FROM m, of_env, raw");
    assert_eq!(rows["rows"], json!([[3, 2, 3]]));
}

#[test]
fn renames_are_done_live_and_build_nothing() {
    let project = project();
    let mut start = Going::settled(&project);
    project.rename("models/apart.sql", "models/alone.sql");
    assert_eq!(start.done(), "alone:renamed");
    // Readers follow in the same save of many files.
    let batch = project.path().join("batch");
    std::fs::create_dir(&batch).expect("a folder can be made");
    std::fs::write(
        batch.join("joined.sql"),
        table("SELECT * FROM first JOIN two USING (k)"),
    )
    .expect("it is written");
    project.rename("models/one.sql", "models/first.sql");
    project.rename("batch/joined.sql", "models/joined.sql");
    assert_eq!(start.done(), "first:renamed");
    project.rename("models/first.sql", "models/FIRST.sql");
    assert_eq!(start.done(), "FIRST:renamed");
    start.stop();
    let names: Vec<String> = project
        .tables()
        .iter()
        .filter_map(|line| line.split(':').next().map(str::to_owned))
        .collect();
    assert_eq!(names, ["FIRST", "alone", "joined", "raw", "two"]);
    assert_eq!(project.done(0), "");
}

#[test]
fn names_that_are_swapped_or_move_on_in_a_chain_end_right() {
    let project = project();
    let mut start = Going::settled(&project);
    let swap = |one: &str, two: &str| {
        project.rename(one, "models/third");
        project.rename(two, one);
        project.rename("models/third", two);
    };
    project.write("models/other.sql", &table("SELECT 8 AS eight"));
    start.until_done(&["other:built"]);
    swap("models/apart.sql", "models/other.sql");
    assert_eq!(start.done(), "apart:renamed other:renamed");
    assert_eq!(
        project.query("SELECT * FROM apart")["columns"][0]["name"],
        "eight"
    );
    project.rename("models/other.sql", "models/last.sql");
    project.rename("models/apart.sql", "models/other.sql");
    assert_eq!(start.done(), "last:renamed other:renamed");
    assert_eq!(
        project.query("SELECT * FROM other")["columns"][0]["name"],
        "eight"
    );
    assert_eq!(project.query("SELECT * FROM last")["columns"][0]["name"], "seven");
}

#[test]
fn a_model_is_renamed_while_it_is_built() {
    let project = project();
    project.write("models/slow.sql", ENDLESS);
    let mut start = Going::start(&project);
    start.until(&[("resource_started", "slow")]);
    project.rename("models/slow.sql", "models/slower.sql");
    start.until(&[("resource_started", "slower")]);
    project.write("models/slower.sql", &table("SELECT 1 AS s"));
    start.until_done(&["slower:built"]);
    start.stop();
    assert!(project.tables().iter().any(|line| line.starts_with("slower:")));
    assert!(!project.tables().iter().any(|line| line.starts_with("slow:")));
}

#[test]
fn an_edit_stops_what_it_makes_pointless() {
    let project = project();
    project.write("models/slow.sql", ENDLESS);
    let mut start = Going::start(&project);
    start.until(&[("resource_started", "slow")]);
    project.write("models/slow.sql", &table("SELECT 1 AS s"));
    start.until_done(&["slow:built"]);
}

#[test]
fn an_edit_of_a_variable_builds_only_what_uses_it() {
    let project = project();
    project.write(".env", "factor=2\n");
    project.write("models/scaled.sql", &table("SELECT 1 * {{ .env.factor }} AS n"));
    let mut start = Going::settled(&project);
    project.write(".env", "factor=3\nother=1\n");
    assert_eq!(start.done(), "scaled:built");
    assert_eq!(project.query("SELECT n FROM scaled")["rows"], json!([[3]]));
}

#[test]
fn every_command_asks_the_process_that_goes_on() {
    let project = project();
    let mut start = Going::settled(&project);
    for (arguments, part) in [
        (vec!["status"], "model"),
        (vec!["status", "joined"], "joined"),
        (vec!["show", "joined"], "one"),
        (vec!["query", "SELECT 1 AS answer"], "answer"),
        (vec!["compile", "joined"], "JOIN"),
        (vec!["graph"], "joined"),
        (vec!["history", "joined"], "built"),
        (vec!["validate"], "no mistakes"),
        (vec!["reconcile", "joined"], "nothing to do"),
    ] {
        let said = project.call(&arguments);
        assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.stderr);
        assert!(said.stdout.contains(part), "{arguments:?}: {}", said.stdout);
    }
    assert_eq!(project.call(&["refresh", "two", "--downstream"]).code, Some(0));
    start.until_done(&["two:built"]);
    let run = project.call(&["run", "--json"]);
    assert_eq!((run.code, run.json()["command"].as_str()), (Some(0), Some("run")));
    assert!(run.stderr.is_empty(), "{}", run.stderr);
    project.edit("models/apart.sql", "7", "nothing");
    let run = project.call(&["run"]);
    assert_eq!(
        run.code,
        Some(1),
        "an attached run sees what was saved before it: {}",
        run.stdout
    );
    let who = format!(
        "`watershed start` (process {}) is already running here",
        start.process()
    );
    assert!(run.stderr.contains(&who), "{}", run.stderr);
}

#[test]
fn a_second_start_is_refused_and_a_run_is_waited_for() {
    let project = project();
    let start = Going::settled(&project);
    let second = project.call(&["start"]);
    assert_eq!(second.code, Some(3));
    assert!(
        second.stderr.contains("keeps the project converged already"),
        "{}",
        second.stderr
    );
    start.stop();
    project.write("models/slow.sql", ENDLESS);
    let mut run = Going::run(&project);
    run.until(&[("resource_started", "slow")]);
    let mut start = Going::start(&project);
    project.write("models/slow.sql", &table("SELECT 1 AS s"));
    run.signal(Signal::INT);
    assert_eq!(run.code(), Some(130));
    start.until_done(&["slow:built"]);
}

#[test]
fn killed_it_is_followed_by_another_as_if_nothing_had_happened() {
    let project = project();
    let start = Going::settled(&project);
    start.kill();
    project.edit("models/two.sql", "v * 2", "v * 3");
    let mut start = Going::start(&project);
    assert_eq!(start.round().done(), "joined:built two:built");
}

#[test]
fn stopped_by_a_signal_it_ends_with_the_document() {
    let project = project();
    let start = Going::settled(&project);
    let document = start.stop();
    assert_eq!(
        (document["command"].as_str(), document["exit_code"].as_i64()),
        (Some("start"), Some(143))
    );
    assert_eq!(document["summary"]["resources"], 5);
}

#[test]
fn a_model_that_failed_for_want_of_a_migration_is_built_once_that_is_there() {
    let project = project();
    project.write("models/wanting.sql", &table("SELECT x FROM made"));
    let mut start = Going::start(&project);
    assert_eq!(start.round().exit_code(), Some(1));
    let migration = "type: migration\nsql: CREATE TABLE made AS SELECT 5 AS x\n";
    project.write("migrations/made.yaml", migration);
    start.until_done(&["made:built", "wanting:built"]);
    assert_eq!(project.query("SELECT x FROM wanting")["rows"], json!([[5]]));
}

#[test]
fn an_edit_is_told_from_its_file_to_what_was_built_last() {
    let project = project();
    project.write("models/last.sql", &table("SELECT count(*) AS n FROM joined"));
    let mut start = Going::settled(&project);
    project.edit("models/two.sql", "v * 2", "v * 3");
    assert_eq!(start.done(), "joined:built last:built two:built");
    let of_two = [
        "project_parser/parser nudge ",
        "model/two edited models/two.sql",
        "model/joined parent ",
        "model/last parent ",
    ];
    let chains = |project: &Sandbox| {
        let run = project.call(&["history", "last", "--json"]).json()["runs"][0].clone();
        let explained = project.call(&["explain", "last", "--json"]).json();
        [chain_of(&run), chain_of(&explained["resource"]["last_run"])]
    };
    assert_eq!(chains(&project), [of_two, of_two]);
    let said = project.call(&["explain", "last"]).stdout;
    let words: Vec<&str> = said.split_whitespace().collect();
    assert!(
        words
            .join(" ")
            .contains("models/two.sql was edited → model/joined → model/last"),
        "{said}"
    );
    // Each edit has a chain of its own, however long the process goes on.
    project.edit("models/one.sql", "AS one", "+ 1 AS one");
    assert_eq!(start.done(), "joined:built last:built one:built");
    let of_one = [of_two[0], "model/one edited models/one.sql", of_two[2], of_two[3]];
    assert_eq!(chains(&project), [of_one, of_one]);
    start.stop();
    assert_eq!(chains(&project), [of_one, of_one], "as it is stored");
}

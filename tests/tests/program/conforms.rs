//! `debug conform`: the suite of engines against that of a project, on data of its own.

use std::fs;

use serde_json::Value;
use watershed_drivers::duckdb::ByHand;
use watershed_tests::postgres::Server;
use watershed_tests::server::extensions;

use crate::lake_engine::{IN_A_FILE, has_extensions, small};
use crate::sandbox::Sandbox;

/// Case about a second process, which a lake's epochs stand for.
const FENCE: &str = "while_an_epoch_is_held_no_other_process_builds";
/// Case about deaths at each point.
const DEATHS: &str = "whatever_the_moment_of_death_each_call_is_whole_or_absent";

/// Names of the cases that ended so.
fn ended(document: &Value, end: &str) -> Vec<String> {
    let cases = document["cases"].as_array().expect("cases are listed").iter();
    let ended = cases.filter(|case| case["end"] == end);
    ended
        .map(|case| case["name"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Files and folders that a trial has left in the state folder.
fn left(project: &Sandbox) -> usize {
    let state = project.path().join(".watershed/dev");
    let entries = fs::read_dir(state).into_iter().flatten().flatten();
    let of_trial = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("watershed_conform");
    entries.filter(|entry| of_trial(&entry.file_name())).count()
}

#[test]
fn e14_a_projects_file_is_held_to_what_it_promises_and_not_touched() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "models/days.sql",
            "-- @materialize: true\nSELECT range AS day FROM range(20)",
        ),
    ]);
    project.run(0);
    let before = fs::read(project.engine_file()).expect("the engine's file can be read");
    let said = project.call(&["debug", "conform", "--json"]);
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    let document = said.json();
    assert_eq!(ended(&document, "failed"), [""; 0]);
    assert_eq!(
        ended(&document, "not_tried"),
        [DEATHS, FENCE],
        "what can't be tried has not passed"
    );
    assert!(ended(&document, "passed").len() > 30, "{document}");
    assert!(
        document["left"].as_array().is_some_and(Vec::is_empty),
        "{document}"
    );
    let now = fs::read(project.engine_file()).expect("the engine's file can be read");
    assert!(now == before && left(&project) == 0, "nothing is left of it");
    assert!(project.run(0).is_empty(), "nothing is left to do");

    let said = project.call(&["debug", "conform", FENCE]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.contains("1 not tried here"), "{}", said.stdout);
    let is_said_to_be_kept = said.stdout.lines().any(|line| line.starts_with("kept"));
    assert!(!is_said_to_be_kept, "{}", said.stdout);
    let said = project.call(&["debug", "conform", "nothing_of_this_name"]);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
}

#[test]
fn e14_a_projects_lake_is_held_to_what_it_promises_in_a_schema_of_its_own() {
    let Some(server) = Server::start().filter(|_| has_extensions()) else {
        return;
    };
    let host = server.socket_folder().display();
    let project = small(&format!(
        "driver: ducklake\ncatalog: postgres\nhost: {host}\nuser: postgres\ndbname: postgres\ndata_path: files\n"
    ));
    project.run(0);
    let cases = [
        "a_rebuild_replaces_rows_tag_and_record_together",
        "what_is_not_ours_survives_and_is_named",
        FENCE,
    ];
    let said = project.call(&[&["debug", "conform", "--json"], &cases[..]].concat());
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    let document = said.json();
    assert_eq!(document["driver"], "ducklake");
    let mut passed = ended(&document, "passed");
    passed.sort();
    assert_eq!(passed, cases, "{document}");
    let hand = ByHand::in_memory();
    hand.run(&format!(
        "SET extension_directories = ['{}']",
        extensions().display()
    ));
    hand.run(&format!("ATTACH '{}' AS pg (TYPE postgres)", server.url()));
    let schemas = "SELECT nspname FROM postgres_query('pg', 'SELECT nspname::text FROM pg_namespace') \
                   WHERE nspname LIKE 'watershed%' ORDER BY 1";
    assert_eq!(hand.lines(schemas), ["watershed_project_dev"]);
    assert_eq!(left(&project), 0);
    assert!(project.run(0).is_empty(), "nothing is left to do");
}

#[test]
fn e14_a_lake_in_a_file_has_a_person_and_a_rival_as_well() {
    if !has_extensions() {
        return;
    }
    let project = small(IN_A_FILE);
    let said = project.call(&["debug", "conform", "--json", "a_persons_comment_is_no_tag", FENCE]);
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    assert_eq!(ended(&said.json(), "passed").len(), 2, "{}", said.stdout);
    assert!(
        !project.path().join("lake").exists(),
        "the project's lake is not made for it"
    );
}

//! Leaders of a lake: the epoch of the lease, and what is left of former leaders.

use watershed_drivers::duckdb::ByHand;
use watershed_tests::postgres::Server;
use watershed_tests::server::extensions;

use crate::connected::has_extension;
use crate::sandbox::Sandbox;

const LAKE: &str = "driver: ducklake\ncatalog: sqlite\npath: /LAKE/catalog.sqlite\ndata_path: /LAKE/files\n";

/// A project whose lake stands in a folder of its own.
fn project(lake: &tempfile::TempDir) -> Option<Sandbox> {
    if !has_extension("ducklake") || !has_extension("sqlite_scanner") {
        return None;
    }
    let connector = LAKE.replace("/LAKE", &lake.path().display().to_string());
    let project = Sandbox::with(&[
        ("watershed.yaml", "olap_connector: lake\n"),
        ("connectors/lake.yaml", &connector),
        (
            "models/days.sql",
            "-- @materialize: true\nSELECT range AS day FROM range(20)",
        ),
    ]);
    Some(project.extended())
}

fn newest_epoch(lake: &tempfile::TempDir) -> u64 {
    let reader = ByHand::in_memory();
    reader.run(&format!(
        "SET extension_directories = ['{}']",
        extensions().display()
    ));
    let catalog = lake.path().join("catalog.sqlite");
    reader.run(&format!(
        "ATTACH 'ducklake:sqlite:{}' AS lake (READ_ONLY)",
        catalog.display()
    ));
    let newest = reader.lines("SELECT arg_max(epoch, number) FROM lake._watershed.epochs");
    newest[0].parse().expect("a number")
}

fn rows(project: &Sandbox) -> serde_json::Value {
    project.query("SELECT count(*) FROM days")
}

#[test]
fn p8_who_deletes_the_state_folder_still_leads_the_lake() {
    let lake = tempfile::tempdir().expect("a folder");
    let Some(project) = project(&lake) else { return };
    for rows in 1..4 {
        project.write(
            "models/days.sql",
            &format!("-- @materialize: true\nSELECT range AS day FROM range({rows})"),
        );
        assert_eq!(project.run(0).len(), 1);
    }
    let before = newest_epoch(&lake);
    assert!(before >= 3, "each run leads under an epoch of its own: {before}");
    project.forget();
    project.run(0);
    project.edit("models/days.sql", "range(3)", "range(40)");
    assert_eq!(project.run(0).len(), 1);
    assert!(newest_epoch(&lake) > before);
    let said = rows(&project).to_string();
    assert!(said.contains("40"), "{said}");
}

#[test]
fn p8_a_copy_of_the_project_leads_after_the_first_one_and_that_after_it() {
    let lake = tempfile::tempdir().expect("a folder");
    let Some(project) = project(&lake) else { return };
    for rows in 1..4 {
        project.write(
            "models/days.sql",
            &format!("-- @materialize: true\nSELECT range AS day FROM range({rows})"),
        );
        project.run(0);
    }
    let copy = project.copied();
    let mut before = newest_epoch(&lake);
    for rows in 5..7 {
        for one in [&copy, &project] {
            one.write(
                "models/days.sql",
                &format!("-- @materialize: true\nSELECT {before} AS day FROM range({rows})"),
            );
            one.run(0);
            assert!(newest_epoch(&lake) > before, "it took the lake");
            before = newest_epoch(&lake);
            let said = self::rows(one).to_string();
            assert!(said.contains(&rows.to_string()), "{said}");
        }
    }
}

/// The statements that a server has seen since it was told to note them, each on its line.
fn statements(server: &Server) -> Vec<String> {
    let log = std::fs::read_to_string(server.socket_folder().join("log")).expect("the server has a log");
    let said = log
        .lines()
        .filter_map(|line| line.split_once("LOG:  statement: "));
    said.map(|(_, statement)| statement.to_owned()).collect()
}

fn in_postgres(server: &Server) -> Sandbox {
    let host = server.socket_folder().display();
    let note = ByHand::in_memory();
    note.run(&format!(
        "SET extension_directories = ['{}']",
        extensions().display()
    ));
    note.run(&format!(
        "ATTACH 'host={host} user=postgres dbname=postgres' AS pg (TYPE postgres)"
    ));
    note.run("CALL postgres_execute('pg', 'ALTER DATABASE postgres SET log_statement = ''all''')");
    let connector = format!(
        "driver: ducklake\ncatalog: postgres\nhost: {host}\nuser: postgres\ndbname: postgres\ndata_path: files\n"
    );
    let project = Sandbox::with(&[
        ("watershed.yaml", "olap_connector: lake\n"),
        ("connectors/lake.yaml", &connector),
        (
            "models/days.sql",
            "-- @materialize: true\nSELECT range AS day FROM range(20)",
        ),
        ("models/late.sql", "SELECT * FROM days WHERE day > 10"),
    ]);
    project.extended()
}

#[test]
fn e6_a_run_without_changes_asks_postgres_for_the_newest_snapshot_alone() {
    if !has_extension("ducklake") || !has_extension("postgres_scanner") {
        return;
    }
    let Some(server) = Server::start() else { return };
    let project = in_postgres(&server);
    assert_eq!(project.run(0).len(), 2);
    for _ in 0..2 {
        let before = statements(&server).len();
        assert!(project.run(0).is_empty(), "nothing is left to do");
        let seen = statements(&server).split_off(before);
        assert_eq!(seen.len(), 1, "{seen:#?}");
        assert!(seen[0].contains("max(snapshot_id)"), "{seen:?}");
    }
    let address = format!(
        "postgres:host={} user=postgres dbname=postgres",
        server.socket_folder().display()
    );
    let stranger = ByHand::in_memory();
    stranger.run(&format!(
        "SET extension_directories = ['{}']",
        extensions().display()
    ));
    stranger.run(&format!(
        "ATTACH 'ducklake:{address}' AS lake (METADATA_SCHEMA 'watershed_project_dev')"
    ));
    stranger.run("DROP TABLE lake.days");
    let built = project.run(0);
    assert!(built.contains_key("model/days") || built.len() == 1, "{built:?}");
    assert!(project.run(0).is_empty(), "nothing is left to do");
}

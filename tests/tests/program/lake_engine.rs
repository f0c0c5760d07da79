//! Projects that are built in a lake: with the same files, commands and answers, and read elsewhere.

use watershed_drivers::duckdb::ByHand;
use watershed_tests::postgres::Server;
use watershed_tests::s3::Store;
use watershed_tests::server::extensions;

use crate::connected::has_extension;
use crate::flights::{RESOURCES, has_the_answers};
use crate::sandbox::Sandbox;

pub(crate) const SECRET: &str = "hush-hush-4911";

pub(crate) const IN_A_FILE: &str =
    "driver: ducklake\ncatalog: sqlite\npath: lake/catalog.sqlite\ndata_path: lake/files\n";

pub(crate) fn has_extensions() -> bool {
    has_extension("ducklake") && has_extension("sqlite_scanner") && has_extension("postgres_scanner")
}

/// Somebody on another machine, who attaches the lake under a name of their own.
pub(crate) fn reader(address: &str, options: &str) -> ByHand {
    attached(address, &format!("READ_ONLY{options}"))
}

/// Somebody else who changes the lake.
pub(crate) fn maker(address: &str, options: &str) -> ByHand {
    attached(address, &format!("READ_WRITE{options}"))
}

fn attached(address: &str, options: &str) -> ByHand {
    let hand = ByHand::in_memory();
    hand.run(&format!(
        "SET extension_directories = ['{}']",
        extensions().display()
    ));
    hand.run(&format!("ATTACH 'ducklake:{address}' AS theirs ({options})"));
    hand
}

pub(crate) fn small(connector: &str) -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", "olap_connector: lake\n"),
        (".env", &format!("lake_secret={SECRET}\n")),
        ("connectors/lake.yaml", connector),
        (
            "models/days.sql",
            "-- @materialize: true\nSELECT range AS day FROM range(20)",
        ),
        ("models/late.sql", "SELECT * FROM days WHERE day > 10"),
    ])
    .extended()
}

#[test]
fn flights_has_the_same_answers_in_a_lake() {
    if !has_extensions() {
        return;
    }
    let project = Sandbox::from_project("flights").extended();
    project.write("connectors/duckdb.yaml", IN_A_FILE);
    assert_eq!(project.run(0).len(), RESOURCES);
    has_the_answers(&project);
    assert!(project.run(0).is_empty(), "nothing is left to do");
    assert!(
        !project.engine_file().exists(),
        "nothing lies in the engine's file"
    );
    let address = format!("sqlite:{}/lake/catalog.sqlite", project.path().display());
    let rows = reader(&address, "").lines("SELECT count(*) FROM theirs.delays_by_hour");
    assert_eq!(rows, ["57"]);
}

#[test]
fn a_project_is_built_in_a_lake_in_postgres_and_read_elsewhere() {
    let Some(server) = Server::start().filter(|_| has_extensions()) else {
        return;
    };
    let host = server.socket_folder().display().to_string();
    let connector = format!(
        "driver: ducklake\ncatalog: postgres\nhost: {host}\nuser: postgres\ndbname: postgres\n\
         password: \"{{{{ .env.lake_secret }}}}\"\ndata_path: files\n"
    );
    let project = small(&connector);
    assert_eq!(project.run(0).len(), 2);
    assert!(project.run(0).is_empty(), "nothing is left to do");
    let address = format!("postgres:host={host} user=postgres dbname=postgres");
    let elsewhere = reader(&address, ", METADATA_SCHEMA 'watershed_project_dev'");
    assert_eq!(elsewhere.lines("SELECT count(*) FROM theirs.late"), ["9"]);
    project.edit("models/days.sql", "range(20)", "range(30)");
    project.rename("models/late.sql", "models/later.sql");
    project.run(0);
    assert_eq!(elsewhere.lines("SELECT count(*) FROM theirs.later"), ["19"]);
    project.remove("models/later.sql");
    project.run(0);
    let listed = "SELECT table_name FROM information_schema.tables \
                  WHERE table_catalog = 'theirs' AND table_schema = 'main' AND table_name NOT LIKE '_watershed%'";
    assert_eq!(elsewhere.lines(listed), ["days"]);
    project.assert_nowhere(&[SECRET], "lake");
}

#[test]
fn a_project_is_built_in_a_lake_whose_files_a_store_has() {
    let Some(server) = Server::start().filter(|_| has_extensions() && has_extension("httpfs")) else {
        return;
    };
    let Some(store) = Store::start() else { return };
    store.create_bucket("lake");
    let host = server.socket_folder().display().to_string();
    let project = small(&format!(
        "driver: ducklake\ncatalog: postgres\nhost: {host}\nuser: postgres\ndbname: postgres\n\
         data_path: s3://lake/files\nstore: bucket\n"
    ));
    project.write_bucket("\"{{ .env.lake_secret }}\"", &store.url());
    assert_eq!(project.run(0).len(), 2);
    assert!(project.run(0).is_empty(), "nothing is left to do");
    assert_eq!(
        project.rows("SELECT count(*) FROM late"),
        serde_json::json!([[9]])
    );
    assert!(!store.keys("lake").is_empty(), "the rows stand in the store");
    let address = format!("postgres:host={host} user=postgres dbname=postgres");
    let elsewhere = reader(&address, ", METADATA_SCHEMA 'watershed_project_dev'");
    let login = format!(
        "CREATE SECRET files (TYPE s3, KEY_ID 'key-of-a-test', SECRET 'another', REGION 'us-east-1', \
         ENDPOINT '{}', URL_STYLE 'path', USE_SSL false)",
        store.address()
    );
    elsewhere.run(&login);
    assert_eq!(elsewhere.lines("SELECT count(*) FROM theirs.late"), ["9"]);
    project.edit("models/days.sql", "range(20)", "range(30)");
    project.run(0);
    assert_eq!(elsewhere.lines("SELECT count(*) FROM theirs.late"), ["19"]);
    for key in store.keys("lake").iter().filter(|key| key.contains("/days/")) {
        store.remove("lake", key);
    }
    let said = project.call(&["query", "SELECT count(day) FROM late WHERE day < 1000"]);
    assert_ne!(said.code, Some(0), "its files are gone: {}", said.stdout);
    project.edit("models/days.sql", "range(30)", "range(40)");
    project.run(0);
    assert_eq!(elsewhere.lines("SELECT count(*) FROM theirs.late"), ["29"]);
    // Somebody moves the records out of the catalog, where they stand at first.
    let hand = maker(&address, ", METADATA_SCHEMA 'watershed_project_dev'");
    hand.run(&login);
    hand.run("CALL ducklake_flush_inlined_data('theirs')");
    drop(hand);
    assert!(project.run(0).is_empty(), "the records are read from the store");
    project.assert_nowhere(&[SECRET], "lake");
}

#[test]
fn the_lake_of_another_project_is_read_by_its_schema() {
    let Some(server) = Server::start().filter(|_| has_extensions()) else {
        return;
    };
    let host = server.socket_folder().display();
    let connector =
        format!("driver: ducklake\ncatalog: postgres\nhost: {host}\nuser: postgres\ndbname: postgres\n");
    let builder = small(&format!("{connector}data_path: files\n"));
    builder.run(0);
    let reader = small(&format!("{connector}data_path: files\nmetadata_schema: mine\n"));
    reader.write("connectors/theirs.yaml", &connector);
    reader.write(
        "sources/taken.yaml",
        "type: source\nconnector: theirs\ntable: days\n",
    );
    let said = reader.call(&["run"]);
    assert!(
        said.stderr.contains("no DuckLake in the schema \"public\""),
        "{}",
        said.stderr
    );
    assert!(
        said.stderr.contains("metadata_schema: watershed_"),
        "{}",
        said.stderr
    );
    reader.write(
        "connectors/theirs.yaml",
        &format!("{connector}metadata_schema: watershed_project_dev\n"),
    );
    reader.run(0);
    let rows = |project: &Sandbox| project.rows("SELECT count(*) FROM taken");
    assert_eq!(rows(&reader), serde_json::json!([[20]]));
    reader.write("watershed.yaml", "");
    reader.run(0);
    assert_eq!(rows(&reader), serde_json::json!([[20]]), "from a file as well");
}

#[test]
fn a_lake_that_can_not_be_built_in_is_refused_with_its_place_and_left_as_it_is() {
    if !has_extensions() {
        return;
    }
    let project = small(IN_A_FILE);
    let said = project.call(&["run", "--sandbox"]);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    assert!(said.stderr.contains("connectors/lake.yaml"), "{}", said.stderr);
    project.run(0);
    let catalog = project.path().join("lake/catalog.sqlite");
    let before = std::fs::read(&catalog).expect("the catalog is a file");
    let refused = |project: &Sandbox, words: &str| {
        let said = project.call(&["run"]);
        assert_ne!(said.code, Some(0), "{words}");
        assert!(said.stderr.contains(words), "{}", said.stderr);
        assert!(said.stderr.contains("connectors/lake.yaml"), "{}", said.stderr);
    };
    let other = small(&format!(
        "driver: ducklake\ncatalog: sqlite\npath: {}\n",
        catalog.display()
    ));
    other.write("watershed.yaml", "olap_connector: lake\n");
    let said = other.call(&["run", "--environment", "prod"]);
    assert!(said.stderr.contains("another project"), "{}", said.stderr);
    project.edit("connectors/lake.yaml", "lake/files", "lake/elsewhere");
    refused(&project, "does not match existing data path");
    project.edit("connectors/lake.yaml", "lake/elsewhere", "lake/files");
    project.edit(
        "connectors/lake.yaml",
        "driver: ducklake",
        "mode: read\ndriver: ducklake",
    );
    let said = project.call(&["validate"]);
    assert!(
        said.stderr.contains("only read"),
        "{}{}",
        said.stdout,
        said.stderr
    );
    let now = std::fs::read(&catalog).expect("the catalog is a file");
    assert!(now == before, "nothing was changed");
}

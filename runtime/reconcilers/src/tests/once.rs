//! Connectors and migrations against the engine.

use watershed_core::{RunResult, Work};

use super::site::{Ran, Site};

fn failures(ran: &Ran) -> String {
    let told = ran.resources.iter().filter_map(|one| {
        let error = one.row.error.as_deref()?;
        Some(format!("{}: {}\n", one.key(), error.message))
    });
    told.collect()
}

fn result(ran: &Ran, name: &str) -> RunResult {
    ran.find(name).row.last_run.as_ref().unwrap().result
}

#[tokio::test]
async fn a_migration_is_run_once_for_each_version_before_what_needs_it() {
    let mut site = Site::new(&[
        ("rill.yaml", ""),
        (
            "init.sql",
            "CREATE SCHEMA side;\nCREATE TABLE side.log AS SELECT 'first' AS what;\nCREATE MACRO twice(x) AS x * 2\n",
        ),
        ("models/uses.sql", "SELECT twice(21) AS n\n"),
    ]);
    let ran = site.run().await;
    assert_eq!(failures(&ran), "");
    assert_eq!(result(&ran, "init"), RunResult::Done(Work::Built));
    let ran = site.run().await;
    assert_eq!(result(&ran, "init"), RunResult::Done(Work::None));
    assert!(!ran.opened_engine);

    // A lost catalog knows nothing of it; the engine does.
    site.lose_catalog();
    let ran = site.run().await;
    assert_eq!(failures(&ran), "");
    assert_eq!(result(&ran, "init"), RunResult::Done(Work::Checked));

    site.write(
        "migrations/log.yaml",
        "type: migration\nmax_version: 2\nsql: INSERT INTO side.log VALUES ('version {{ .version }}')\n",
    );
    site.run().await;
    assert_eq!(
        site.rows("SELECT what FROM side.log").await,
        ["first", "version 0", "version 1", "version 2"]
    );
    site.write(
        "migrations/log.yaml",
        "type: migration\nmax_version: 3\nsql: INSERT INTO side.log VALUES ('version {{ .version }}')\n",
    );
    site.run().await;
    site.run().await;
    assert_eq!(site.rows("SELECT count(*) FROM side.log").await, ["5"]);

    site.remove("migrations/log.yaml");
    site.run().await;
    assert_eq!(
        site.rows("SELECT count(*) FROM _watershed.migrations").await,
        ["1"]
    );
}

#[tokio::test]
async fn a_migration_that_fails_does_nothing_and_says_where() {
    let mut site = Site::new(&[
        ("rill.yaml", ""),
        (
            "init.sql",
            "CREATE TABLE kept AS SELECT 1 AS n;\nINSERT INTO\n  nowhere VALUES (1)\n",
        ),
    ]);
    let ran = site.run().await;
    let error = ran.error("init");
    assert_eq!(&*error.code, "unknown-table");
    let place = error.place.clone().unwrap();
    assert_eq!((&*place.path, place.line), ("init.sql", 2));
    assert_eq!(site.objects().await, "");
    site.write("init.sql", "CREATE TABLE kept AS SELECT 1 AS n");
    assert_eq!(failures(&site.run().await), "");
    assert_eq!(site.objects().await, "kept");
}

#[tokio::test]
async fn a_migration_that_drops_an_output_has_it_built_again() {
    let mut site = Site::new(&[
        ("rill.yaml", ""),
        ("models/a.sql", "-- @materialize: true\nSELECT 1 AS x"),
    ]);
    site.run().await;
    site.write("migrations/drop.sql", "-- @type: migration\nDROP TABLE a");
    site.run().await;
    site.run().await;
    assert_eq!(site.objects().await, "a");
}

#[tokio::test]
async fn connections_are_tried_and_what_does_not_answer_is_told() {
    let mut site = Site::new(&[
        ("rill.yaml", ""),
        ("data/a.csv", "x\n1\n"),
        ("connectors/duckdb.yaml", "driver: duckdb\nmanaged: true\n"),
        ("connectors/files.yaml", "driver: local_file\npath: data\n"),
        (
            "connectors/other.yaml",
            "driver: duckdb\npath: '{{ .env.file }}'\n",
        ),
        (
            "connectors/nowhere.yaml",
            "driver: duckdb\npath: nowhere.duckdb\nmode: read\n",
        ),
        ("connectors/garbage.yaml", "driver: duckdb\npath: data/a.csv\n"),
        (
            "connectors/folder.yaml",
            "driver: local_file\npath: no_such_folder\n",
        ),
        ("connectors/later.yaml", "driver: snowflake\n"),
        (".env", "file=other.duckdb\n"),
    ]);
    let other = site.path("other.duckdb");
    site.database(&other, "CREATE TABLE t AS SELECT 1 AS n");
    let ran = site.run().await;
    let failed: Vec<_> = ran
        .resources
        .iter()
        .filter(|one| one.row.error.is_some())
        .map(|one| one.row.name.to_string())
        .collect();
    assert_eq!(failed, ["folder", "garbage", "nowhere"], "{}", failures(&ran));
    let error = ran.error("nowhere");
    assert_eq!(&*error.code, "connection-failed");
    let place = error.place.clone().unwrap();
    assert_eq!((&*place.path, place.line), ("connectors/nowhere.yaml", 2));

    for name in ["folder", "garbage", "nowhere"] {
        site.remove(&format!("connectors/{name}.yaml"));
    }
    site.run().await;
    let ran = site.run().await;
    assert!(!ran.opened_engine);
    assert_eq!(result(&ran, "other"), RunResult::Done(Work::None));
    std::fs::remove_file(&other).unwrap();
    assert!(
        failures(&site.run().await).contains("connector/other"),
        "a file that went"
    );
}

#[tokio::test]
async fn a_source_reads_through_a_connector_of_its_own_and_sql_for_another_system_is_refused() {
    let mut site = Site::new(&[
        ("rill.yaml", ""),
        ("data/a.csv", "x\n1\n"),
        ("connectors/files.yaml", "driver: local_file\npath: data\n"),
        ("connectors/shop.yaml", "driver: snowflake\n"),
        ("connectors/other.yaml", "driver: duckdb\npath: other.duckdb\n"),
        ("sources/a.yaml", "connector: files\npath: data/a.csv\n"),
        ("models/from_shop.sql", "-- @connector: shop\nSELECT * FROM a"),
        (
            "models/from_postgres.sql",
            "-- @connector: snowflake\nSELECT * FROM a",
        ),
        ("models/from_other.sql", "-- @connector: other\nSELECT * FROM a"),
        (
            "migrations/there.sql",
            "-- @type: migration\n-- @connector: shop\nCREATE TABLE b AS SELECT 1",
        ),
    ]);
    let other = site.path("other.duckdb");
    site.database(&other, "CREATE TABLE a AS SELECT 2 AS x");
    let ran = site.run().await;
    assert_eq!(site.rows("SELECT x FROM a").await, ["1"]);
    for name in ["from_shop", "from_postgres", "from_other", "there"] {
        assert_eq!(&*ran.error(name).code, "connector-unsupported", "{name}");
    }
}

//! Sources in DuckLakes: catalogs in files and in Postgres, rows on disk and in a store, states of before.

use std::fs;

use watershed_drivers::duckdb::ByHand;
use watershed_tests::{postgres, s3::Store, server::extensions};

use crate::connected::has_extension;
use crate::sandbox::Sandbox;

const SECRET: &str = "hush-hush-4719";

/// Whoever else writes to a lake.
struct Maker(ByHand);

impl Maker {
    /// Attaches a lake, by its address and further options, which is made if it is not there.
    fn attach(address: &str, options: &str) -> Self {
        let maker = ByHand::in_memory();
        maker.run(&format!(
            "SET extension_directories = ['{}']",
            extensions().display()
        ));
        maker.run(&format!("ATTACH 'ducklake:{address}' AS lake ({options})"));
        Self(maker)
    }

    /// Makes the tables of these tests.
    fn fill(&self) {
        self.run("CREATE TABLE lake.orders AS SELECT range AS id, range * 7.5 AS price FROM range(1, 3)");
        self.run("CREATE TABLE lake.others AS SELECT range AS id FROM range(30)");
    }

    fn run(&self, sql: &str) {
        self.0.run(sql);
    }
}

/// A project that reads a table of a lake whole, and another with SQL.
fn project(connector: &str) -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        (".env", &format!("lake_secret={SECRET}\n")),
        ("connectors/lake.yaml", connector),
        (
            "sources/orders.yaml",
            "type: source\nconnector: lake\ntable: orders\n",
        ),
        (
            "models/large.yaml",
            "type: model\nconnector: lake\n\
             sql: WITH big AS (FROM orders WHERE price > 10) SELECT big.id, price FROM big JOIN lake.main.others USING (id)\n",
        ),
        (
            "models/total.sql",
            "-- @materialize: true\nSELECT count(*) AS orders, sum(price)::DOUBLE AS price FROM orders",
        ),
    ])
    .extended()
}

/// Builds the project, changes the lake, and builds what a refresh changes. The secret stands nowhere.
fn is_read_and_refreshed(sandbox: &Sandbox, maker: &Maker) {
    let refresh = ["refresh", "orders", "large", "--json"];
    let first = sandbox.call(&["run", "--json"]);
    assert_eq!(first.code, Some(0), "{}{}", first.stdout, first.stderr);
    assert_eq!(
        sandbox.rows("SELECT * FROM total"),
        serde_json::json!([[2, 22.5]])
    );
    assert_eq!(
        sandbox.rows("SELECT id::INT FROM large"),
        serde_json::json!([[2]])
    );
    assert_eq!(sandbox.outcome(&["run", "--json"], "orders"), "none");
    for name in ["orders", "large"] {
        assert_eq!(sandbox.outcome(&refresh, name), "checked", "nothing is new");
    }
    maker.run("INSERT INTO lake.others SELECT 77");
    maker.run("CREATE SCHEMA lake.elsewhere");
    assert_eq!(
        sandbox.outcome(&refresh, "orders"),
        "checked",
        "another table has changed"
    );
    assert_eq!(
        sandbox.outcome(&refresh, "large"),
        "checked",
        "the refresh before has built it"
    );
    maker.run("INSERT INTO lake.orders VALUES (3, 1.0)");
    assert_eq!(
        sandbox.outcome(&["run", "--json"], "orders"),
        "none",
        "a run asks no lake by itself"
    );
    assert_eq!(sandbox.outcome(&refresh, "total"), "built");
    assert_eq!(sandbox.rows("SELECT orders FROM total"), serde_json::json!([[3]]));
    maker.run("DELETE FROM lake.orders WHERE id = 3");
    assert_eq!(sandbox.outcome(&refresh, "orders"), "built");
    maker.run("CREATE OR REPLACE TABLE lake.orders AS SELECT 1 AS id, 2.5 AS price");
    assert_eq!(sandbox.outcome(&refresh, "orders"), "built");
    assert_eq!(
        sandbox.rows("SELECT price FROM total"),
        serde_json::json!([[2.5]])
    );
    sandbox.assert_nowhere(&[SECRET], "lake");

    sandbox.edit("sources/orders.yaml", "table: orders", "table: odders");
    let said = sandbox.call(&["run", "--json"]);
    assert_eq!(said.code, Some(1), "there is no such table");
    assert!(said.stdout.contains("odders"), "{}", said.stdout);
    assert_eq!(
        sandbox.rows("SELECT count(*) FROM orders"),
        serde_json::json!([[1]]),
        "the last good table stays"
    );
    let confined = sandbox.outcome(&["run", "--sandbox", "--json"], "orders");
    assert_eq!(confined, "outside-sandbox");
    sandbox.edit("sources/orders.yaml", "table: odders", "table: orders");
    sandbox.run(0);
    sandbox.assert_nowhere(&[SECRET], "lake");
}

#[test]
fn tables_of_a_lake_with_its_catalog_in_sqlite_are_sources() {
    if !(has_extension("ducklake") && has_extension("sqlite_scanner")) {
        return;
    }
    let sandbox = project("driver: ducklake\ncatalog: sqlite\npath: data/lake.sqlite\n");
    assert_eq!(sandbox.outcome(&["run", "--json"], "lake"), "missing-file");
    let data = sandbox.path().join("data");
    fs::create_dir(&data).expect("a folder is made");
    fs::write(data.join("lake.sqlite"), "no lake at all").expect("a file is written");
    let refresh = ["refresh", "lake", "orders", "large", "--json"];
    assert_eq!(sandbox.outcome(&refresh, "lake"), "connection-failed");
    fs::remove_file(data.join("lake.sqlite")).expect("the file goes");
    let address = format!("sqlite:{}/lake.sqlite", data.display());
    let maker = Maker::attach(&address, &format!("DATA_PATH '{}/files'", data.display()));
    maker.fill();
    sandbox.run(0);
    is_read_and_refreshed(&sandbox, &maker);
}

#[test]
fn tables_of_a_lake_with_its_catalog_in_postgres_are_sources() {
    if !(has_extension("ducklake") && has_extension("postgres_scanner")) {
        return;
    }
    let Some(server) = postgres::Server::start() else {
        return;
    };
    let connector = format!(
        "driver: ducklake\ncatalog: postgres\nhost: {}\nuser: postgres\npassword: \"{{{{ .env.lake_secret }}}}\"\ndbname: postgres\n",
        server.socket_folder().display()
    );
    let sandbox = project(&connector);
    let said = sandbox.call(&["run"]);
    assert!(said.stderr.contains("error[database-missing]"), "{}", said.stderr);
    assert!(said.stderr.contains("there is no DuckLake"), "{}", said.stderr);
    let files = sandbox.path().join("files");
    let options = format!("DATA_PATH '{}'", files.display());
    let maker = Maker::attach(&format!("postgres:{}", server.url()), &options);
    maker.fill();
    assert_eq!(sandbox.outcome(&["refresh", "lake", "--json"], "lake"), "checked");
    is_read_and_refreshed(&sandbox, &maker);

    sandbox.edit("connectors/lake.yaml", "user: postgres", "user: nobody_here");
    assert_eq!(sandbox.outcome(&["run", "--json"], "lake"), "credentials-refused");
    sandbox.edit("connectors/lake.yaml", "user: nobody_here", "user: postgres");
    sandbox.edit("connectors/lake.yaml", "dbname: postgres", "dbname: nothing_here");
    assert_eq!(sandbox.outcome(&["run", "--json"], "lake"), "database-missing");
    sandbox.edit("connectors/lake.yaml", "dbname: nothing_here", "dbname: postgres");
    sandbox.run(0);
    drop((maker, server));
    assert_eq!(
        sandbox.outcome(&["refresh", "orders", "--json"], "orders"),
        "connection-refused"
    );
    assert_eq!(sandbox.rows("SELECT orders FROM total"), serde_json::json!([[1]]));
    sandbox.assert_nowhere(&[SECRET], "lake");
}

#[test]
fn a_whole_address_of_a_catalog_is_shown_to_nobody() {
    if !(has_extension("ducklake") && has_extension("postgres_scanner")) {
        return;
    }
    let sandbox = project("driver: ducklake\ncatalog: postgres\ndsn: \"{{ .env.lake }}\"\n");
    sandbox.write(
        ".env",
        &format!("lake=postgres://ada:{SECRET}@127.0.0.1:1/lake\n"),
    );
    let said = sandbox.call(&["run", "--json"]);
    assert!(said.stdout.contains("connection-refused"), "{}", said.stdout);
    sandbox.assert_nowhere(&[SECRET], "lake");
}

#[test]
fn the_files_of_a_lake_may_stand_in_a_store() {
    if !(has_extension("ducklake") && has_extension("httpfs")) {
        return;
    }
    let Some(store) = Store::start() else { return };
    store.create_bucket("lake");
    let host = store.url();
    let host = host.trim_start_matches("http://");
    let sandbox = project("driver: ducklake\ncatalog: duckdb\npath: lake.duckdb\nstore: bucket\n");
    sandbox.write_bucket("\"{{ .env.lake_secret }}\"", &store.url());
    let file = sandbox.path().join("lake.duckdb");
    let add = |sql: &str| {
        let maker = ByHand::in_memory();
        maker.run(&format!(
            "SET extension_directories = ['{}']",
            extensions().display()
        ));
        maker.run(&format!(
            "CREATE SECRET s (TYPE s3, KEY_ID 'key-of-a-test', SECRET '{SECRET}', REGION 'us-east-1', \
             ENDPOINT '{host}', URL_STYLE 'path', USE_SSL false)"
        ));
        maker.run(&format!(
            "ATTACH 'ducklake:duckdb:{}' AS lake (DATA_PATH 's3://lake/tables/', DATA_INLINING_ROW_LIMIT 0)",
            file.display()
        ));
        maker.run(sql);
    };
    add(
        "CREATE TABLE lake.orders AS SELECT range AS id, range * 7.5 AS price FROM range(1, 3); \
         CREATE TABLE lake.others AS SELECT range AS id FROM range(30)",
    );
    sandbox.run(0);
    assert_eq!(
        sandbox.rows("SELECT * FROM total"),
        serde_json::json!([[2, 22.5]])
    );
    let refresh = ["refresh", "orders", "--json"];
    assert_eq!(sandbox.outcome(&refresh, "orders"), "checked");
    add("INSERT INTO lake.orders SELECT range, 1.0 FROM range(3, 20)");
    assert_eq!(sandbox.outcome(&refresh, "total"), "built");
    assert_eq!(
        sandbox.rows("SELECT orders FROM total"),
        serde_json::json!([[19]])
    );
    sandbox.assert_nowhere(&[SECRET], "lake");
    drop(store);
    let said = sandbox.call(&["refresh", "orders", "--full", "--json"]);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert_eq!(
        sandbox.rows("SELECT orders FROM total"),
        serde_json::json!([[19]])
    );
    sandbox.assert_nowhere(&[SECRET], "lake");
}

#[test]
fn states_of_before_are_read_by_number_and_time_and_listed() {
    if !(has_extension("ducklake") && has_extension("sqlite_scanner")) {
        return;
    }
    let sandbox = project("driver: ducklake\ncatalog: sqlite\npath: lake.sqlite\n");
    let address = format!("sqlite:{}/lake.sqlite", sandbox.path().display());
    let maker = Maker::attach(
        &address,
        &format!("DATA_PATH '{}/files'", sandbox.path().display()),
    );
    maker.fill();
    maker.run("INSERT INTO lake.orders VALUES (3, 1.0)");
    maker.run("ALTER TABLE lake.orders ADD COLUMN note VARCHAR");
    sandbox.write(
        "sources/before.yaml",
        "type: source\nconnector: lake\ntable: orders\nsnapshot: 2\n",
    );
    sandbox.write(
        "models/changes.yaml",
        "type: model\nconnector: lake\n\
         sql: SELECT count(*) AS n FROM table_changes('orders', 2, 3) WHERE change_type = 'insert' AND snapshot_id > 2\n",
    );
    sandbox.write(
        "models/early.yaml",
        "type: model\nconnector: lake\n\
         sql: SELECT (SELECT count(*) FROM orders AT (VERSION => 2)) AS old, (SELECT max(snapshot_id) FROM lake.snapshots()) AS newest\n",
    );
    sandbox.run(0);
    assert_eq!(
        sandbox.rows("SELECT count(*) FROM before"),
        serde_json::json!([[2]])
    );
    assert_eq!(sandbox.rows("SELECT * FROM early"), serde_json::json!([[2, 4]]));
    assert_eq!(sandbox.rows("SELECT * FROM changes"), serde_json::json!([[1]]));
    maker.run("INSERT INTO lake.orders VALUES (4, 1.0, 'x')");
    let refresh = ["refresh", "before", "orders", "--json"];
    assert_eq!(
        sandbox.outcome(&refresh, "before"),
        "checked",
        "it is what it was"
    );
    assert_eq!(
        sandbox.rows("SELECT count(*) FROM orders"),
        serde_json::json!([[4]])
    );
    sandbox.edit("sources/before.yaml", "snapshot: 2", "snapshot: 99");
    let said = sandbox.call(&["run"]);
    assert!(said.stderr.contains("error[snapshot-missing]"), "{}", said.stderr);
    assert!(said.stderr.contains("snapshots()"), "{}", said.stderr);
    sandbox.edit(
        "sources/before.yaml",
        "snapshot: 99",
        "snapshot: 2999-01-01 00:00:00",
    );
    sandbox.run(0);
    assert_eq!(
        sandbox.rows("SELECT count(*) FROM before"),
        serde_json::json!([[4]])
    );
    maker.run("INSERT INTO lake.others SELECT 5");
    maker.run("CALL ducklake_expire_snapshots('lake', versions => [1, 2, 3, 4, 5])");
    assert_eq!(
        sandbox.outcome(&["refresh", "orders", "--json"], "orders"),
        "built",
        "what was read is in no list any more"
    );
    assert_eq!(
        sandbox.outcome(&["refresh", "orders", "--json"], "orders"),
        "checked"
    );
}

#[test]
fn new_rows_of_a_lake_are_added() {
    if !(has_extension("ducklake") && has_extension("sqlite_scanner")) {
        return;
    }
    let sandbox = project("driver: ducklake\ncatalog: sqlite\npath: lake.sqlite\n");
    let address = format!("sqlite:{}/lake.sqlite", sandbox.path().display());
    let maker = Maker::attach(
        &address,
        &format!("DATA_PATH '{}/files'", sandbox.path().display()),
    );
    maker.fill();
    sandbox.write(
        "sources/events.yaml",
        "type: source\nconnector: lake\nincremental: true\nstate: {sql: SELECT max(id) AS last FROM events}\n\
         sql: SELECT id, current_localtimestamp() AS seen FROM orders {{ if incremental }} WHERE id > {{ .state.last }} {{ end }}\n",
    );
    sandbox.run(0);
    let first = sandbox.rows("SELECT seen FROM events WHERE id = 1");
    let refresh = ["refresh", "events", "--json"];
    assert_eq!(sandbox.outcome(&refresh, "events"), "checked");
    maker.run("INSERT INTO lake.orders VALUES (3, 1.0)");
    assert_eq!(sandbox.outcome(&refresh, "events"), "built");
    assert_eq!(
        sandbox.rows("SELECT count(*) FROM events"),
        serde_json::json!([[3]])
    );
    assert_eq!(
        sandbox.rows("SELECT seen FROM events WHERE id = 1"),
        first,
        "the rows of before are not read again"
    );
}

/// The page on lakes says what keeps builds out of one. Where this fails, the engine can do more than it says.
#[test]
fn what_a_build_needs_is_refused_in_a_lake() {
    if !(has_extension("ducklake") && has_extension("sqlite_scanner")) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let address = format!("sqlite:{}/lake.sqlite", folder.path().display());
    let maker = Maker::attach(
        &address,
        &format!("DATA_PATH '{}/files'", folder.path().display()),
    );
    maker.fill();
    maker.run("CREATE TABLE records AS SELECT 1 AS build");
    maker.run("BEGIN");
    maker.run("CREATE TABLE lake.output AS SELECT 1 AS x");
    let refused = [
        (
            "INSERT INTO records VALUES (2)",
            "can only write to a single attached database",
        ),
        ("CREATE INDEX one ON lake.orders (id)", "does not support indexes"),
        (
            "CREATE TYPE lake.sort AS ENUM ('a')",
            "does not support user-defined types",
        ),
        (
            "CREATE TABLE lake.x AS SELECT 'a'::ENUM('a') AS sort",
            "unsupported type ENUM",
        ),
        (
            "CREATE TABLE lake.x AS SELECT [1, 2]::INTEGER[2] AS pair",
            "unsupported type INTEGER[2]",
        ),
        (
            "CREATE TABLE lake.x AS SELECT '1'::BIT AS bit",
            "unsupported type BIT",
        ),
    ];
    for (at, (sql, words)) in refused.into_iter().enumerate() {
        let said = maker.0.try_run(sql).expect_err("the engine refuses it");
        assert!(said.contains(words), "{sql}: {said}");
        if at == 0 {
            maker.run("ROLLBACK");
        }
    }
}

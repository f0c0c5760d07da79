//! Sources in databases of other systems: Postgres, MariaDB, SQLite, and another file of the engine.

use std::fs;
use std::path::Path;

use watershed_drivers::duckdb::ByHand;
use watershed_tests::{mariadb, postgres, server};

use crate::connected::has_extension;
use crate::sandbox::{Said, Sandbox};

const SECRET: &str = "hush-hush-4713";

/// A project that reads a table of a database whole, and another with the database's own SQL.
fn project(connector: &str) -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        (".env", &format!("shop_password={SECRET}\n")),
        ("connectors/shop.yaml", connector),
        (
            "sources/orders.yaml",
            "type: source\nconnector: shop\ntable: orders\n",
        ),
        (
            "models/large.yaml",
            "type: model\nconnector: shop\nsql: SELECT id, price FROM orders WHERE price > 10\n",
        ),
        (
            "models/total.sql",
            "-- @materialize: true\nSELECT count(*) AS orders, sum(price)::DOUBLE AS price FROM orders",
        ),
    ])
    .extended()
}

/// Builds the project, adds a row, and builds what a refresh changes. The secret stands nowhere.
fn is_read_and_refreshed(sandbox: &Sandbox, add: impl FnOnce()) {
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
    add();
    assert_eq!(
        sandbox.outcome(&["run", "--json"], "orders"),
        "none",
        "a run asks no database by itself"
    );
    assert_eq!(
        sandbox.outcome(&["refresh", "orders", "--json"], "total"),
        "built"
    );
    assert_eq!(sandbox.rows("SELECT orders FROM total"), serde_json::json!([[3]]));
    sandbox.assert_nowhere(&[SECRET], "shop");

    sandbox.edit("sources/orders.yaml", "table: orders", "table: odders");
    let said = sandbox.call(&["run", "--json"]);
    assert_eq!(said.code, Some(1), "there is no such table");
    assert!(said.stdout.contains("odders"), "{}", said.stdout);
    assert_eq!(
        sandbox.rows("SELECT count(*) FROM orders"),
        serde_json::json!([[3]]),
        "the last good table stays"
    );
    let confined = sandbox.outcome(&["run", "--sandbox", "--json"], "orders");
    assert_eq!(confined, "outside-sandbox");
    sandbox.assert_nowhere(&[SECRET], "shop");
}

#[test]
fn tables_and_queries_of_postgres_are_sources() {
    if !has_extension("postgres_scanner") {
        return;
    }
    let Some(server) = postgres::Server::start() else {
        return;
    };
    let maker = ByHand::in_memory();
    maker.run(&format!(
        "SET extension_directories = ['{}']",
        server::extensions().display()
    ));
    maker.run(&format!("ATTACH '{}' AS shop (TYPE postgres)", server.url()));
    maker.run("CREATE TABLE shop.orders AS SELECT range AS id, range * 7.5 AS price FROM range(1, 3)");
    let connector = format!(
        "driver: postgres\nhost: {}\nuser: postgres\npassword: \"{{{{ .env.shop_password }}}}\"\ndbname: postgres\n",
        server.socket_folder().display()
    );
    let sandbox = project(&connector);
    is_read_and_refreshed(&sandbox, || {
        maker.run("INSERT INTO shop.orders VALUES (3, 1.0)");
    });

    sandbox.edit("sources/orders.yaml", "table: odders", "table: public.orders");
    sandbox.edit("connectors/shop.yaml", "user: postgres", "user: nobody_here");
    assert_eq!(sandbox.outcome(&["run", "--json"], "shop"), "credentials-refused");
    sandbox.edit("connectors/shop.yaml", "user: nobody_here", "user: postgres");
    sandbox.edit("connectors/shop.yaml", "dbname: postgres", "dbname: nothing_here");
    assert_eq!(sandbox.outcome(&["run", "--json"], "shop"), "database-missing");
    sandbox.edit("connectors/shop.yaml", "dbname: nothing_here", "dbname: postgres");
    assert_eq!(sandbox.outcome(&["run", "--json"], "orders"), "built");

    drop((maker, server));
    assert_eq!(
        sandbox.outcome(&["refresh", "orders", "--json"], "orders"),
        "connection-refused"
    );
    assert_eq!(sandbox.rows("SELECT orders FROM total"), serde_json::json!([[3]]));
}

#[test]
fn a_query_tells_whether_a_database_has_changed() {
    if !has_extension("postgres_scanner") {
        return;
    }
    let Some(server) = postgres::Server::start() else {
        return;
    };
    let maker = ByHand::in_memory();
    maker.run(&format!(
        "SET extension_directories = ['{}']",
        server::extensions().display()
    ));
    maker.run(&format!("ATTACH '{}' AS shop (TYPE postgres)", server.url()));
    maker.run("CREATE TABLE shop.orders AS SELECT range AS id, range * 7.5 AS price FROM range(1, 3)");
    let connector = format!(
        "driver: postgres\nhost: {}\nuser: postgres\ndbname: postgres\n",
        server.socket_folder().display()
    );
    let sandbox = project(&connector);
    sandbox.write(
        "sources/orders.yaml",
        "type: source\nconnector: shop\ntable: orders\n\
         state: {connector: shop, sql: \"SELECT count(*) AS n, max(id) AS last FROM orders\"}\n",
    );
    assert_eq!(sandbox.outcome(&["run", "--json"], "orders"), "built");
    let refresh = ["refresh", "orders", "--json"];
    assert_eq!(sandbox.outcome(&refresh, "orders"), "checked", "nothing changed");
    maker.run("UPDATE shop.orders SET price = 100 WHERE id = 1");
    assert_eq!(
        sandbox.outcome(&refresh, "orders"),
        "checked",
        "the query does not tell"
    );
    assert_eq!(
        sandbox.outcome(&["refresh", "--full", "orders", "--json"], "total"),
        "built"
    );
    maker.run("INSERT INTO shop.orders VALUES (3, 1.0)");
    assert_eq!(sandbox.outcome(&refresh, "total"), "built");
    assert_eq!(sandbox.rows("SELECT orders FROM total"), serde_json::json!([[3]]));
    assert_eq!(sandbox.outcome(&refresh, "orders"), "checked");

    sandbox.edit("sources/orders.yaml", "max(id)", "max(odd)");
    let said = sandbox.call(&["run"]);
    assert!(said.stderr.contains("odd"), "{}", said.stderr);
    assert_eq!(sandbox.rows("SELECT orders FROM total"), serde_json::json!([[3]]));
}

#[test]
fn an_extension_that_is_nowhere_and_may_not_be_fetched_is_named() {
    let project = Sandbox::with(&[
        ("watershed.yaml", "install_extensions: false\n"),
        ("connectors/shop.yaml", "driver: postgres\nhost: 127.0.0.1\n"),
        (
            "sources/orders.yaml",
            "type: source\nconnector: shop\ntable: orders\n",
        ),
    ]);
    let home = tempfile::tempdir().expect("a folder without a cache of the engine");
    for forbidden in ["true", "false"] {
        let mut command = project.command(&["run", "--json"]);
        command
            .env("HOME", home.path())
            .env("WATERSHED_NO_EXTENSION_INSTALL", forbidden);
        let said: Said = command.output().expect("the program runs").into();
        assert_eq!(said.code, Some(1));
        assert!(said.stdout.contains("missing-extension"), "{}", said.stdout);
        assert!(
            said.stdout.contains("postgres_scanner.duckdb_extension"),
            "{}",
            said.stdout
        );
        assert!(
            !home.path().join(".duckdb/extensions").exists(),
            "nothing is fetched"
        );
    }
}

#[test]
fn a_whole_address_is_shown_to_nobody() {
    if !has_extension("postgres_scanner") {
        return;
    }
    let address = format!("postgres://ada:{SECRET}@127.0.0.1:1/shop");
    let sandbox = project("driver: postgres\ndsn: \"{{ .env.shop }}\"\n");
    sandbox.write(".env", &format!("shop={address}\n"));
    let said = sandbox.call(&["run", "--json"]);
    assert!(said.stdout.contains("connection-refused"), "{}", said.stdout);
    sandbox.assert_nowhere(&[SECRET], "shop");
}

#[test]
fn tables_and_queries_of_mariadb_are_sources() {
    if !has_extension("mysql_scanner") {
        return;
    }
    let Some(server) = mariadb::Server::start(SECRET) else {
        return;
    };
    server.run(
        "CREATE TABLE shop.orders AS SELECT 1 AS id, 11.25 - 0 AS price; UPDATE shop.orders SET price = 7.5",
    );
    server.run("INSERT INTO shop.orders VALUES (2, 15.0)");
    let connector = format!(
        "driver: mysql\nhost: 127.0.0.1\nport: {}\nuser: ada\npassword: \"{{{{ .env.shop_password }}}}\"\ndatabase: shop\n",
        server.port()
    );
    let sandbox = project(&connector);
    is_read_and_refreshed(&sandbox, || server.run("INSERT INTO shop.orders VALUES (3, 1.0)"));
    sandbox.write(".env", "shop_password=another\n");
    assert_eq!(sandbox.outcome(&["run", "--json"], "shop"), "credentials-refused");
}

#[test]
fn tables_and_queries_of_sqlite_are_sources() {
    if !has_extension("sqlite_scanner") {
        return;
    }
    let sandbox = project("driver: sqlite\npath: data/shop.sqlite\n");
    assert_eq!(sandbox.outcome(&["run", "--json"], "shop"), "missing-file");
    fs::create_dir(sandbox.path().join("data")).expect("a folder is made");
    let add = |sql: &str| {
        let maker = ByHand::in_memory();
        maker.run(&format!(
            "SET extension_directories = ['{}']",
            server::extensions().display()
        ));
        let file = sandbox.path().join("data/shop.sqlite");
        maker.run(&format!("ATTACH '{}' AS shop (TYPE sqlite)", file.display()));
        maker.run(sql);
    };
    add("CREATE TABLE shop.orders AS SELECT range AS id, (range * 7.5)::DOUBLE AS price FROM range(1, 3)");
    is_read_and_refreshed(&sandbox, || add("INSERT INTO shop.orders VALUES (3, 1.0)"));
}

#[test]
fn tables_of_another_file_of_the_engine_are_sources() {
    let sandbox = project("driver: duckdb\npath: data/shop.duckdb\n");
    sandbox.remove("models/large.yaml");
    fs::create_dir(sandbox.path().join("data")).expect("a folder is made");
    let file = sandbox.path().join("data/shop.duckdb");
    make(&file);
    let said = sandbox.call(&["run", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(
        sandbox.rows("SELECT * FROM total"),
        serde_json::json!([[2, 22.5]])
    );
    ByHand::open(&file).run("INSERT INTO orders VALUES (3, 1.0)");
    assert_eq!(
        sandbox.outcome(&["refresh", "orders", "--json"], "total"),
        "built"
    );

    fs::remove_file(&file).expect("the file goes");
    assert_eq!(
        sandbox.outcome(&["refresh", "shop", "orders", "--json"], "shop"),
        "connection-failed"
    );
    assert_eq!(sandbox.rows("SELECT orders FROM total"), serde_json::json!([[3]]));
}

#[test]
fn a_source_that_names_a_file_of_the_engine_reads_its_table_and_never_one_of_that_name_here() {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "models/orders.sql",
            "-- @materialize: true\nSELECT 7 AS id, 0.5 AS price\n",
        ),
        (
            "sources/raw.yaml",
            "type: source\nconnector: duckdb\ntable: orders\ndb: data/shop.duckdb\n",
        ),
        ("data/readme.txt", ""),
    ]);
    make(&sandbox.path().join("data/shop.duckdb"));
    let said = sandbox.call(&["run", "--json"]);
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    let rows = || sandbox.rows("SELECT count(*) AS n, min(id)::INTEGER AS first FROM raw");
    assert_eq!(rows(), serde_json::json!([[2, 1]]));
    sandbox.write(
        "sources/raw.yaml",
        "type: source\nconnector: duckdb\nsql: SELECT * FROM orders\ndb: data/shop.duckdb\n",
    );
    let said = sandbox.call(&["run"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stdout.contains("conflicting-keys") || said.stderr.contains("conflicting-keys"));
    assert_eq!(rows(), serde_json::json!([[2, 1]]));
}

#[test]
fn the_file_of_the_connector_that_models_are_built_on_is_read_and_never_written() {
    let sandbox = Sandbox::with(&[
        ("rill.yaml", "olap_connector: local_duckdb\n"),
        (
            "connectors/local_duckdb.yaml",
            "type: connector\ndriver: duckdb\ndsn: '{{ env \"SHOP\" \"data/shop.duckdb\" }}'\n",
        ),
        (
            "sources/orders.yaml",
            "type: source\nconnector: local_duckdb\ntable: orders\n",
        ),
        (
            "models/total.sql",
            "-- @materialize: true\nSELECT sum(price)::DOUBLE AS price FROM orders\n",
        ),
        ("models/alone.sql", "SELECT 1 AS x\n"),
        (
            "metrics/totals.yaml",
            "version: 1\ntype: metrics_view\nconnector: local_duckdb\nmodel: total\nmeasures: [{name: price, expression: sum(price)}]\n",
        ),
        ("data/readme.txt", ""),
    ]);
    assert_eq!(sandbox.outcome(&["run", "--json"], "orders"), "missing-file");
    assert_eq!(sandbox.rows("SELECT * FROM alone"), serde_json::json!([[1]]));
    let file = sandbox.path().join("data/shop.duckdb");
    make(&file);
    let before = fs::read(&file).expect("the file can be read");
    let said = sandbox.call(&["run"]);
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    assert!(
        said.stderr.contains("the file is read alone") || said.stdout.contains("the file is read alone"),
        "{}{}",
        said.stdout,
        said.stderr
    );
    assert_eq!(sandbox.rows("SELECT * FROM total"), serde_json::json!([[22.5]]));
    assert_eq!(fs::read(&file).expect("the file can be read"), before);
}

#[test]
fn a_range_of_a_sheet_of_excel_is_a_source() {
    if !has_extension("excel") {
        return;
    }
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "sources/costs.yaml",
            "type: source\nconnector: local_file\npath: data/costs.xlsx\nsheet: Sheet1\nrange: A1:B3\nheader: true\n",
        ),
    ])
    .extended();
    fs::create_dir(sandbox.path().join("data")).expect("a folder is made");
    let write = |costs: &str| {
        let maker = ByHand::in_memory();
        maker.run(&format!(
            "SET extension_directories = ['{}']; LOAD excel",
            server::extensions().display()
        ));
        let file = sandbox.path().join("data/costs.xlsx");
        maker.run(&format!(
            "COPY (SELECT * FROM (VALUES {costs}) AS rows(what, cost)) TO '{}' (FORMAT xlsx, HEADER true)",
            file.display()
        ));
    };
    write("('rent', 1.5), ('heat', 2.5), ('beyond', 100.0)");
    let said = sandbox.call(&["run", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let expected = serde_json::json!([["rent", 1.5], ["heat", 2.5]]);
    assert_eq!(sandbox.rows("SELECT * FROM costs"), expected);
    write("('rent', 3.0), ('heat', 2.5), ('beyond', 100.0)");
    assert_eq!(
        sandbox.outcome(&["run", "--json"], "costs"),
        "built",
        "the file has changed"
    );
}

fn make(file: &Path) {
    ByHand::open(file)
        .run("CREATE TABLE orders AS SELECT range AS id, range * 7.5 AS price FROM range(1, 3)");
}

#[test]
fn a_database_of_motherduck_is_told_with_what_to_do_instead() {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        (".env", "quack_token=hush-hush-4761\n"),
        (
            "connectors/quack.yaml",
            "type: connector\ndriver: motherduck\ntoken: \"{{ .env.quack_token }}\"\n",
        ),
        (
            "connectors/cloud.yaml",
            "type: connector\ndriver: duckdb\npath: \"md:warehouse\"\ntoken: \"{{ .env.quack_token }}\"\n",
        ),
        (
            "sources/orders.yaml",
            "type: source\nconnector: quack\nsql: SELECT * FROM warehouse.all_orders\n",
        ),
        (
            "sources/clients.yaml",
            "type: source\nconnector: cloud\ntable: all_clients\n",
        ),
        ("models/own.sql", "SELECT 1 AS x"),
    ]);
    let said = sandbox.call(&["run"]);
    assert_eq!(said.code, Some(1), "{}{}", said.stdout, said.stderr);
    for line in [
        "driver \"motherduck\" is not supported yet",
        "\"md:warehouse\" is a database of MotherDuck, which is not supported yet",
        "have it write its tables as Parquet into a bucket",
    ] {
        assert!(said.stderr.contains(line), "{line}: {}", said.stderr);
    }
    assert_eq!(
        sandbox.outcome(&["run", "--json"], "orders"),
        "connector-unsupported"
    );
    assert_eq!(sandbox.rows("SELECT x FROM own"), serde_json::json!([[1]]));
    sandbox.assert_nowhere(&["hush-hush-4761"], "quack");
}

//! Models whose rows are written to a table of another database: at once, only when they changed, and never over what is
//! somebody's.

use watershed_drivers::duckdb::ByHand;
use watershed_tests::postgres::Server;
use watershed_tests::server;

use crate::connected::has_extension;
use crate::sandbox::{Sandbox, crash_points};

const SECRET: &str = "hush-hush-4731";

const MODEL: &str = "type: model\nsql: \"SELECT range AS day, 'x' AS name, 1.5 AS price FROM range(2)\"\n\
                     output: {connector: shop, table: results.days}\n";

/// A database, asked by an engine of its own.
struct Asked {
    maker: ByHand,
    _server: Option<Server>,
}

impl Asked {
    fn postgres(server: Server) -> Self {
        let maker = ByHand::in_memory();
        maker.run(&format!(
            "SET extension_directories = ['{}']",
            server::extensions().display()
        ));
        maker.run(&format!("ATTACH '{}' AS shop (TYPE postgres)", server.url()));
        Self {
            maker,
            _server: Some(server),
        }
    }

    /// Runs a statement in the database's own SQL.
    fn run(&self, sql: &str) {
        self.maker.run(&format!(
            "CALL postgres_execute('shop', '{}')",
            sql.replace('\'', "''")
        ));
    }

    fn lines(&self, sql: &str) -> Vec<String> {
        let asked = format!(
            "SELECT * FROM postgres_query('shop', '{}')",
            sql.replace('\'', "''")
        );
        self.maker.lines(&asked)
    }

    fn days(&self) -> Vec<String> {
        self.lines("SELECT day::text || name FROM results.days ORDER BY day")
    }

    /// Stands for the table: another one after each swap.
    fn oid(&self) -> Vec<String> {
        self.lines("SELECT 'results.days'::regclass::oid::text")
    }

    fn tables(&self) -> Vec<String> {
        self.lines(
            "SELECT relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace \
             WHERE nspname = 'results' ORDER BY relname",
        )
    }
}

/// A project whose model is written to Postgres, and the database.
fn project() -> Option<(Sandbox, Asked)> {
    if !has_extension("postgres_scanner") {
        return None;
    }
    let server = Server::start()?;
    let connector = format!(
        "driver: postgres\nhost: {}\nuser: postgres\npassword: \"{{{{ .env.shop_password }}}}\"\ndbname: postgres\n",
        server.socket_folder().display()
    );
    let asked = Asked::postgres(server);
    asked.run("CREATE SCHEMA results");
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        (".env", &format!("shop_password={SECRET}\n")),
        ("connectors/shop.yaml", &connector),
        ("models/days.yaml", MODEL),
    ])
    .extended();
    Some((sandbox, asked))
}

#[test]
fn rows_are_swapped_in_when_they_changed_and_the_table_goes_with_its_model() {
    let Some((project, shop)) = project() else { return };
    project.run(0);
    assert_eq!(shop.days(), ["0x", "1x"]);
    let types = "SELECT string_agg(data_type, ', ' ORDER BY ordinal_position) FROM information_schema.columns \
                 WHERE table_schema = 'results'";
    assert_eq!(shop.lines(types), ["bigint, character varying, numeric"]);
    let oid = shop.oid();
    assert!(project.run(0).is_empty(), "nothing is left to do");
    assert_eq!(shop.oid(), oid, "nothing was written");
    assert_eq!(
        project.rows("SELECT count(*) FROM days"),
        serde_json::json!([[2]])
    );
    project.assert_nowhere(&[SECRET], "shop");

    project.edit("models/days.yaml", "range(2)", "range(3)");
    project.run(0);
    assert_eq!(shop.days().len(), 3);
    assert_ne!(shop.oid(), oid);
    let connector = std::fs::read_to_string(project.path().join("connectors/shop.yaml"));
    project.write("connectors/store.yaml", &connector.expect("the connector"));
    project.edit("models/days.yaml", "connector: shop", "connector: store");
    project.run(0);
    assert_eq!(
        shop.days().len(),
        3,
        "it is the same table through another connector"
    );
    project.edit("models/days.yaml", "connector: store", "connector: shop");
    project.run(0);
    project.remove("connectors/store.yaml");
    project.edit("models/days.yaml", "results.days", "results.others");
    project.run(0);
    assert_eq!(shop.tables(), ["others"], "the table has moved");
    project.forget();
    project.run(0);
    assert_eq!(shop.tables(), ["others"]);
    project.remove("models/days.yaml");
    project.remove("connectors/shop.yaml");
    project.write("models/else.sql", "SELECT 1 AS x");
    project.run(0);
    assert_eq!(shop.tables(), [""; 0]);
    project.assert_nowhere(&[SECRET], "else");
}

#[test]
fn a_table_that_a_person_made_is_never_written_over_or_dropped() {
    let Some((project, shop)) = project() else { return };
    shop.run("CREATE TABLE results.days AS SELECT 7 AS day, 'mine' AS name");
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("error[export-taken]"), "{}", said.stderr);
    assert!(said.stderr.contains("models/days.yaml:3:"), "{}", said.stderr);
    assert_eq!(shop.days(), ["7mine"]);
    shop.run("DROP TABLE results.days");
    shop.run("CREATE VIEW results.days AS SELECT 8 AS day, 'view' AS name");
    assert_eq!(project.outcome(&["run", "--json"], "days"), "export-taken");
    assert_eq!(shop.days(), ["8view"]);
    shop.run("DROP VIEW results.days");
    project.run(0);
    // Somebody takes it over.
    shop.run("COMMENT ON TABLE results.days IS 'ours by now'");
    project.edit("models/days.yaml", "range(2)", "range(3)");
    assert_eq!(project.outcome(&["run", "--json"], "days"), "export-taken");
    project.remove("models/days.yaml");
    project.write("models/else.sql", "SELECT 1 AS x");
    project.run(0);
    assert_eq!(shop.days(), ["0x", "1x"], "it is not dropped either");
}

#[test]
fn what_a_database_can_not_take_is_said_and_its_table_stays() {
    let Some((project, shop)) = project() else { return };
    project.run(0);
    project.edit("models/days.yaml", "1.5 AS price", "{'a': 1} AS price");
    let said = project.call(&["run"]);
    assert!(said.stderr.contains("error[export-failed]"), "{}", said.stderr);
    assert!(
        said.stderr.contains("column \"price\" has type STRUCT"),
        "{}",
        said.stderr
    );
    project.edit("models/days.yaml", "{'a': 1} AS price", "1 AS price");
    shop.run("CREATE VIEW results.seen AS SELECT * FROM results.days");
    let said = project.call(&["run"]);
    assert!(
        said.stderr.contains("other objects depend on it"),
        "{}",
        said.stderr
    );
    assert_eq!(shop.days(), ["0x", "1x"]);
    shop.run("DROP VIEW results.seen");
    project.edit("models/days.yaml", "results.days", "nowhere.days");
    let said = project.call(&["run"]);
    assert!(said.stderr.contains("no schema \"nowhere\""), "{}", said.stderr);
    assert_eq!(
        project.outcome(&["run", "--sandbox", "--json"], "days"),
        "outside-sandbox"
    );
    project.edit("models/days.yaml", "nowhere.days", "results.days");
    project.edit("connectors/shop.yaml", "user: postgres", "user: nobody_here");
    project.outcome(&["run", "--json"], "days");
    assert_eq!(shop.days(), ["0x", "1x"]);
    project.edit("connectors/shop.yaml", "user: nobody_here", "user: postgres");
    project.run(0);
    assert_eq!(shop.tables(), ["days"]);
    project.assert_nowhere(&[SECRET], "shop");
}

#[test]
fn dead_at_any_point_the_table_is_that_of_before_or_the_new_one() {
    let Some((project, shop)) = project() else { return };
    project.run(0);
    let points = crash_points(&["catalog", "build", "table"]);
    let (mut deaths, mut rows) = (0, 2);
    for point in points {
        for visit in 0..3 {
            let before = rows;
            rows = 5 - rows;
            project.edit(
                "models/days.yaml",
                &format!("range({before})"),
                &format!("range({rows})"),
            );
            let story = format!("{point}, visit {visit}");
            let died = project.dies_at(point, visit);
            deaths += u32::from(died);
            assert!([before, rows].contains(&shop.days().len()), "{story}");
            project.expect_run(0, &story);
            assert_eq!(shop.days().len(), rows, "{story}");
            assert_eq!(shop.tables(), ["days"], "{story}");
            assert!(
                project.expect_run(0, &story).is_empty(),
                "{story}: something is left to do"
            );
            if !died {
                break;
            }
        }
    }
    assert!(deaths >= 8, "{deaths} deaths");
}

#[test]
fn rows_are_written_to_another_file_of_the_engine() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "connectors/shop.yaml",
            "driver: duckdb\npath: results.duckdb\nmode: readwrite\n",
        ),
        (
            "models/days.yaml",
            "type: model\nsql: \"SELECT range AS day, {'a': 1} AS nested FROM range(2)\"\n\
             output: {connector: shop, table: days}\n",
        ),
    ]);
    project.run(0);
    let file = project.path().join("results.duckdb");
    let days = || ByHand::open(&file).lines("SELECT day::VARCHAR || nested.a FROM days ORDER BY 1");
    assert_eq!(days(), ["01", "11"]);
    assert!(project.run(0).is_empty(), "nothing is left to do");
    project.edit("models/days.yaml", "range(2)", "range(3)");
    project.run(0);
    assert_eq!(days().len(), 3);
    ByHand::open(&file).run("CREATE OR REPLACE TABLE days AS SELECT 7 AS day, {'a': 2} AS nested");
    project.edit("models/days.yaml", "range(3)", "range(4)");
    assert_eq!(project.outcome(&["run", "--json"], "days"), "export-taken");
    ByHand::open(&file).run("DROP TABLE days");
    project.run(0);
    assert_eq!(days().len(), 4);
    project.remove("models/days.yaml");
    project.write("models/else.sql", "SELECT 1 AS x");
    project.run(0);
    let tables = ByHand::open(&file).lines("SELECT table_name FROM duckdb_tables()");
    assert_eq!(tables, [""; 0]);
}

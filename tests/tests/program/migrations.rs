//! Traces that migrations and connectors leave in the engine, as an input of what reads it.

use std::fs;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// A migration that makes a macro, a macro that uses it, one that nobody uses with them, and a table.
const INIT: &str = "\
    CREATE OR REPLACE MACRO dollars(c, unit := 100.0) AS round(c / unit, 2);\n\
    CREATE OR REPLACE MACRO with_tax(c) AS dollars(c) * 2;\n\
    CREATE OR REPLACE MACRO shout(t) AS upper(t);\n";

const PAYMENTS: &[(&str, &str)] = &[
    ("watershed.yaml", ""),
    ("init.sql", INIT),
    (
        "models/raw.sql",
        "-- @materialize: true\nSELECT 500 AS amount, 'a' AS name\n",
    ),
    ("models/paid.sql", "SELECT dollars(amount) AS amount FROM raw\n"),
    (
        "models/fct.sql",
        "-- @materialize: true\nSELECT sum(amount) AS revenue FROM paid\n",
    ),
    (
        "models/taxed.sql",
        "-- @materialize: true\nSELECT with_tax(amount) AS amount FROM raw\n",
    ),
    (
        "models/loud.sql",
        "-- @materialize: true\nSELECT shout(name) AS name FROM raw\n",
    ),
];

fn payments() -> Sandbox {
    let project = Sandbox::with(PAYMENTS);
    project.run(0);
    project
}

fn number(project: &Sandbox, sql: &str) -> f64 {
    let answer = project.query(sql);
    let value = &answer["rows"][0][0];
    value
        .as_f64()
        .or_else(|| value.as_str()?.parse().ok())
        .unwrap_or_else(|| panic!("{sql}: {answer}"))
}

#[test]
fn an_edited_macro_builds_what_reads_it_however_deep_and_nothing_else() {
    let project = payments();
    assert_eq!(number(&project, "SELECT revenue FROM fct"), 5.0);
    project.edit("init.sql", "100.0", "10.0");
    assert_eq!(project.done(0), "fct:built init:built paid:built taxed:built");
    assert_eq!(number(&project, "SELECT revenue FROM fct"), 50.0);
    assert_eq!(number(&project, "SELECT amount FROM taxed"), 100.0);
    let before = fs::metadata(project.engine_file())
        .and_then(|file| file.modified())
        .unwrap();
    assert_eq!(project.done(0), "");
    let after = fs::metadata(project.engine_file())
        .and_then(|file| file.modified())
        .unwrap();
    assert_eq!(
        before, after,
        "nobody opens the engine to learn that nothing changed"
    );
    project.edit("init.sql", "upper(t)", "lower(t)");
    assert_eq!(project.done(0), "init:built loud:built");
}

#[test]
fn what_a_migration_makes_is_in_the_graph() {
    let project = payments();
    let graph = project.call(&["graph", "--json"]).json();
    let edges = graph["edges"].as_array().unwrap();
    let read: Vec<&str> = edges
        .iter()
        .filter(|edge| edge["from"]["name"] == "init")
        .filter_map(|edge| edge["to"]["name"].as_str())
        .collect();
    assert_eq!(read, ["loud", "paid", "taxed"]);
}

#[test]
fn a_macro_whose_definition_is_gone_is_gone_as_in_a_fresh_build() {
    let project = payments();
    project.edit("init.sql", "CREATE OR REPLACE MACRO shout(t) AS upper(t);\n", "");
    let said = project.call(&["run", "--json"]);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    let failed: Vec<Value> = said.json()["resources"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["health"] == "failed")
        .map(|one| one["name"].clone())
        .collect();
    assert_eq!(failed, [json!("loud")]);
    project.remove("models/loud.sql");
    project.run(0);
    project.remove("init.sql");
    project.run(1);
}

#[test]
fn a_macro_need_not_be_replaced_by_its_own_words() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "init.sql",
            "CREATE MACRO one() AS 1;\nCREATE MACRO IF NOT EXISTS two() AS 2;\n",
        ),
        (
            "models/m.sql",
            "-- @materialize: true\nSELECT one() + two() AS n\n",
        ),
    ]);
    project.run(0);
    project.write(
        "init.sql",
        "CREATE MACRO one() AS 10;\nCREATE MACRO IF NOT EXISTS two() AS 20;\n",
    );
    assert_eq!(project.done(0), "init:built m:built");
    assert_eq!(number(&project, "SELECT n FROM m"), 30.0);
}

#[test]
fn a_table_that_a_migration_makes_or_changes_is_an_input_by_its_last_run() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "migrations/rates.yaml",
            "type: migration\nsql: CREATE OR REPLACE TABLE rates AS SELECT 2 AS rate\n",
        ),
        (
            "models/m.sql",
            "-- @materialize: true\nSELECT rate * 3 AS n FROM rates\n",
        ),
        ("models/other.sql", "-- @materialize: true\nSELECT 1 AS rates\n"),
    ]);
    project.run(0);
    assert_eq!(number(&project, "SELECT n FROM m"), 6.0);
    project.edit("migrations/rates.yaml", "SELECT 2", "SELECT 4");
    assert_eq!(project.done(0), "m:built rates:built");
    assert_eq!(number(&project, "SELECT n FROM m"), 12.0);
    project.write(
        "migrations/z_more.yaml",
        "type: migration\nsql: UPDATE \"Rates\" SET rate = 5\n",
    );
    assert_eq!(project.done(0), "m:built z_more:built");
    assert_eq!(number(&project, "SELECT n FROM m"), 15.0);
    assert_eq!(project.done(0), "");
}

#[test]
fn views_and_types_of_a_migration_are_inputs() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "init.sql",
            "CREATE OR REPLACE VIEW numbers AS SELECT 7 AS n;\n\
             DROP TYPE IF EXISTS mood; CREATE TYPE mood AS ENUM ('sad', 'ok');\n",
        ),
        ("models/m.sql", "-- @materialize: true\nSELECT n FROM numbers\n"),
        (
            "models/t.sql",
            "-- @materialize: true\nSELECT enum_code('ok'::mood)::INTEGER AS code\n",
        ),
        ("models/u.sql", "-- @materialize: true\nSELECT 1 AS x\n"),
    ]);
    project.run(0);
    project.edit("init.sql", "SELECT 7", "SELECT 8");
    assert_eq!(project.done(0), "init:built m:built");
    project.edit("init.sql", "('sad', 'ok')", "('sad', 'fine', 'ok')");
    assert_eq!(project.done(0), "init:built t:built");
    assert_eq!(number(&project, "SELECT code FROM t"), 2.0);
}

#[test]
fn a_file_that_is_read_inside_a_macro_or_a_text_is_an_input() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("data/a.csv", "n\n1\n"),
        (
            "init.sql",
            "CREATE OR REPLACE MACRO rows_of_a() AS TABLE SELECT * FROM read_csv('data/a.csv');\n",
        ),
        (
            "models/m.sql",
            "-- @materialize: true\nSELECT n FROM rows_of_a()\n",
        ),
        (
            "models/q.sql",
            "-- @materialize: true\nSELECT n FROM query('FROM ''data/a.csv''')\n",
        ),
        ("models/r.sql", "SELECT n FROM query('FROM m')\n"),
    ]);
    project.run(0);
    project.write("data/a.csv", "n\n12\n");
    assert_eq!(project.done(0), "m:built q:built");
    assert_eq!(
        number(
            &project,
            "SELECT sum(n) FROM (FROM m UNION ALL FROM q UNION ALL FROM r)"
        ),
        36.0
    );
    assert_eq!(project.done(0), "");
}

#[test]
fn a_setting_of_a_migration_is_made_again_by_every_process_and_is_an_input() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("init.sql", "SET default_null_order = 'nulls_first';\n"),
        (
            "models/m.sql",
            "-- @materialize: true\nSELECT first(x ORDER BY x) IS NULL AS is_first FROM (VALUES (1), (NULL)) t(x)\n",
        ),
    ]);
    project.run(0);
    assert_eq!(project.query("FROM m")["rows"], json!([[true]]));
    // Another process builds as the one that ran the migration.
    project.call(&["refresh", "m"]);
    assert_eq!(project.query("FROM m")["rows"], json!([[true]]));
    let sorted = project.query("SELECT x FROM (VALUES (1), (NULL)) t(x) ORDER BY x");
    assert_eq!(sorted["rows"], json!([[null], [1]]), "also one that only asks");
    project.write("init.sql", "SELECT 1;\n");
    assert_eq!(project.done(0), "init:built m:built");
    assert_eq!(project.query("FROM m")["rows"], json!([[false]]));
}

#[test]
fn a_lost_catalog_learns_what_migrations_made_and_builds_nothing() {
    let project = payments();
    project.forget_catalog();
    assert_eq!(project.done(0), "");
    project.edit("init.sql", "100.0", "10.0");
    assert_eq!(project.done(0), "fct:built init:built paid:built taxed:built");
}

#[test]
fn the_statements_of_a_connector_begin_every_connection_and_are_an_input() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "connectors/duckdb.yaml",
            "driver: duckdb\ninit_sql: |\n  SET VARIABLE tax = 2;\n  CREATE OR REPLACE MACRO taxed(x) AS x * 2\n",
        ),
        (
            "models/m.sql",
            "-- @materialize: true\nSELECT getvariable('tax') + taxed(3) AS n\n",
        ),
    ]);
    project.run(0);
    assert_eq!(number(&project, "SELECT n FROM m"), 8.0);
    assert_eq!(
        number(&project, "SELECT getvariable('tax')"),
        2.0,
        "also without an owner"
    );
    assert_eq!(project.done(0), "");
    project.edit("connectors/duckdb.yaml", "tax = 2", "tax = 5");
    assert_eq!(project.done(0), "m:built");
    assert_eq!(number(&project, "SELECT n FROM m"), 11.0);
    project.edit("connectors/duckdb.yaml", "SET VARIABLE tax = 5", "SELECTT 1");
    let said = project.call(&["run", "--json"]);
    assert_eq!(said.code, Some(1));
    let document = said.json();
    let connector = document["resources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["kind"] == "connector")
        .unwrap();
    assert_eq!(connector["error"]["code"], "init-sql", "{connector}");
    assert_eq!(connector["error"]["at"]["path"], "connectors/duckdb.yaml");
    assert_eq!(connector["error"]["at"]["line"], 3);
}

#[test]
fn casts_are_as_lax_as_the_format_has_them_unless_a_connector_says_otherwise() {
    let cast = "-- @materialize: true\nSELECT CASE WHEN k > 1 THEN name ELSE 0 END AS x FROM (SELECT range AS k, 'a' || range AS name FROM range(3))\n";
    let project = Sandbox::with(&[("watershed.yaml", ""), ("models/m.sql", cast)]);
    project.run(0);
    project.write(
        "connectors/duckdb.yaml",
        "driver: duckdb\ninit_sql: SET old_implicit_casting = false\n",
    );
    project.run(1);
}

#[test]
fn a_mended_migration_is_not_shown_with_the_error_of_its_old_text() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("init.sql", "-- @type: migration\nSELECT nope\n"),
    ]);
    project.run(1);
    project.write(
        "init.sql",
        "-- @type: migration\nCREATE OR REPLACE MACRO x(a) AS a;\n",
    );
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(!said.stderr.contains("nope"), "{}", said.stderr);
}

//! Unit tests of models: rows that a query yields from given ones, whatever the project's tables hold.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

const LATE: &str = "\
type: model
materialize: true
sql: |
  SELECT carrier, count(*) AS flights, max(day) AS latest -- of those that were late
  FROM flights JOIN carriers USING (code)
  WHERE delay > 15
  GROUP BY carrier;
unit_tests:
  - name: small delays are no delays
    given:
      flights:
        - {code: A, delay: 16, day: 2026-01-31}
        - {code: A, delay: 15, day: 2026-02-01}
        - {code: B, delay: 200, day: 2026-02-02}
      carriers: {csv: tests/carriers.csv}
    expect:
      - {carrier: Alpha, flights: 1, latest: 2026-01-31}
      - {carrier: Beta, flights: 1, latest: 2026-02-02}
  - name: nobody is late
    given:
      flights: {rows: [], types: {code: VARCHAR, delay: INTEGER, day: DATE}}
      carriers: {sql: \"SELECT 'A' AS code, 'Alpha' AS carrier\"}
    expect: []
";

fn project() -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "models/flights.sql",
            "-- @materialize: true\nSELECT 'B' AS code, 99 AS delay, DATE '2025-12-31' AS day\n",
        ),
        (
            "models/carriers.sql",
            "-- @materialize: true\nSELECT 'B' AS code, 'Beta' AS carrier\n",
        ),
        ("tests/carriers.csv", "code,carrier\nA,Alpha\nB,Beta\n"),
        ("models/late.yaml", LATE),
    ])
}

/// The tests of `late` in a document, as `name: outcome rows`.
fn tests(document: &Value) -> Vec<String> {
    tests_of(document, "late")
}

fn tests_of(document: &Value, model: &str) -> Vec<String> {
    let lists = [&document["resources"], &document["models"]];
    let mut all = lists.into_iter().filter_map(Value::as_array).flatten();
    let found = all.find(|it| it["name"] == model).expect("it is listed");
    let line = |test: &Value| {
        let rows = test["rows"].as_array().expect("a list").iter();
        let rows: Vec<&str> = rows.filter_map(Value::as_str).collect();
        format!("{}: {} {}", test["name"], test["outcome"], rows.join("; ")).replace('"', "")
    };
    found["tests"]
        .as_array()
        .expect("a list")
        .iter()
        .map(line)
        .collect()
}

#[test]
fn a_query_is_tested_on_given_rows_and_its_failure_keeps_the_last_good_table() {
    let project = project();
    let document = project.call(&["run", "--json"]).json();
    assert_eq!(document["exit_code"], 0, "{document}");
    assert_eq!(
        tests(&document),
        ["small delays are no delays: passed ", "nobody is late: passed "]
    );
    let good = json!([["Beta", "1", "2025-12-31"]]);
    let rows =
        || project.query("SELECT carrier, flights::VARCHAR, latest::VARCHAR FROM late")["rows"].clone();
    assert_eq!(rows(), good, "the project's tables are not those of the tests");

    project.edit("models/late.yaml", "delay > 15", "delay >= 15");
    let document = project.call(&["run", "--json"]).json();
    assert_eq!(document["exit_code"], 1);
    let wrong = "small delays are no delays: failed \
                 difference = missing, carrier = Alpha, flights = 1, latest = 2026-01-31; \
                 difference = unexpected, carrier = Alpha, flights = 2, latest = 2026-02-01";
    assert_eq!(tests(&document), [wrong, "nobody is late: passed "]);
    assert_eq!(rows(), good);
    let said = project.call(&["run"]);
    assert!(
        said.stderr.contains(
            "error[test-failed]: test \"small delays are no delays\" failed: 2 rows\n --> models/late.yaml:9"
        ),
        "{}",
        said.stderr
    );
    let said = project.call(&["test", "--json", "late"]);
    assert_eq!((said.code, tests(&said.json())), (Some(1), tests(&document)));

    project.edit("models/late.yaml", "delay >= 15", "delay > 15");
    assert_eq!(project.call(&["run"]).code, Some(0));
    assert_eq!(project.call(&["test"]).code, Some(0));
}

#[test]
fn unit_tests_that_change_alone_are_run_without_a_build() {
    let project = project();
    project.run(0);
    project.edit(
        "models/late.yaml",
        "{carrier: Beta, flights: 1",
        "{carrier: Beta, flights: 2",
    );
    assert_eq!(project.done(1), "", "nothing is built");
    project.edit(
        "models/late.yaml",
        "{carrier: Beta, flights: 2",
        "{carrier: Beta, flights: 1",
    );
    assert_eq!(project.done(0), "");
}

#[test]
fn the_template_of_an_incremental_model_is_tested_as_in_a_whole_build() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/raw.sql", "-- @materialize: true\nSELECT 1 AS id\n"),
        (
            "models/added.yaml",
            "type: model\nincremental: true\n\
             sql: SELECT id * {{ .env.factor }} AS id FROM raw {{ if incremental }} WHERE id > (SELECT max(id) FROM added) {{ end }}\n\
             unit_tests:\n  - name: all rows\n    given: {raw: [{id: 1}, {id: 2}]}\n    expect: [{id: 3}, {id: 6}]\n",
        ),
        (".env", "factor=3\n"),
    ]);
    assert_eq!(project.done(0), "added:built raw:built");
    assert_eq!(project.call(&["test"]).code, Some(0));
}

#[test]
fn a_list_without_rows_has_the_columns_of_its_table() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "models/raw.sql",
            "-- @materialize: true\nSELECT 1 AS id, DATE '2026-01-01' AS day\n",
        ),
        (
            "models/days.yaml",
            "type: model\nsql: SELECT day, sum(id) AS ids FROM raw GROUP BY day\n\
             unit_tests: [{name: none, given: {raw: []}, expect: []}]\n",
        ),
    ]);
    project.run(0);
    project.edit("models/days.yaml", "expect: []", "expect: [{ids: 1}]");
    // A plan knows that the tests are run again.
    assert_eq!(project.call(&["plan", "--exit-code"]).code, Some(5));
    assert_eq!(project.call(&["run"]).code, Some(1));
    project.edit("models/days.yaml", "expect: [{ids: 1}]", "expect: []");
    project.run(0);
    assert_eq!(project.call(&["plan", "--exit-code"]).code, Some(0));
}

#[test]
fn columns_that_given_rows_do_not_name_are_null_of_their_type() {
    let project = project();
    let given = "{code: A, delay: 16, day: 2026-01-31}\n        - {code: A, delay: 15, day: 2026-02-01}";
    let late = LATE.replace(given, "{code: A, delay: 16}");
    let late = late.replace("latest: 2026-01-31}", "latest: null}");
    let late = late.replace(
        "{rows: [], types: {code: VARCHAR, delay: INTEGER, day: DATE}}",
        "{rows: [], types: {code: VARCHAR}}",
    );
    // Of what nobody names in any row: neither `delay` nor `day`.
    project.write(
        "models/late.yaml",
        &late
            .replace("        - {code: B, delay: 200, day: 2026-02-02}\n", "")
            .replace("      - {carrier: Beta, flights: 1, latest: 2026-02-02}\n", ""),
    );
    let document = project.call(&["run", "--json"]).json();
    assert_eq!(
        tests(&document),
        ["small delays are no delays: passed ", "nobody is late: passed "]
    );
}

#[test]
fn a_given_column_that_the_table_lacks_is_a_mistake() {
    let project = project();
    project.edit("models/late.yaml", "{code: A, delay: 16,", "{code: A, dealy: 16,");
    project.edit("models/late.yaml", "{code: A, delay: 15,", "{code: A, dealy: 15,");
    project.edit(
        "models/late.yaml",
        "{code: B, delay: 200,",
        "{code: B, dealy: 200,",
    );
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let told = "test \"small delays are no delays\" can't be run: Referenced column \"dealy\" not found";
    assert!(
        said.stderr.contains(told) && said.stderr.contains("\"delay\""),
        "{}",
        said.stderr
    );
}

#[test]
fn a_mistake_beside_columns_that_are_not_given_is_named() {
    let project = project();
    let days = ", day: 2026-01-31}\n        - {code: A, delay: 15, day: 2026-02-01}\n        - {code: B, delay: 200, day: 2026-02-02}";
    project.write("models/late.yaml", &LATE.replace(days, "}"));
    project.edit("models/late.yaml", "{carrier: Alpha,", "{carier: Alpha,");
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let told = "can't be run: Referenced column \"carier\" not found";
    assert!(said.stderr.contains(told), "{}", said.stderr);
}

#[test]
fn all_tables_without_rows_are_named_at_once() {
    let project = project();
    project.write(
        "models/late.yaml",
        "type: model\nsql: SELECT code FROM flights JOIN carriers USING (code)\nunit_tests: [{name: none, given: {}, expect: []}]\n",
    );
    let said = project.call(&["validate"]).stderr;
    assert!(
        said.contains("gives no rows of \"carriers\", \"flights\""),
        "{said}"
    );
}

#[test]
fn a_test_of_relations_to_a_later_model_is_run_with_that_model() {
    let project = downstream("{relationships: {column: order_id, to: orders}}");
    let document = project.call(&["run", "--json"]).json();
    assert_eq!(document["exit_code"], 0, "{document}");
    assert_eq!(
        tests_of(&document, "orders"),
        ["relationships(order_id, orders.order_id) of items: passed "]
    );

    project.write(
        "models/orders.sql",
        "-- @materialize: true\nSELECT order_id + 1 AS order_id FROM items\n",
    );
    let document = project.call(&["run", "--json"]).json();
    assert_eq!(document["exit_code"], 1, "{document}");
    assert_eq!(
        tests_of(&document, "orders"),
        ["relationships(order_id, orders.order_id) of items: failed order_id = 1, rows = 1"]
    );
    let found = &document["diagnostics"][0];
    assert_eq!(
        (&found["code"], &found["path"], &found["resource"]["name"]),
        (
            &json!("test-failed"),
            &json!("models/items.yaml"),
            &json!("orders")
        ),
        "{document}"
    );
    let rows = project.call(&["query", "FROM orders", "--format", "csv"]).stdout;
    assert_eq!(rows, "order_id\n1\n", "the last good rows stay");

    project.write(
        "models/items.sql",
        "-- @materialize: true\nSELECT 2 AS order_id\n",
    );
    project.write(
        "models/orders.sql",
        "-- @materialize: true\nSELECT order_id FROM items\n",
    );
    assert_eq!(project.call(&["run", "--json"]).json()["exit_code"], 0);
    assert_eq!(
        project.call(&["run", "--json"]).json()["summary"]["outcomes"]["done"],
        0,
        "nothing is left to do"
    );
}

/// Items that a test holds against orders, which are made of items.
fn downstream(test: &str) -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "models/items.sql",
            "-- @materialize: true\nWITH orders AS (SELECT 1 AS order_id) SELECT order_id FROM orders\n",
        ),
        ("models/items.yaml", &format!("tests: [{test}]\n")),
        (
            "models/orders.sql",
            "-- @materialize: true\nSELECT order_id FROM items\n",
        ),
    ])
}

#[test]
fn a_query_of_a_test_that_points_downstream_is_named_with_a_way_out() {
    let project = downstream("{name: known, sql: FROM items ANTI JOIN orders USING (order_id)}");
    let said = project.call(&["validate"]).stderr;
    assert!(
        said.contains("--> models/items.yaml:1:"),
        "the test and no expression of the query: {said}"
    );
    assert!(said.contains("only its test reads `orders`"), "{said}");
}

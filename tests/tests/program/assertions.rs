//! Tests of models that change while nothing else does: they are run again, and nothing is built.

use serde_json::Value;

use crate::going::Going;
use crate::sandbox::Sandbox;

/// A table that shows by its `build` whether it was built again, with one test, and a reader of it.
fn project() -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/counted.yaml", COUNTED),
        (
            "models/reader.sql",
            "-- @materialize: true\nSELECT x FROM counted\n",
        ),
    ])
}

const COUNTED: &str = "\
type: model
materialize: true
sql: SELECT range AS x, uuid() AS build FROM range(3)
tests:
  - name: small
    assert: x < 3
";

fn build(project: &Sandbox) -> Value {
    project.query("SELECT max(build)::VARCHAR AS build FROM counted")["rows"].clone()
}

#[test]
fn a_test_that_fails_shows_and_vanishes_when_it_is_mended_and_builds_nothing() {
    let project = project();
    let mut start = Going::settled(&project);
    let built = build(&project);
    project.edit("models/counted.yaml", "x < 3", "x < 2");
    let round = start.round();
    assert_eq!(round.done(), "counted:failed reader:skipped");
    assert_eq!(round.told("diagnostic"), ["test-failed models/counted.yaml:5"]);
    assert_eq!(round.exit_code(), Some(1));
    project.edit("models/counted.yaml", "x < 2", "x < 30");
    let round = start.round();
    assert_eq!(round.done(), "", "what only looks is not counted as work");
    assert_eq!(round.told("fixed"), ["test-failed models/counted.yaml:5"]);
    assert_eq!(round.exit_code(), Some(0));
    project.edit("models/counted.yaml", "x < 30", "x < 3 AND nothing > 1");
    assert_eq!(start.round().done(), "counted:failed reader:skipped");
    project.edit(
        "models/counted.yaml",
        "tests:\n  - name: small\n    assert: x < 3 AND nothing > 1\n",
        "",
    );
    assert_eq!(start.round().exit_code(), Some(0));
    assert_eq!(build(&project), built, "its rows were good all the while");
    start.stop();
    assert_eq!(project.done(0), "");
}

#[test]
fn tests_that_changed_between_runs_are_run_once() {
    let project = project();
    project.run(0);
    let built = build(&project);
    project.edit("models/counted.yaml", "x < 3", "x < 2");
    for _ in 0..2 {
        project.run(1);
    }
    project.edit("models/counted.yaml", "x < 2", "x < 4");
    let checked = |said: Value| said["resources"][0]["work"].clone();
    let run = || project.call(&["run", "--json"]).json();
    assert_eq!(checked(run()), "checked");
    assert_eq!(checked(run()), "none");
    project.rename("models/counted.yaml", "models/total.yaml");
    project.edit("models/reader.sql", "counted", "total");
    assert_eq!(
        project.done(0),
        "total:renamed",
        "tests look at the model by any name"
    );
    project.edit("models/reader.sql", "total", "counted");
    project.rename("models/total.yaml", "models/counted.yaml");
    assert_eq!(project.done(0), "counted:renamed");
    assert_eq!(build(&project), built);
}

/// A model whose tests come to everything that tests can come to.
const ORDERS: &str = "\
type: model
materialize: true
sql: SELECT * FROM (VALUES (1, 'open', 7), (2, 'lost', 8), (2, 'open', NULL)) AS t(id, status, customer)
tests:
  - unique: id
  - not_null: [id, customer]
  - accepted_values: {column: status, values: [open, paid]}
  - {name: small, assert: id < 3}
  - relationships: {column: customer, to: customers, field: id}
    severity: warn
  - {name: sound, sql: SELECT nothing FROM orders}
";

const CUSTOMERS: &str = "-- @materialize: true\nSELECT 7 AS id\n";

fn orders(tests: &str) -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/customers.sql", CUSTOMERS),
        ("models/orders.yaml", tests),
    ])
}

/// The results of tests, as `name outcome severity failures`.
fn tests_of(document: &Value, name: &str) -> Vec<String> {
    let lists = [&document["resources"], &document["models"]];
    let all = lists.into_iter().filter_map(Value::as_array).flatten();
    let found = all.filter(|resource| resource["name"] == name);
    let tests = found
        .filter_map(|resource| resource["tests"].as_array())
        .flatten();
    let line = |test: &Value| {
        let words = [
            &test["name"],
            &test["outcome"],
            &test["severity"],
            &test["failures"],
        ];
        words.map(|word| word.to_string().replace('"', "")).join(" ")
    };
    tests.map(line).collect()
}

#[test]
fn every_failing_test_is_told_at_its_line_with_a_count_and_rows() {
    let project = orders(ORDERS);
    let document = project.call(&["run", "--json"]).json();
    assert_eq!(
        tests_of(&document, "orders"),
        [
            "unique(id) failed error 1",
            "not_null(id, customer) failed error 1",
            "accepted_values(status) failed error 1",
            "small passed error 0",
            "relationships(customer, customers.id) failed warning 1",
            "sound invalid error 0",
        ]
    );
    let counts = serde_json::json!({"passed": 1, "warned": 1, "failed": 4, "not_run": 0});
    assert_eq!(document["summary"]["tests"], counts);
    let place =
        |found: &Value| format!("{} {}:{}", found["code"], found["path"], found["line"]).replace('"', "");
    let found: Vec<String> = document["diagnostics"]
        .as_array()
        .into_iter()
        .flatten()
        .map(place)
        .collect();
    let lines = [
        (5, "failed"),
        (6, "failed"),
        (7, "failed"),
        (9, "failed"),
        (11, "invalid"),
    ];
    assert_eq!(
        found,
        lines.map(|(line, what)| format!("test-{what} models/orders.yaml:{line}"))
    );
    assert_eq!(
        document["diagnostics"][2]["notes"],
        serde_json::json!(["status = lost, rows = 1"])
    );
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1));
    for text in [
        "error[test-failed]: test \"unique(id)\" failed: 1 row\n --> models/orders.yaml:5:5",
        "= found: id = 2, rows = 2",
        "warning[test-failed]: test \"relationships(customer, customers.id)\" failed: 1 row",
        "error[test-invalid]: test \"sound\" can't be run: Referenced column \"nothing\" not found",
    ] {
        assert!(said.stderr.contains(text), "{text}: {}", said.stderr);
    }
    assert!(
        said.stdout.contains("6 tests: 4 failed, 1 warned"),
        "{}",
        said.stdout
    );
    assert_eq!(
        said.stderr.matches("error[").count(),
        4,
        "the model's own error is told by its tests: {}",
        said.stderr
    );
}

#[test]
fn a_test_that_warns_keeps_the_rows_and_counts_as_a_warning() {
    let tests = "type: model\nmaterialize: true\nsql: SELECT range AS x FROM range(9)\ntests:\n  \
                 - {name: few, assert: x < 2, severity: warn}\n  - not_null: x\n";
    let project = orders(tests);
    let document = project.call(&["run", "--json"]).json();
    assert_eq!(document["exit_code"], 0);
    assert_eq!(
        tests_of(&document, "orders"),
        ["few failed warning 7", "not_null(x) passed error 0"]
    );
    assert_eq!(project.query("SELECT count(*) AS n FROM orders")["rows"][0][0], 9);
    assert_eq!(
        project.call(&["run", "--warn-error"]).code,
        Some(1),
        "it is told at each run"
    );
    let again = project.call(&["run", "--json"]).json();
    assert_eq!(again["resources"][1]["work"], "none", "and not run at each");
    let said = project.call(&["status"]);
    assert!(
        said.stdout.contains("9 rows, 2 tests: 1 warned"),
        "{}",
        said.stdout
    );
    let said = project.call(&["show", "orders"]);
    assert!(
        said.stderr.contains("9 rows; 2 tests: 1 warned"),
        "{}",
        said.stderr
    );
}

#[test]
fn the_tests_of_what_stands_are_run_without_a_build() {
    let project = orders("type: model\nmaterialize: true\nsql: SELECT 1 AS x\ntests:\n  - not_null: x\n");
    let said = project.call(&["test"]);
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(1), ""),
        "{}",
        said.stderr
    );
    assert!(said.stderr.contains("nothing was built yet"), "{}", said.stderr);
    project.run(0);
    let said = project.call(&["test"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(
        said.stdout.contains("passed  orders  not_null(x)"),
        "{}",
        said.stdout
    );
    project.edit(
        "models/orders.yaml",
        "not_null: x",
        "accepted_values: {column: x, values: [2, 3]}",
    );
    let document = project.call(&["test", "orders", "--json"]).json();
    assert_eq!(
        tests_of(&document, "orders"),
        ["accepted_values(x) failed error 1"]
    );
    assert_eq!(
        (&document["schema"], &document["exit_code"]),
        (&"watershed.test/1".into(), &1.into())
    );
    let start = Going::settled(&project);
    assert_eq!(
        project.call(&["test", "model/orders"]).code,
        Some(1),
        "the process that runs it is asked"
    );
    start.stop();
    let said = project.call(&["test", "nothing"]);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
}

#[test]
fn tests_are_run_of_selected_models_alone() {
    let model =
        |tests: &str| format!("type: model\nmaterialize: true\nsql: SELECT 1 AS x\ntests:\n  - {tests}\n");
    let (good, bad) = (
        model("not_null: x"),
        model("accepted_values: {column: x, values: [2]}"),
    );
    let files = [
        ("watershed.yaml", ""),
        ("models/good.yaml", &*good),
        ("models/bad.yaml", &*bad),
    ];
    let project = Sandbox::with(&files);
    project.run(1);
    for selection in [["--select", "good"], ["--exclude", "bad"]] {
        let said = project.call(&["test", "--json", selection[0], selection[1]]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let document = said.json();
        assert_eq!(document["models"].as_array().map(Vec::len), Some(1), "{document}");
        assert_eq!(tests_of(&document, "good"), ["not_null(x) passed error 0"]);
    }
}

#[test]
fn a_model_whose_tests_cant_be_read_has_failed_them() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/t.sql", "SELECT 1 AS a"),
        ("models/t.yaml", "tests:\n  - name: bad\n    sql: SELEC\n"),
    ]);
    assert_eq!(project.call(&["run"]).code, Some(1));
    let said = project.call(&["test", "--json"]);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert_eq!(said.json()["models"][0]["error"]["code"], "companion-error");
}

#[test]
fn accepted_values_are_values_of_the_columns_type() {
    let project = orders(
        "\
type: model
materialize: true
sql: SELECT * FROM (VALUES ('S', 1.5, DATE '2024-01-01'), ('42', 2.0, NULL), ('007', 7.0, NULL)) AS t(size, v, day)
tests:
  - {name: texts, accepted_values: {column: size, values: [S, M, 42, '007']}}
  - {name: numbers, accepted_values: {column: v, values: [1.50, 2, 7, x]}}
  - {name: days, accepted_values: {column: day, values: ['2024-01-01']}}
  - {name: another text, severity: warn, accepted_values: {column: size, values: [S, 42, 7]}}
  - {name: rounded, severity: warn, accepted_values: {column: v, values: [1.54, 2, 7]}}
  - {name: cut, severity: warn, accepted_values: {column: day, values: ['2024-01-01 10:30:00']}}
  - {name: none of them, severity: warn, accepted_values: {column: v, values: [x]}}
",
    );
    let document = project.call(&["run", "--json"]).json();
    assert_eq!(
        tests_of(&document, "orders"),
        [
            "texts passed error 0",
            "numbers passed error 0",
            "days passed error 0",
            "another text failed warning 1",
            "rounded failed warning 1",
            "cut failed warning 1",
            "none of them failed warning 3",
        ]
    );
}

#[test]
fn related_values_are_compared_as_values_of_the_columns_type() {
    let sql = "SELECT * FROM (VALUES (9007199254740993::BIGINT, '7', 7::BIGINT, 7.5::DOUBLE, DATE '2024-01-01')) \
               AS t(id, word, number, part, day)";
    let project = orders(&format!(
        "\
type: model
materialize: true
sql: {sql}
tests:
  - {{name: same, relationships: {{column: id, to: keys, field: same}}}}
  - {{name: rounded, severity: warn, relationships: {{column: id, to: keys, field: near}}}}
  - {{name: digits, severity: warn, relationships: {{column: id, to: keys, field: near_text}}}}
  - {{name: number of text, relationships: {{column: number, to: keys, field: words}}}}
  - {{name: text of number, relationships: {{column: word, to: keys, field: number}}}}
  - {{name: another text, severity: warn, relationships: {{column: word, to: keys, field: padded}}}}
  - {{name: cut, severity: warn, relationships: {{column: number, to: keys, field: part}}}}
  - {{name: part, relationships: {{column: part, to: keys, field: part}}}}
  - {{name: day, relationships: {{column: day, to: keys, field: midnight}}}}
  - {{name: time, severity: warn, relationships: {{column: day, to: keys, field: time}}}}
  - {{name: none, severity: warn, relationships: {{column: id, to: keys, field: nothing}}}}
"
    ));
    project.write(
        "models/keys.sql",
        "-- @materialize: true\n\
         SELECT * FROM (VALUES (9007199254740993::HUGEINT, 9007199254740992::DOUBLE, '9007199254740992', 'x', 7, '007', \
         7.5::DECIMAL(4, 2), TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-01 10:30:00', NULL::DOUBLE), \
         (1, 1, '1', '7', 8, 'S', 7.4, NULL, NULL, NULL)) \
         AS t(same, near, near_text, words, number, padded, part, midnight, time, nothing)",
    );
    let document = project.call(&["run", "--json"]).json();
    assert_eq!(
        tests_of(&document, "orders"),
        [
            "same passed error 0",
            "rounded failed warning 1",
            "digits failed warning 1",
            "number of text passed error 0",
            "text of number passed error 0",
            "another text failed warning 1",
            "cut failed warning 1",
            "part passed error 0",
            "day passed error 0",
            "time failed warning 1",
            "none failed warning 1",
        ]
    );
}

#[test]
fn an_encoding_that_is_not_read_is_told_at_its_line() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "sources/names.yaml",
            "type: source\nconnector: local_file\npath: data/names.csv\nencoding: utf-16\n",
        ),
    ]);
    let text = "\u{feff}id,name\n1,x\n";
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    std::fs::create_dir_all(project.path().join("data")).expect("a folder can be made");
    std::fs::write(project.path().join("data/names.csv"), bytes).expect("a file can be written");
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.stderr.contains("error[encoding-unsupported]"),
        "{}",
        said.stderr
    );
    assert!(
        said.stderr.contains("--> sources/names.yaml:4:1"),
        "{}",
        said.stderr
    );
}

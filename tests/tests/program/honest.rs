//! Nothing is ignored without a word: keys without effect, pauses, inputs that nobody knows, words of other tools.

use serde_json::{Value, json};

use crate::sandbox::{Said, Sandbox};

fn diagnostics(said: &Said) -> Vec<Value> {
    let document = said.json();
    document["diagnostics"].as_array().expect("a list").clone()
}

/// `code path:line` of each finding.
fn told(said: &Said) -> Vec<String> {
    let line = |found: &Value| {
        let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        format!("{} {}:{}", text("code"), text("path"), found["line"])
    };
    diagnostics(said).iter().map(line).collect()
}

#[test]
fn a_key_without_effect_is_a_warning_where_it_stands() {
    let project = Sandbox::with(&[
        (
            "watershed.yaml",
            "models:\n  post_exec: SELECT 1\nfeatures: [x]\n",
        ),
        (
            "models/a.sql",
            "-- @stage: duckdb\n-- @pre_exec: SELECT 1\n-- @materialize: true\nSELECT 1 AS x\n",
        ),
        (
            "models/b.yaml",
            "type: model\nsql: SELECT 2 AS x\nchange_mode: reset\nincremental: false\npre_exec: SELECT 1\n\
             output:\n  table: bb\n  unique_key: [x]\n  colour: red\n",
        ),
        ("connectors/duckdb.yaml", "driver: duckdb\npool_size: 3\n"),
    ]);
    let expected = [
        "no-effect-yet connectors/duckdb.yaml:2",
        "no-effect-yet models/a.sql:1",
        "no-effect-yet models/b.yaml:8",
        "no-effect-yet models/b.yaml:9",
        "no-effect-yet watershed.yaml:3",
    ];
    assert_eq!(told(&project.call(&["validate", "--json"])), expected);
    assert_eq!(told(&project.call(&["run", "--json"])), expected);
    let text = project.call(&["run"]);
    assert!(
        text.stderr.contains("`stage` has no effect yet"),
        "{}",
        text.stderr
    );
}

#[test]
fn a_key_in_thousands_of_files_is_told_in_a_few() {
    let project = Sandbox::with(&[("watershed.yaml", "")]);
    for number in 0..50 {
        let text = format!("-- @stage: duckdb\nSELECT {number} AS x\n");
        project.write(&format!("models/m{number:02}.sql"), &text);
    }
    let found = diagnostics(&project.call(&["validate", "--json"]));
    assert_eq!(found.len(), 20);
    assert_eq!(found[19]["hint"], "and at 30 more places");
}

#[test]
fn what_is_paused_is_told_by_every_run() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/a.sql", "SELECT 1 AS x\n"),
        ("models/b.sql", "-- @materialize: true\nSELECT 2 AS x\n"),
    ]);
    project.run(0);
    project.call(&["pause", "b"]);
    project.edit("models/b.sql", "2", "3");
    for arguments in [
        ["run", "--no-progress"].as_slice(),
        &["refresh", "b"],
        &["reconcile", "b"],
    ] {
        let said = project.call(arguments);
        let all = format!("{}{}", said.stdout, said.stderr);
        assert_eq!(said.code, Some(0), "{all}");
        let last = all.lines().last().unwrap_or_default();
        assert!(last.contains("1 paused (b)"), "{arguments:?}: {all}");
        assert!(!last.contains("up to date"), "{arguments:?}: {all}");
        assert!(
            all.contains("waits for `watershed resume b`"),
            "{arguments:?}: {all}"
        );
    }
    let document = project.call(&["run", "--json"]).json();
    assert_eq!(
        document["summary"]["paused"],
        json!([{"kind": "model", "name": "b"}])
    );
    project.call(&["resume", "b"]);
    let document = project.call(&["run", "--json"]).json();
    assert_eq!(document["summary"]["paused"], json!([]));
}

#[test]
fn sql_whose_files_are_known_only_when_it_runs_is_built_with_a_hint() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("init.sql", "SELECT 1\n"),
        (
            "connectors/duckdb.yaml",
            "driver: duckdb\ninit_sql: SET VARIABLE p = 'data/a.csv'\n",
        ),
        ("data/a.csv", "n\n1\n"),
        (
            "models/a.sql",
            "-- @materialize: true\nSELECT * FROM read_csv('data/' || 'a.csv')\n",
        ),
        (
            "models/b.sql",
            "-- @materialize: true\nSELECT * FROM read_csv(getvariable('p'))\n",
        ),
        (
            "models/c.sql",
            "-- @materialize: true\nSELECT * FROM read_csv('data/a.csv')\n",
        ),
        (
            "models/d.sql",
            "-- @materialize: true\nSELECT * FROM read_csv(['data/a.csv', 'data/a.csv'])\n",
        ),
    ]);
    let said = project.call(&["run", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stdout);
    assert_eq!(
        told(&said),
        ["unknown-input models/a.sql:2", "unknown-input models/b.sql:2"]
    );
    project.write("data/a.csv", "n\n1\n2\n");
    assert_eq!(project.done(0), "c:built d:built");
}

#[test]
fn words_of_dbt_get_a_hint_with_ours() {
    let project = Sandbox::with(&[
        ("watershed.yaml", "models:\n  marts:\n    materialize: true\n"),
        ("models/a.sql", "SELECT * FROM {{ ref('orders') }}\n"),
        (
            "models/b.sql",
            "{{ config(materialized='table') }}\nSELECT 1 AS x\n",
        ),
        (
            "models/c.sql",
            "SELECT 1 AS x {% if is_incremental() %} WHERE false {% endif %}\n",
        ),
        (
            "models/schema.yml",
            "version: 2\nmodels:\n  - name: a\n    columns: [{name: x, tests: [unique]}]\n",
        ),
    ]);
    let found = diagnostics(&project.call(&["validate", "--json"]));
    let hint = |path: &str| {
        let of = found.iter().filter(|one| one["path"] == path);
        let hints: Vec<&str> = of.filter_map(|one| one["hint"].as_str()).collect();
        hints.join(" ")
    };
    for (path, part) in [
        ("models/a.sql", "plain name `orders`"),
        ("models/b.sql", "-- @materialize: true"),
        ("models/c.sql", "Jinja is not read here"),
        ("models/schema.yml", "`NAME.yaml` beside its `NAME.sql`"),
        ("watershed.yaml", "`models:`"),
    ] {
        assert!(hint(path).contains(part), "{path}: {found:#?}");
    }
}

#[test]
fn what_is_said_of_many_files_is_drawn_once_with_the_other_places_beside_it() {
    let scheduled = "type: model\nrefresh: {every: 1h}\nsql: SELECT 1 AS x\n";
    let names: Vec<String> = (0..8).map(|n| format!("models/m{n}.yaml")).collect();
    let mut files = vec![("watershed.yaml", "")];
    files.extend(names.iter().map(|name| (name.as_str(), scheduled)));
    let project = Sandbox::with(&files);
    let said = project.call(&["run"]);
    let heads = said
        .stderr
        .lines()
        .filter(|line| line.starts_with("note[schedule-not-in-dev]"));
    let heads: Vec<&str> = heads.collect();
    assert_eq!(heads.len(), 2, "{}", said.stderr);
    assert!(
        heads[1].ends_with(
            ", in 7 other places: models/m1.yaml:2, models/m2.yaml:2, models/m3.yaml:2, models/m4.yaml:2, \
             models/m5.yaml:2 and 2 more"
        ),
        "{}",
        heads[1]
    );
    let whole = project.call(&["validate", "-v"]).stderr;
    assert_eq!(whole.matches("note[schedule-not-in-dev]").count(), 8, "{whole}");
    assert_eq!(told(&project.call(&["validate", "--json"])).len(), 8);
}

#[test]
fn a_name_that_hides_a_view_of_the_engine_is_a_warning() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/duckdb_tables.sql", "SELECT 1 AS a"),
    ]);
    let said = project.call(&["run", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(told(&said), ["hides-engine-view models/duckdb_tables.sql:1"]);
    assert_eq!(project.call(&["query", "SHOW TABLES"]).code, Some(1));
}

#[test]
fn what_was_never_built_is_not_called_unchanged() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/a.sql", "SELECT 1 AS a"),
        ("apis/one.yaml", "type: api\nsql: SELECT 1\n"),
    ]);
    let said = project.call(&["run"]);
    assert!(
        said.stdout.contains("2 resources, 1 built, 1 checked"),
        "{}",
        said.stdout
    );
}

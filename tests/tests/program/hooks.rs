//! Statements around a build: `init_queries`, `pre_exec`, `post_exec`; and the order in which rows are written.

use serde_json::Value;

use crate::sandbox::{Said, Sandbox};

const MODEL: &str = "type: model\nmaterialize: true\ninit_queries: SET VARIABLE greeting = '{{ .env.word }}'\n\
    pre_exec:\n  - CREATE TEMP TABLE mine AS SELECT getvariable('greeting') AS word\n  \
    - ATTACH ':memory:' AS side; CREATE TABLE side.t AS SELECT 7 AS n; SET threads = 1\n\
    sql: SELECT word, n FROM mine, side.t\n\
    post_exec: UPDATE a SET n = n + 1\n";

fn project(files: &[(&str, &str)]) -> Sandbox {
    let mut all = vec![
        ("watershed.yaml", "env: {word: hello}\n"),
        ("models/a.yaml", MODEL),
    ];
    all.extend(files);
    Sandbox::with(&all)
}

/// The error of the one resource that failed.
fn error(said: &Said) -> Value {
    let document = said.json();
    let resources = document["resources"].as_array().expect("resources");
    let failed = resources.iter().find(|resource| resource["health"] == "failed");
    failed.unwrap_or_else(|| panic!("{document}"))["error"].clone()
}

fn row(project: &Sandbox, sql: &str) -> String {
    project.query(sql)["rows"][0].to_string()
}

#[test]
fn statements_are_run_around_the_build_of_their_model_and_leave_nothing_to_others() {
    let project = project(&[(
        "models/b.sql",
        "-- @materialize: true\n-- @refs: [a]\nSELECT getvariable('greeting') AS word, (SELECT count(*) FROM \
         duckdb_databases() WHERE database_name = 'side') AS n, current_setting('threads') <> 1 AS threads\n",
    )]);
    assert_eq!(project.done(0), "a:built b:built");
    assert_eq!(row(&project, "FROM a"), r#"["hello",8]"#);
    assert_eq!(row(&project, "SELECT word, n FROM b"), "[null,0]");
    assert_eq!(project.done(0), "", "nothing to do");
    project.edit("models/a.yaml", "n + 1", "n + 2 /* once */");
    let plan = project.call(&["plan"]);
    assert!(plan.stdout.contains("definition changed"), "{}", plan.stdout);
    assert_eq!(project.done(0), "a:built b:built");
    assert_eq!(row(&project, "FROM a"), r#"["hello",9]"#);
    project.edit("models/a.yaml", " /* once */", "");
    assert_eq!(project.done(0), "", "a comment is no edit");
    project.edit("watershed.yaml", "hello", "good day");
    assert_eq!(project.done(0), "a:built b:built");
    assert_eq!(row(&project, "SELECT word FROM a"), r#"["good day"]"#);
}

#[test]
fn a_failure_before_the_build_is_told_at_its_place_and_keeps_the_rows() {
    let project = project(&[]);
    project.run(0);
    project.edit("models/a.yaml", "CREATE TABLE side.t", "CREATE TABEL side.t");
    let said = project.call(&["run", "--json"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let found = error(&said);
    let at = &found["at"];
    assert_eq!(
        (&found["code"], &at["path"], &at["line"], &at["column"]),
        (
            &"pre-exec-failed".into(),
            &"models/a.yaml".into(),
            &6.into(),
            &39.into()
        ),
        "{found}"
    );
    assert_eq!(row(&project, "FROM a"), r#"["hello",8]"#);
}

#[test]
fn a_failure_after_the_build_leaves_the_new_rows_and_has_it_built_again() {
    let project = project(&[]);
    project.run(0);
    project.edit("models/a.yaml", "UPDATE a SET n", "UPDATE a SET m");
    for _ in 0..2 {
        let said = project.call(&["run", "--json"]);
        assert_eq!(said.code, Some(1), "{}", said.stderr);
        let found = error(&said);
        assert_eq!(
            (&found["code"], &found["at"]["line"]),
            (&"post-exec-failed".into(), &8.into()),
            "{found}"
        );
        assert!(
            found["hint"].to_string().contains("new rows are published"),
            "{found}"
        );
        assert_eq!(row(&project, "FROM a"), r#"["hello",7]"#);
    }
    project.edit("models/a.yaml", "SET m", "SET n");
    assert_eq!(project.done(0), "a:restored", "as it was before the edit");
    assert_eq!(row(&project, "FROM a"), r#"["hello",8]"#);
}

#[test]
fn a_death_between_the_build_and_its_last_statements_has_it_built_again() {
    let project = project(&[]);
    assert!(project.dies_at("drivers::build::after_commit", 0));
    assert_eq!(project.done(0), "a:built");
    assert_eq!(row(&project, "FROM a"), r#"["hello",8]"#);
    assert_eq!(project.done(0), "");
}

#[test]
fn secrets_in_statements_are_masked_in_their_errors() {
    let project = project(&[(".env", "key=top-secret-value\n")]);
    project.edit(
        "models/a.yaml",
        "UPDATE a SET n = n + 1",
        "SELECT error('no {{ .env.key }}')",
    );
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("post-exec-failed"), "{}", said.stderr);
    assert!(!said.stderr.contains("top-secret-value"), "{}", said.stderr);
}

#[test]
fn rows_are_written_in_the_order_of_the_output() {
    let project = project(&[(
        "models/c.yaml",
        "type: model\nmaterialize: true\noutput:\n  order_by: [x % 2, x DESC]\nsql: SELECT range AS x FROM range(5)\n",
    )]);
    project.run(0);
    let rows = "SELECT string_agg(x, ' ') FROM (SELECT x FROM c ORDER BY rowid)";
    assert_eq!(row(&project, rows), r#"["4 2 0 3 1"]"#);
    project.edit("models/c.yaml", "x DESC", "y");
    let said = project.call(&["run", "--json"]);
    let found = error(&said);
    assert_eq!(
        (&found["code"], &found["at"]["line"]),
        (&"bad-order".into(), &4.into()),
        "{found}"
    );
}

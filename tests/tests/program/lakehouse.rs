//! Sources that are tables of a lakehouse, as other programs wrote them: Delta and Iceberg.

use std::fs;
use std::path::Path;

use watershed_tests::s3::Store;

use crate::connected::has_extension;
use crate::sandbox::{Sandbox, files_below};

const SECRET: &str = "hush-hush-4753";

const TOTAL: &str = "-- @materialize: true\nSELECT sum(n)::INTEGER AS total FROM rows";

/// The table in a form.
fn table(form: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../testdata/lakehouse")
        .join(form)
}

/// The files of a table, by their paths below it.
fn files(form: &str) -> Vec<(String, Vec<u8>)> {
    let table = table(form);
    let file = |path: std::path::PathBuf| {
        let below = path.strip_prefix(&table).expect("a file of the table");
        let content = fs::read(&path).expect("it can be read");
        (below.to_str().expect("a name").to_owned(), content)
    };
    files_below(&table).into_iter().map(file).collect()
}

fn put(sandbox: &Sandbox, path: &str, content: &[u8]) {
    let path = sandbox.path().join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
    fs::write(path, content).expect("it can be written");
}

fn total(sandbox: &Sandbox) -> serde_json::Value {
    sandbox.rows("SELECT total FROM total")[0][0].clone()
}

/// The step in which the second rows came into the Delta table.
const SECOND: &str = "_delta_log/00000000000000000001.json";

#[test]
fn a_table_of_delta_is_read_again_when_its_log_goes_on() {
    if !has_extension("delta") {
        return;
    }
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "sources/rows.yaml",
            "type: source\nconnector: local_file\npath: data/orders\nformat: delta\n",
        ),
        ("models/total.sql", TOTAL),
    ])
    .extended();
    let files = files("delta");
    for (path, content) in files.iter().filter(|(path, _)| path != SECOND) {
        put(&sandbox, &format!("data/orders/{path}"), content);
    }
    sandbox.run(0);
    assert_eq!(total(&sandbox), 3);
    assert!(sandbox.run(0).is_empty(), "nothing is left to do");
    let (_, second) = files.iter().find(|(path, _)| path == SECOND).expect("the step");
    put(&sandbox, &format!("data/orders/{SECOND}"), second);
    sandbox.run(0);
    assert_eq!(total(&sandbox), 6);
}

#[test]
fn a_table_of_iceberg_is_read_again_when_it_has_another_state() {
    if !(has_extension("iceberg") && has_extension("avro")) {
        return;
    }
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "sources/rows.yaml",
            "type: source\nconnector: local_file\npath: data/orders\nformat: iceberg\nduckdb: {allow_moved_paths: true}\n",
        ),
        ("models/total.sql", TOTAL),
    ])
    .extended();
    let files = files("iceberg");
    for (path, content) in &files {
        put(&sandbox, &format!("data/orders/{path}"), content);
    }
    sandbox.run(0);
    assert_eq!(total(&sandbox), 3);
    assert!(sandbox.run(0).is_empty(), "nothing is left to do");
    let states = files.iter().filter_map(|(path, _)| {
        path.strip_prefix("metadata/")?
            .strip_suffix(".metadata.json")
            .map(str::to_owned)
    });
    let last = states.max().expect("a state");
    put(
        &sandbox,
        "data/orders/metadata/version-hint.text",
        last.as_bytes(),
    );
    sandbox.run(0);
    assert_eq!(total(&sandbox), 6);
}

/// A project that reads a table of this form in a bucket, with a secret that stands in its `.env` alone.
fn project_on(store: &Store, format: &str) -> Sandbox {
    let connector = format!(
        "driver: s3\nkey_id: key-of-a-test\nsecret: \"{{{{ .env.lake_secret }}}}\"\nregion: us-east-1\n\
         endpoint: {}\npath_prefixes: s3://lake/\n",
        store.url()
    );
    Sandbox::with(&[
        ("watershed.yaml", ""),
        (".env", &format!("lake_secret={SECRET}\n")),
        ("connectors/lake.yaml", &connector),
        (
            "sources/rows.yaml",
            &format!("type: source\nconnector: lake\npath: s3://lake/orders\n{format}\n"),
        ),
        ("models/total.sql", TOTAL),
    ])
    .extended()
}

#[test]
fn a_table_of_delta_in_a_bucket_is_asked_for_its_version() {
    if !has_extension("delta") {
        return;
    }
    let Some(store) = Store::start() else { return };
    store.create_bucket("lake");
    let files = files("delta");
    for (path, content) in files.iter().filter(|(path, _)| path != SECOND) {
        store.write("lake", &format!("orders/{path}"), content);
    }
    let sandbox = project_on(&store, "format: delta");
    assert_eq!(sandbox.outcome(&["run", "--json"], "total"), "built");
    assert_eq!(total(&sandbox), 3);
    let refresh = ["refresh", "rows", "--json"];
    assert_eq!(sandbox.outcome(&refresh, "rows"), "checked");
    sandbox.assert_nowhere(&[SECRET], "lake");
    let (_, second) = files.iter().find(|(path, _)| path == SECOND).expect("the step");
    store.write("lake", &format!("orders/{SECOND}"), second);
    assert_eq!(sandbox.outcome(&refresh, "total"), "built");
    assert_eq!(total(&sandbox), 6);
    store.write("lake", &format!("orders/{SECOND}"), b"no step at all");
    let said = sandbox.call(&refresh);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert_eq!(total(&sandbox), 6, "the last good table stays");
    sandbox.assert_nowhere(&[SECRET], "lake");
    drop(store);
    assert_eq!(sandbox.call(&refresh).code, Some(1));
    sandbox.assert_nowhere(&[SECRET], "lake");
}

#[test]
fn a_table_of_iceberg_in_a_bucket_is_asked_for_its_state() {
    if !(has_extension("iceberg") && has_extension("avro") && has_extension("httpfs")) {
        return;
    }
    let Some(store) = Store::start() else { return };
    store.create_bucket("lake");
    for (path, content) in files("iceberg") {
        store.write("lake", &format!("orders/{path}"), &content);
    }
    let sandbox = project_on(&store, "format: iceberg\nduckdb: {allow_moved_paths: true}");
    assert_eq!(sandbox.outcome(&["run", "--json"], "total"), "built");
    assert_eq!(total(&sandbox), 3);
    let refresh = ["refresh", "rows", "--json"];
    assert_eq!(sandbox.outcome(&refresh, "rows"), "checked");
    sandbox.assert_nowhere(&[SECRET], "lake");
    store.write("lake", "orders/metadata/version-hint.text", b"no such state");
    let said = sandbox.call(&refresh);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert_eq!(total(&sandbox), 3, "the last good table stays");
    sandbox.assert_nowhere(&[SECRET], "lake");
    drop(store);
    assert_eq!(sandbox.call(&refresh).code, Some(1));
    sandbox.assert_nowhere(&[SECRET], "lake");
}

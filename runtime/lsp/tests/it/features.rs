//! Each thing that an editor asks for.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::editor::{Editor, labels, list, text};

const MANIFEST: (&str, &str) = ("rill.yaml", "olap_connector: duckdb\n");
const ORDERS: (&str, &str) = ("models/orders.sql", "SELECT 1 AS id");
const DAILY: (&str, &str) = (
    "models/daily.sql",
    "SELECT * FROM orders JOIN {{ ref \"orders\" }} AS o USING (id)",
);
const SALES: (&str, &str) = (
    "metrics/sales.yaml",
    "version: 1\ntype: metrics_view\nmodel: orders\nmeasures:\n  - name: total\n    expression: count(*)\n",
);

/// Line and character at which a range begins.
fn start(range: &Value) -> (u64, u64) {
    let number = |key: &str| range["start"][key].as_u64().expect("a number");
    (number("line"), number("character"))
}

#[test]
fn findings_follow_what_is_typed_and_the_file_again_when_it_is_closed() {
    let mut editor = Editor::on(&[MANIFEST, ORDERS]);
    editor.open("models/orders.sql", "SELECT 1 AS id");
    editor.edit("models/orders.sql", Some([0, 7, 0, 8]), "FROM FROM");
    assert_eq!(editor.codes("models/orders.sql"), ["sql-syntax"]);
    editor.edit("models/orders.sql", None, "SELECT 2");
    assert!(editor.codes("models/orders.sql").is_empty());
    editor.edit("models/orders.sql", None, "SELECT FROM FROM");
    assert_eq!(editor.codes("models/orders.sql"), ["sql-syntax"]);
    editor.close("models/orders.sql");
    assert!(editor.codes("models/orders.sql").is_empty());
    editor.leave().expect("ends well");
}

#[test]
fn a_mistake_of_one_file_is_told_of_another_that_nobody_opened() {
    let mut editor = Editor::on(&[
        MANIFEST,
        ORDERS,
        ("models/all.yaml", "sql: SELECT 1\nrefs: [model/orders]\n"),
    ]);
    editor.open("models/orders.sql", "SELECT 1 AS id");
    editor.open("models/second.yaml", "name: orders\nsql: SELECT 2\n");
    let found = editor.findings("models/second.yaml");
    assert_eq!(found[0]["code"], "name-collision");
    let related = &found[0]["relatedInformation"][0];
    assert_eq!(related["message"], "first defined here");
    assert_eq!(related["location"]["uri"], json!(editor.uri("models/orders.sql")));
}

#[test]
fn values_of_variables_are_not_shown() {
    let mut editor = Editor::on(&[MANIFEST, (".env", "password=hunter2hunter2\n")]);
    editor.open("models/a.sql", "SELECT FROM {{ .env.password }} FROM");
    let found = editor.findings("models/a.sql");
    assert!(!found.is_empty());
    assert!(!json!(found).to_string().contains("hunter2"), "{found:?}");
}

#[test]
fn columns_of_places_count_utf_16_units() {
    let mut editor = Editor::on(&[MANIFEST]);
    editor.open("models/a.yaml", "sql: SELECT '\u{1F600}' FROM FROM\n");
    let found = editor.findings("models/a.yaml");
    assert_eq!(start(&found[0]["range"]), (0, 22), "{found:?}");
    // The pair that stands for one character is taken out as a whole.
    editor.edit("models/a.yaml", Some([0, 13, 0, 15]), "x");
    let found = editor.findings("models/a.yaml");
    assert_eq!(start(&found[0]["range"]), (0, 21), "{found:?}");
}

#[test]
fn keys_values_names_and_columns_are_proposed() {
    let mut editor = Editor::on(&[MANIFEST, ORDERS, SALES]);
    let keys = editor.proposals("models/new.yaml", "sql: SELECT 1\nmater|\n");
    assert_eq!(labels(&keys), ["materialize"]);
    assert_eq!(keys[0]["textEdit"]["newText"], "materialize: ");
    assert_eq!(start(&keys[0]["textEdit"]["range"]), (1, 0));
    assert!(!text(&keys[0]["documentation"]).is_empty());
    let values = editor.proposals("models/new.yaml", "change_mode: |");
    assert_eq!(labels(&values), ["manual", "patch", "reset"]);
    let tables = editor.proposals("models/new.sql", "SELECT 1 FROM ord|");
    assert_eq!(labels(&tables), ["orders"]);
    let named = editor.proposals("models/new.sql", "SELECT '\u{1F600}' FROM {{ ref \"|\" }}");
    assert!(labels(&named).contains(&"orders".to_owned()));
    let columns = editor.proposals("models/new.sql", "SELECT o.| FROM orders AS o");
    assert_eq!(labels(&columns), ["id", "paid on"]);
    assert_eq!(columns[1]["textEdit"]["newText"], "\"paid on\"");
    assert_eq!(columns[1]["detail"], "DATE");
    let views = editor.proposals("explores/a.yaml", "type: explore\nmetrics_view: |");
    assert_eq!(labels(&views), ["sales"]);
}

#[test]
fn definitions_and_references_lead_through_yaml_templates_and_sql() {
    let mut editor = Editor::on(&[MANIFEST, ORDERS, DAILY, SALES]);
    let orders = json!(editor.uri("models/orders.sql"));
    // In SQL, in a template, in YAML.
    for (path, line, character) in [
        ("models/daily.sql", 0, 16),
        ("models/daily.sql", 0, 34),
        ("metrics/sales.yaml", 2, 9),
    ] {
        let found = editor.at("textDocument/definition", path, line, character);
        assert_eq!(found["uri"], orders, "{path}:{line}:{character}");
    }
    assert_eq!(
        editor.at("textDocument/definition", "models/daily.sql", 0, 2),
        Value::Null
    );
    let found = editor.at("textDocument/references", "models/orders.sql", 0, 0);
    let places: Vec<_> = list(&found)
        .iter()
        .map(|place| {
            (
                text(&place["uri"]).rsplit('/').next().map(str::to_owned),
                start(&place["range"]),
            )
        })
        .collect();
    let file = |name: &str| Some(name.to_owned());
    assert_eq!(
        places,
        [
            (file("orders.sql"), (0, 0)),
            (file("sales.yaml"), (2, 7)),
            (file("daily.sql"), (0, 14)),
            (file("daily.sql"), (0, 34)),
        ]
    );
    // Also in a file that does not compile just now.
    editor.open("models/daily.sql", "SELECT FROM FROM orders WHERE");
    let found = editor.at("textDocument/definition", "models/daily.sql", 0, 18);
    assert_eq!(found["uri"], orders);
}

#[test]
fn hover_tells_of_kind_columns_and_last_run_and_what_keys_mean() {
    let mut editor = Editor::on(&[MANIFEST, ORDERS, DAILY, SALES]);
    let told = text(&editor.at("textDocument/hover", "models/daily.sql", 0, 16)["contents"]["value"]);
    for part in [
        "**model** `orders`",
        "models/orders.sql",
        "2 minutes ago",
        "| id | INTEGER |",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let told = editor.at("textDocument/hover", "metrics/sales.yaml", 5, 6);
    assert!(
        text(&told["contents"]["value"]).contains("What is computed."),
        "{told}"
    );
    assert_eq!(start(&told["range"]), (5, 4));
    assert_eq!(
        editor.at("textDocument/hover", "models/daily.sql", 0, 2),
        Value::Null
    );
}

#[test]
fn files_that_change_on_disk_are_looked_at_when_somebody_says_so() {
    let mut editor = Editor::on(&[MANIFEST, ORDERS]);
    editor.write("models/orders.sql", "SELECT FROM FROM");
    let changes = json!({"changes": [{"uri": editor.uri("models/orders.sql"), "type": 2}]});
    editor.tell("workspace/didChangeWatchedFiles", &changes);
    assert_eq!(editor.codes("models/orders.sql"), ["sql-syntax"]);
    editor.write("models/orders.sql", "SELECT 1");
    editor
        .handle()
        .changed(Some(BTreeSet::from(["models/orders.sql".to_owned()])));
    assert!(editor.codes("models/orders.sql").is_empty());
    // What is open counts as it is shown.
    editor.open("models/orders.sql", "SELECT 2");
    editor.write("models/orders.sql", "SELECT FROM FROM");
    editor.handle().changed(None);
    editor.close("models/orders.sql");
    assert_eq!(editor.codes("models/orders.sql"), ["sql-syntax"]);
}

#[test]
fn the_first_document_says_where_the_project_is_if_the_editor_does_not() {
    let mut editor = Editor::silent(&[MANIFEST, ORDERS]);
    editor.ask(
        "initialize",
        &json!({"processId": null, "rootUri": null, "capabilities": {}}),
    );
    editor.tell("initialized", &json!({}));
    editor.open("models/orders.sql", "SELECT FROM FROM");
    assert_eq!(editor.codes("models/orders.sql"), ["sql-syntax"]);
}

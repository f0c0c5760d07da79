use std::sync::Arc;

use super::*;
use crate::{FileEvent, Options, SqlError, SqlParser, Tree, sql::Outcome};

/// A parser that has no tree for anything: tables are then found by words.
struct NoTrees;

impl SqlParser for NoTrees {
    fn version(&self) -> &str {
        "none"
    }

    fn parse(&self, statements: &[&str]) -> Vec<Result<Tree, SqlError>> {
        let none = |_: &&str| {
            Err(SqlError::NotSerialisable {
                message: format!("{:?}", Outcome::Scanned),
            })
        };
        statements.iter().map(none).collect()
    }
}

fn project(files: &[(&str, &str)]) -> Project {
    let mut project = Project::new(Options::default());
    let events = files.iter().map(|(path, content)| FileEvent::Written {
        path: (*path).to_owned(),
        content: Arc::from(content.as_bytes()),
    });
    project.apply(events.collect::<Vec<_>>(), &NoTrees);
    project
}

fn shop() -> Project {
    project(&[
        ("rill.yaml", "env:\n  region: north\n"),
        ("models/orders.sql", "SELECT 1 AS id"),
        ("models/customers.sql", "SELECT 1 AS id"),
        (
            "metrics/sales.yaml",
            "type: metrics_view\nversion: 1\nmodel: orders\ndimensions:\n  - column: city\nmeasures:\n  - name: total\n    expression: count(*)\n",
        ),
    ])
}

/// The completion at the mark `|` of a text.
fn at(path: &str, marked: &str) -> Completion {
    let place = marked.find('|').expect("a mark");
    let text = marked.replacen('|', "", 1);
    let before = &marked[..place];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    complete(
        &shop(),
        path,
        &text,
        u32::try_from(line).expect("small"),
        u32::try_from(column).expect("small"),
    )
}

fn labels(path: &str, marked: &str) -> Vec<String> {
    at(path, marked)
        .items
        .into_iter()
        .map(|item| item.label)
        .collect()
}

#[test]
fn keys_of_the_kind_are_proposed_but_those_that_are_there() {
    let found = labels("models/a.yaml", "materialize: true\nma|\n");
    assert!(found.is_empty(), "{found:?}");
    let found = labels("models/a.yaml", "sql: SELECT 1\nma|\n");
    assert_eq!(found, ["materialize"]);
    let found = labels(
        "metrics/m.yaml",
        "type: metrics_view\nmodel: orders\nmeasures:\n  - name: a\n    exp|\n",
    );
    assert_eq!(found, ["expression"]);
    let found = labels("metrics/m.yaml", "type: metrics_view\ndev:\n  mea|\n");
    assert!(found.contains(&"measures".to_owned()), "{found:?}");
}

#[test]
fn values_are_proposed_where_the_table_knows_them() {
    assert_eq!(labels("models/a.yaml", "materialize: |"), ["false", "true"]);
    assert_eq!(labels("models/a.yaml", "change_mode: p|"), ["patch"]);
    assert_eq!(labels("x/a.yaml", "type: ca|"), ["canvas"]);
    assert_eq!(
        labels("models/a.yaml", "connector: duck|"),
        ["duckdb", "ducklake"]
    );
    assert_eq!(
        labels("connectors/lake.yaml", "driver: ducklake\ncatalog: s|"),
        ["sqlite"]
    );
}

#[test]
fn names_are_proposed_in_refs_in_tables_and_in_templates() {
    assert_eq!(
        labels("metrics/m.yaml", "type: metrics_view\nmodel: o|"),
        ["orders"]
    );
    assert_eq!(labels("x/e.yaml", "type: explore\nmetrics_view: |"), ["sales"]);
    assert_eq!(labels("models/a.yaml", "refs:\n  - cu|"), ["customers"]);
    assert_eq!(labels("models/a.sql", "SELECT * FROM cu|"), ["customers"]);
    assert_eq!(
        labels("models/a.sql", "SELECT * FROM orders o JOIN |"),
        ["customers", "orders"]
    );
    assert_eq!(labels("models/a.sql", "SELECT * FROM {{ ref \"o|"), ["orders"]);
    assert_eq!(labels("models/a.sql", "SELECT {{ .env.|"), ["region"]);
    assert_eq!(
        labels("models/a.yaml", "type: model\nsql: |\n  SELECT * FROM cu").len(),
        0
    );
    let in_text = "type: model\nsql: >-\n  SELECT *\n  FROM cu|\n";
    assert_eq!(labels("models/a.yaml", in_text), ["customers"]);
    assert_eq!(
        labels("x/e.yaml", "type: explore\nmetrics_view: sales\nmeasures: [to|"),
        ["total"]
    );
}

#[test]
fn columns_are_those_of_the_tables_that_are_read() {
    assert_eq!(
        at("models/a.sql", "SELECT | FROM orders o JOIN customers").columns_of,
        ["customers", "orders"]
    );
    assert_eq!(
        at("models/a.sql", "SELECT o.| FROM orders AS o JOIN customers").columns_of,
        ["orders"]
    );
    let view = "type: metrics_view\nmodel: orders\ndimensions:\n  - column: |";
    assert_eq!(at("metrics/m.yaml", view).columns_of, ["orders"]);
    assert!(at("models/a.sql", "SELECT 'a| FROM orders").columns_of.is_empty());
}

#[test]
fn annotations_are_proposed_in_comments() {
    assert_eq!(labels("models/a.sql", "-- @mater|"), ["materialize"]);
    assert_eq!(labels("models/a.sql", "-- @materialize: t|"), ["true"]);
}

#[test]
fn a_key_is_explained_where_it_stands() {
    let text = "type: metrics_view\nmeasures:\n  - name: a\n    label: b\n";
    let told = meaning(&shop(), "metrics/m.yaml", text, 4, 6).expect("a key");
    assert_eq!((told.key, told.instead), ("label", Some("display_name")));
    assert_eq!((told.span.column, told.span.end_column), (5, 10));
    assert_eq!(meaning(&shop(), "metrics/m.yaml", text, 4, 13), None);
}

#[test]
fn names_have_places() {
    let project = shop();
    let orders = crate::ResourceKey::new(crate::Kind::Model, "orders");
    let view = project.references_in("metrics/sales.yaml");
    assert_eq!((view[0].span.line, view[0].span.column), (3, 8));
    assert_eq!(project.references_to(&orders).len(), 1);
    assert_eq!(
        project.definition(&orders).expect("declared").path,
        "models/orders.sql"
    );
}

//! Metrics views, explores, components and canvases against the engine.

use watershed_core::{ErrorKind, RunResult, Work};
use watershed_metrics::Policy;
use watershed_metrics::policy::{Layer, Truth};
use watershed_proto::{CanvasState, ExploreState, FieldProblem, MetricsViewState};

use super::site::{Ran, Site};
use crate::messages::Proto;

/// A table, a metrics view on it, an explore and a canvas on that.
const BOARD: &[(&str, &str)] = &[
    ("rill.yaml", ""),
    (
        "models/orders.sql",
        "-- @materialize: true\nSELECT 7 AS customer, 20 AS amount, TIMESTAMP '2024-03-01 10:00:00' AS at, ['a', 'b'] AS tags\n",
    ),
    ("models/countries.sql", "SELECT 7 AS code, 'Norway' AS name\n"),
    (
        "metrics/orders.yaml",
        "version: 1
type: metrics_view
model: orders
timeseries: at
dimensions:
  - column: customer
    lookup_table: countries
    lookup_key_column: code
    lookup_value_column: name
  - {name: tag, column: tags, unnest: true}
  - {name: large, expression: amount > 10}
measures:
  - {name: amount, expression: sum(amount)}
  - {name: orders, expression: count(*)}
  - {name: mean, expression: amount / orders, requires: [amount, orders]}
  - {name: twice, expression: mean * 2, requires: [mean]}
  - {name: running, expression: sum(amount), requires: amount, window: {order: at, frame: ROWS BETWEEN 6 PRECEDING AND CURRENT ROW}}
  - {name: best, expression: max(amount), per: customer, requires: amount}
  - {name: growth, type: time_comparison, expression: base.amount - comparison.amount, requires: amount}
",
    ),
    (
        "explores/look.yaml",
        "type: explore
metrics_view: orders
dimensions: {regex: '^[ct]'}
measures: {exclude: [twice, best]}
defaults: {measures: [amount], comparison_mode: dimension, comparison_dimension: tag}
",
    ),
    (
        "canvases/board.yaml",
        "type: canvas
filters: {pinned: [customer]}
rows:
  - items:
      - kpi: {metrics_view: orders, measure: amount}
      - component: words
",
    ),
    (
        "components/words.yaml",
        "type: component\nmarkdown: {content: hello}\n",
    ),
];

async fn board() -> Site {
    let mut site = Site::new(BOARD);
    let ran = site.run().await;
    assert_eq!(failures(&ran), "");
    site
}

/// Lists failed and blocked resources with their errors.
fn failures(ran: &Ran) -> String {
    let told = ran.resources.iter().filter_map(|one| {
        let error = one.row.error.as_deref()?;
        Some(format!("{}: {}\n", one.key(), error.message))
    });
    told.collect()
}

fn state<S: watershed_proto::Message + Default + Clone + PartialEq + 'static>(ran: &Ran, key: &str) -> S {
    let found = ran.resources.iter().find(|one| one.key().to_string() == key);
    let found = found.unwrap_or_else(|| panic!("there is no `{key}` among {}", ran.names()));
    found.state::<Proto<S>>().unwrap().unwrap_or_default().0
}

fn result(ran: &Ran, key: &str) -> Option<RunResult> {
    let found = ran.resources.iter().find(|one| one.key().to_string() == key)?;
    found.row.last_run.as_ref().map(|run| run.result)
}

#[tokio::test]
async fn every_sort_of_field_is_accepted_and_its_type_is_known() {
    let mut site = Site::new(BOARD);
    let ran = site.run().await;
    assert_eq!(failures(&ran), "");
    let view: MetricsViewState = state(&ran, "metrics_view/orders");
    let r#type = |name: &str| view.types.get(name).map(String::as_str);
    assert_eq!(r#type("at"), Some("TIMESTAMP"));
    assert_eq!(r#type("tag"), Some("VARCHAR"));
    assert_eq!(r#type("large"), Some("BOOLEAN"));
    assert_eq!(r#type("mean"), Some("DOUBLE"));
    assert_eq!(view.types.len(), 11, "{:?}", view.types);
    assert!(!view.streaming);
    assert_eq!(
        result(&ran, "metrics_view/orders"),
        Some(RunResult::Done(Work::Checked))
    );
    let explore: ExploreState = state(&ran, "explore/look");
    let valid = explore.valid_spec.unwrap();
    assert_eq!(valid.dimensions.unwrap().fields, ["customer", "tag"]);
    assert_eq!(
        valid.measures.unwrap().fields,
        ["amount", "orders", "mean", "running", "growth"]
    );
    let canvas: CanvasState = state(&ran, "canvas/board");
    assert_eq!(canvas.valid_spec.unwrap().rows.len(), 1);
}

#[tokio::test]
async fn an_unchanged_dashboard_is_not_looked_at_and_opens_nothing() {
    let mut site = board().await;
    let before: Vec<_> = site.run().await.resources;
    let ran = site.run().await;
    assert!(!ran.opened_engine);
    let versions = |all: &[watershed_controller::Resource]| -> Vec<_> {
        all.iter().map(|one| (one.key(), one.row.state_version)).collect()
    };
    assert_eq!(versions(&ran.resources), versions(&before));
    let work = result(&ran, "metrics_view/orders");
    assert_eq!(work, Some(RunResult::Done(Work::None)));
}

/// The problems of a view, with their places.
fn told(view: &MetricsViewState) -> Vec<String> {
    let one = |one: &FieldProblem| {
        format!(
            "{} {} {}:{} {}",
            one.role, one.name, one.line, one.column, one.code
        )
    };
    view.problems.iter().map(one).collect()
}

#[tokio::test]
async fn a_text_that_is_not_one_expression_is_refused_where_it_stands() {
    let mut site = board().await;
    site.write(
        "metrics/orders.yaml",
        "version: 1
type: metrics_view
model: orders
timeseries: at
dimensions:
  - {column: at}
  - {name: who, expression: \"customer), (1\"}
  - name: linked
    column: customer
    uri: customer, customer
measures:
  - {name: rows, expression: \"count(*)), (SELECT 1\"}
  - name: amount
    expression: sum(amount)
    treat_nulls_as: \"0) + (1\"
  - {name: some, expression: sum(amount), treat_nulls_as: nothing}
  - {name: fine, expression: \"count(*) -- (\"}
  - name: moved
    expression: sum(amount)
    requires: [amount]
    window: {order: at, frame: \"ROWS 1 PRECEDING), (SELECT 1\"}
  - {name: around, expression: sum(back), requires: [back]}
  - {name: back, expression: sum(around), requires: [around]}
",
    );
    let ran = site.run().await;
    let view: MetricsViewState = state(&ran, "metrics_view/orders");
    assert_eq!(
        told(&view),
        [
            "dimension who 7:29 not-one-expression",
            "uri linked 9:13 not-one-expression",
            "measure rows 12:30 not-one-expression",
            "treat_nulls_as amount 14:17 not-one-expression",
            "treat_nulls_as some 16:30 unknown-column",
            "window moved 19:17 not-one-expression",
            "measure around 22:32 sql",
            "measure back 23:30 sql",
        ]
    );
}

#[tokio::test]
async fn a_window_over_a_measure_that_is_wrong_is_told_once() {
    let mut site = board().await;
    site.write(
        "metrics/orders.yaml",
        "version: 1
type: metrics_view
model: orders
timeseries: at
dimensions: [{column: at}]
measures:
  - {name: wrong, expression: sum(amuont)}
  - {name: moved, expression: sum(wrong), requires: [wrong], window: {order: at, frame: ROWS 1 PRECEDING}}
",
    );
    let ran = site.run().await;
    let view: MetricsViewState = state(&ran, "metrics_view/orders");
    assert_eq!(
        told(&view),
        [
            "measure wrong 7:35 unknown-column",
            "measure moved 8:41 unknown-column",
        ]
    );
}

#[tokio::test]
async fn every_field_that_is_wrong_is_named_with_its_place_in_one_go() {
    let mut site = board().await;
    site.write(
        "metrics/orders.yaml",
        "version: 1
type: metrics_view
model: orders
timeseries: customer
dimensions:
  - {column: custmer}
  - name: total
    expression: sum(amount)
  - {column: customer}
measures:
  - {name: amount, expression: sum(amount)}
  - name: plain
    expression: |
      1 +
        amuont
  - {name: bare, expression: amount}
  - {name: mean, expression: amount / nothing, requires: [amount]}
annotations: [{table: nowhere}]
security: {access: true, row_filter: custmer = 7}
",
    );
    let ran = site.run().await;
    let view: MetricsViewState = state(&ran, "metrics_view/orders");
    assert_eq!(
        told(&view),
        [
            "timeseries customer 4:13 not-a-time",
            "dimension custmer 6:14 unknown-column",
            "dimension total 8:17 sql-binder",
            "measure plain 15:9 unknown-column",
            "measure bare 16:30 sql-binder",
            "measure mean 17:39 unknown-column",
            "annotation nowhere 18:23 unknown-table",
            "row_filter security 19:38 unknown-column",
        ]
    );
    let error = ran
        .resources
        .iter()
        .find(|one| one.key().to_string() == "metrics_view/orders")
        .and_then(|one| one.row.error.clone())
        .unwrap();
    let place = error.place.clone().unwrap();
    assert_eq!((&*place.path, place.line), ("metrics/orders.yaml", 4));
    let hint = error.hint.as_deref().unwrap();
    assert!(
        hint.contains("measure \"plain\" (metrics/orders.yaml:15:9)"),
        "{hint}"
    );
    assert!(view.valid_spec.is_some(), "the last good spec stays");

    // What reads it waits, and says for whom.
    for key in ["explore/look", "component/board--component-0-0", "canvas/board"] {
        let waiting = ran
            .resources
            .iter()
            .find(|one| one.key().to_string() == key)
            .unwrap();
        let kind = &waiting.row.error.as_ref().unwrap().kind;
        assert!(matches!(kind, ErrorKind::Dependency(_)), "{key}: {kind:?}");
    }
    // Mended, all of it is fine again.
    site.write("metrics/orders.yaml", BOARD[3].1);
    assert_eq!(failures(&site.run().await), "");
}

#[tokio::test]
async fn a_column_that_goes_from_the_model_is_missed_and_one_that_comes_back_mends_it() {
    let mut site = board().await;
    let good = BOARD[1].1;
    site.write("models/orders.sql", &good.replace("20 AS amount", "20 AS price"));
    let told = failures(&site.run().await);
    assert!(
        told.contains("metrics_view/orders: dimension \"large\""),
        "{told}"
    );
    site.write("models/orders.sql", good);
    assert_eq!(failures(&site.run().await), "");
}

#[tokio::test]
async fn what_reads_a_model_that_failed_is_blocked_and_keeps_what_was_found() {
    let mut site = board().await;
    site.write("models/orders.sql", "SELECT no_such_column FROM countries");
    let ran = site.run().await;
    let told = failures(&ran);
    assert!(
        told.contains("metrics_view/orders: not checked, because model \"orders\" has failed"),
        "{told}"
    );
    let view: MetricsViewState = state(&ran, "metrics_view/orders");
    assert!(view.valid_spec.is_some());
}

#[tokio::test]
async fn a_broken_file_keeps_what_it_declared_and_an_edit_of_its_layout_changes_nothing() {
    let mut site = board().await;
    site.write(
        "metrics/orders.yaml",
        &BOARD[3].1.replace("timeseries", "timesries"),
    );
    let ran = site.run().await;
    let told = failures(&ran);
    assert!(
        told.contains("metrics_view/orders: unknown key \"timesries\""),
        "{told}"
    );
    let view: MetricsViewState = state(&ran, "metrics_view/orders");
    assert!(view.valid_spec.is_some());

    site.write("metrics/orders.yaml", BOARD[3].1);
    let before = site.run().await;
    assert_eq!(failures(&before), "");
    site.write(
        "metrics/orders.yaml",
        &format!("# what was ordered\n\n{}", BOARD[3].1),
    );
    let ran = site.run().await;
    assert_eq!(
        result(&ran, "metrics_view/orders"),
        Some(RunResult::Done(Work::None))
    );
    assert!(!ran.opened_engine);
}

#[tokio::test]
async fn renamed_files_of_every_kind_are_renames_and_deleted_ones_leave_nothing() {
    let mut site = board().await;
    let uids = |ran: &Ran| -> std::collections::BTreeMap<String, _> {
        ran.resources
            .iter()
            .map(|one| (one.key().to_string(), one.row.uid))
            .collect()
    };
    let before = uids(&site.run().await);
    site.rename("metrics/orders.yaml", "metrics/sales.yaml");
    site.write(
        "explores/look.yaml",
        &BOARD[4].1.replace("view: orders", "view: sales"),
    );
    site.rename("explores/look.yaml", "explores/see.yaml");
    site.write(
        "canvases/board.yaml",
        &BOARD[5].1.replace("view: orders", "view: sales"),
    );
    site.rename("canvases/board.yaml", "canvases/wall.yaml");
    let ran = site.run().await;
    assert_eq!(failures(&ran), "");
    let after = uids(&ran);
    for (old, new) in [
        ("metrics_view/orders", "metrics_view/sales"),
        ("explore/look", "explore/see"),
        ("canvas/board", "canvas/wall"),
        ("component/board--component-0-0", "component/wall--component-0-0"),
    ] {
        assert_eq!(before.get(old), after.get(new), "{old} -> {new}: {after:?}");
        assert!(!after.contains_key(old), "{old}");
    }
    for path in ["metrics/sales.yaml", "explores/see.yaml", "canvases/wall.yaml"] {
        site.remove(path);
    }
    assert_eq!(site.run().await.names(), "words countries orders");
}

#[tokio::test]
async fn a_table_that_nobody_here_made_is_looked_at_again_when_the_file_changed() {
    let mut site = Site::new(&[
        ("rill.yaml", ""),
        (
            "metrics/outside.yaml",
            "version: 1\ntype: metrics_view\ntable: outside\nmeasures: [{name: total, expression: sum(n)}]\n",
        ),
    ]);
    let told = failures(&site.run().await);
    assert!(told.contains("table \"outside\""), "{told}");
    site.by_hand("CREATE TABLE outside AS SELECT 1 AS n");
    let ran = site.run().await;
    assert_eq!(failures(&ran), "");
    let view: MetricsViewState = state(&ran, "metrics_view/outside");
    assert!(view.streaming);
    site.by_hand("ALTER TABLE outside RENAME n TO m");
    assert!(failures(&site.run().await).contains("measure \"total\""));
    // A model of that name takes its place.
    site.by_hand("DROP TABLE outside");
    site.write("models/outside.sql", "SELECT 1 AS n");
    assert_eq!(failures(&site.run().await), "");
}

#[tokio::test]
async fn a_child_has_the_fields_that_it_takes_from_its_parent() {
    let mut site = board().await;
    site.write(
        "metrics/child.yaml",
        "version: 1\ntype: metrics_view\nparent: orders\nparent_dimensions: [Customer]\nparent_measures: {expr: 'COLUMNS(c -> c LIKE ''m%'' OR c = ''amount'' OR c = ''orders'')'}\n",
    );
    let ran = site.run().await;
    assert_eq!(failures(&ran), "");
    let child: MetricsViewState = state(&ran, "metrics_view/child");
    let valid = child.valid_spec.unwrap();
    let names = |names: Vec<&String>| names.into_iter().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(
        names(valid.dimensions.iter().map(|one| &one.name).collect()),
        "at customer"
    );
    assert_eq!(
        names(valid.measures.iter().map(|one| &one.name).collect()),
        "amount orders mean"
    );

    site.write(
        "metrics/child.yaml",
        "version: 1\ntype: metrics_view\nparent: orders\nparent_measures: [amuont]\n",
    );
    let ran = site.run().await;
    let error = ran.error("child");
    assert_eq!(&*error.code, "unknown-field");
    assert_eq!(error.hint.as_deref(), Some("did you mean `amount`?"));
}

/// Q15: a child's rules are a layer of their own, so its `include` opens nothing that its parent closed.
#[tokio::test]
async fn a_childs_include_does_not_open_what_its_parent_closed() {
    let mut site = board().await;
    let file = |name: &str, parent: &str, fields: &str| {
        let own = if parent.is_empty() {
            "model: orders\ndimensions:\n  - column: customer\n  - column: amount\nmeasures:\n  - {name: orders, expression: count(*)}\n".to_owned()
        } else {
            format!("parent: {parent}\n")
        };
        let text = format!(
            "version: 1\ntype: metrics_view\n{own}security:\n  access: true\n  include:\n    - {{if: 'true', names: {fields}}}\n"
        );
        (format!("metrics/{name}.yaml"), text)
    };
    for (path, text) in [
        file("grand", "", "[customer, orders]"),
        file("parent", "grand", "[customer, amount]"),
        file("child", "parent", "'*'"),
    ] {
        site.write(&path, &text);
    }
    let ran = site.run().await;
    assert_eq!(failures(&ran), "");
    let child: MetricsViewState = state(&ran, "metrics_view/child");
    let valid = child.valid_spec.unwrap();
    let layers = watershed_resolvers::view::layers(&valid);
    assert_eq!(layers.len(), 3);
    let layers: Vec<Layer> = layers
        .iter()
        .map(|rules| watershed_resolvers::view::layer(rules, |_| Truth::True, |rule| rule.sql.clone()))
        .collect();
    let policy = Policy::of(&layers);
    assert!(policy.has_access());
    assert!(policy.shows("customer"));
    // The grandparent closes the one, the parent the other.
    assert!(!policy.shows("amount"));
    assert!(!policy.shows("orders"));
}

#[tokio::test]
async fn names_that_are_no_fields_are_told_where_dashboards_write_them() {
    let mut site = board().await;
    site.write(
        "explores/look.yaml",
        "type: explore\nmetrics_view: orders\nmeasures:\n  - amount\n  - ordrs\n",
    );
    site.write(
        "canvases/board.yaml",
        "type: canvas\nfilters: {pinned: [custmer]}\nrows:\n  - items:\n      - kpi: {metrics_view: orders, measure: amount}\n",
    );
    site.write(
        "components/words.yaml",
        "type: component\nline_chart:\n  metrics_view: orders\n  y: {field: amuont}\n",
    );
    let ran = site.run().await;
    let told = |name: &str| {
        let error = ran.error(name);
        let place = error.place.clone().unwrap();
        format!("{}:{}:{} {}", place.path, place.line, place.column, error.message)
    };
    assert_eq!(
        told("look"),
        "explores/look.yaml:5:5 the metrics view has no measure \"ordrs\""
    );
    assert_eq!(
        told("board"),
        "canvases/board.yaml:2:20 the metrics view has no dimension \"custmer\""
    );
    assert_eq!(
        told("words"),
        "components/words.yaml:4:14 the metrics view has no field \"amuont\""
    );
}

#[tokio::test]
async fn what_stands_on_one_canvas_has_to_cut_time_alike() {
    let mut site = board().await;
    site.write(
        "metrics/other.yaml",
        "version: 1\ntype: metrics_view\nmodel: orders\nfirst_day_of_week: 7\nmeasures: [{name: n, expression: count(*)}]\n",
    );
    site.write(
        "canvases/board.yaml",
        "type: canvas\nrows:\n  - items:\n      - kpi: {metrics_view: orders, measure: amount}\n      - kpi: {metrics_view: other, measure: n}\n",
    );
    assert_eq!(&*site.run().await.error("board").code, "views-differ");
}

#[tokio::test]
async fn a_dashboard_without_its_metrics_view_or_theme_says_so() {
    let mut site = Site::new(&[
        ("rill.yaml", ""),
        ("explores/a.yaml", "type: explore\nmetrics_view: nothing\n"),
        (
            "metrics/b.yaml",
            "version: 1\ntype: metrics_view\nmodel: m\nmeasures: [{name: n, expression: count(*)}]\nexplore: {theme: none}\n",
        ),
        ("models/m.sql", "SELECT 1 AS x"),
    ]);
    let told = failures(&site.run().await);
    assert!(
        told.contains("explore/a: metrics_view \"nothing\" does not exist"),
        "{told}"
    );
    assert!(
        told.contains("explore/b: theme \"none\" does not exist"),
        "{told}"
    );
    site.write("themes/none.yaml", "type: theme\nlight: {primary: teal}\n");
    let told = failures(&site.run().await);
    assert!(!told.contains("explore/b"), "{told}");
}

#[tokio::test]
async fn tables_of_another_system_are_not_taken_for_the_engines() {
    let view = |connector: &str| {
        format!(
            "version: 1\ntype: metrics_view\ntable: t\nconnector: {connector}\nmeasures: [{{name: n, expression: count(*)}}]\n"
        )
    };
    let mut site = Site::new(&[
        ("rill.yaml", ""),
        ("connectors/shop.yaml", "driver: clickhouse\n"),
        ("metrics/a.yaml", &view("shop")),
        ("metrics/b.yaml", &view("clickhouse")),
    ]);
    site.by_hand("CREATE TABLE t AS SELECT 1 AS n");
    let ran = site.run().await;
    for name in ["a", "b"] {
        assert_eq!(&*ran.error(name).code, "connector-unsupported", "{name}");
    }
}

//! Queries of metrics views, by the library.

#![expect(
    clippy::unwrap_used,
    reason = "what fails here fails the test, with its place"
)]

use std::fs;
use std::time::Duration;

use serde_json::json;
use watershed::metrics::Query;
use watershed::{Instance, MetricsError, Options, ResolveError, Runtime, Viewer};

const DEADLINE: Duration = Duration::from_secs(60);

const VIEW: &str = "version: 1
type: metrics_view
model: orders
timeseries: at
dimensions:
  - column: customer
  - {name: country, column: code, lookup_table: countries, lookup_key_column: code, lookup_value_column: name, lookup_default_expression: \"'nowhere'\"}
  - {name: tag, column: tags, unnest: true}
measures:
  - {name: amount, expression: sum(amount), format_preset: currency_usd}
  - {name: orders, expression: count(*)}
  - {name: mean, expression: amount / orders, requires: [amount, orders]}
  - {name: growth, type: time_comparison, expression: base.amount - comparison.amount, requires: amount}
  - {name: best, expression: max(amount), per: customer, requires: amount}
";

const ORDERS: &str = "-- @materialize: true
SELECT * FROM (VALUES
  (1, 10, 20, TIMESTAMP '2024-03-01 10:00:00', ['a', 'b']),
  (2, 10, 30, TIMESTAMP '2024-03-01 23:30:00', []),
  (1, 20, 5, TIMESTAMP '2024-03-02 10:00:00', ['a']),
  (1, NULL, 7, TIMESTAMP '2024-03-03 04:30:00', NULL)
) AS t(customer, code, amount, \"at\", tags)
";

async fn opened(folder: &tempfile::TempDir) -> Instance {
    let root = folder.path().join("shop");
    fs::create_dir_all(root.join("models")).unwrap();
    fs::create_dir_all(root.join("metrics")).unwrap();
    fs::write(root.join("watershed.yaml"), "").unwrap();
    fs::write(root.join("models/orders.sql"), ORDERS).unwrap();
    let countries = "SELECT * FROM (VALUES (10, 'Norway'), (10, 'Sweden')) AS t(code, name)";
    fs::write(root.join("models/countries.sql"), countries).unwrap();
    fs::write(root.join("metrics/orders.yaml"), VIEW).unwrap();
    let child = "version: 1\ntype: metrics_view\nparent: orders\nparent_dimensions: [country, customer]\n";
    fs::write(root.join("metrics/child.yaml"), child).unwrap();
    let instance = Runtime::new().open(Options::new(&root)).await.unwrap();
    instance.controller().wait_until_idle(DEADLINE).await.unwrap();
    instance
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metrics_view_answers_queries() {
    let folder = tempfile::tempdir().unwrap();
    let instance = opened(&folder).await;
    let now = "2024-06-01T00:00:00Z".parse().unwrap();
    let ask = async |query: serde_json::Value| {
        let query = Query::from_json(&query).unwrap();
        instance.metrics(&query, &Viewer::Owner, now).await
    };
    // Days of New York: the order of half past four is of the day before.
    let found = ask(json!({"metrics_view": "orders", "dimensions": [{"name": "at", "grain": "day"}],
        "measures": ["amount", "mean"], "time_range": "inf", "time_zone": "America/New_York", "totals": true}))
    .await
    .unwrap();
    assert_eq!(
        json!(found.rows),
        json!([
            ["2024-03-01 05:00:00", 50, 25.0],
            ["2024-03-02 05:00:00", 12, 6.0]
        ])
    );
    assert_eq!(json!(found.totals), json!([null, 62, 15.5]));
    assert_eq!(found.columns[1].format_preset, "currency_usd");
    assert_eq!(found.columns[0].data_type, "TIMESTAMP");
    assert_eq!(found.time_range.unwrap().end, "2024-03-03T04:30:01Z");
    // Double keys of a lookup multiply nothing, and a child looks up as its parent does.
    for view in ["orders", "child"] {
        let found = ask(
            json!({"metrics_view": view, "dimensions": ["country"], "measures": ["orders", "best"],
            "sort": [{"name": "orders", "desc": true}]}),
        )
        .await
        .unwrap();
        assert_eq!(
            json!(found.rows),
            json!([["Norway", 2, 30], ["nowhere", 2, 12]]),
            "{view}"
        );
    }
    let found = ask(
        json!({"metrics_view": "orders", "dimensions": ["tag", "customer"], "measures": ["orders"],
        "pivot_on": ["customer"]}),
    )
    .await
    .unwrap();
    let names: Vec<&str> = found.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["tag", "1_orders", "2_orders"]);
    assert_eq!(
        json!(found.rows),
        json!([["a", 2, null], ["b", 1, null], [null, 1, 1]])
    );
    let found = ask(json!({"metrics_view": "orders", "rows": true, "limit": 1}))
        .await
        .unwrap();
    let names: Vec<&str> = found.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["at", "customer", "country", "tag", "code", "amount"]);
    let found = ask(json!({"metrics_view": "orders", "measures": ["growth"],
        "time_range": {"start": "2024-03-02T00:00:00Z", "end": "2024-03-03T00:00:00Z"},
        "comparison_time_range": {"offset": "-1P"}}))
    .await
    .unwrap();
    assert_eq!(json!(found.rows), json!([[-45]]));
    let unknown = ask(json!({"metrics_view": "ordres", "measures": ["orders"]})).await;
    assert!(matches!(unknown, Err(MetricsError::Unknown(_))), "{unknown:?}");
    let refused = ask(json!({"metrics_view": "orders", "measures": ["ordrs"]})).await;
    assert!(matches!(refused, Err(MetricsError::Refused(_))), "{refused:?}");
    instance.close(DEADLINE).await.unwrap();
}

/// Q25.
#[tokio::test(flavor = "multi_thread")]
async fn an_api_answers_programs_with_values_for_its_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("shop");
    fs::create_dir_all(root.join("apis")).unwrap();
    let api = "type: api\nsql: SELECT {{ .args.n }} AS n, '{{ .args.text }}' AS text\nsecurity: {access: \"{{ .user.admin }}\"}\n";
    fs::write(root.join("apis/echo.yaml"), api).unwrap();
    let instance = opened(&folder).await;
    let now = "2024-06-01T00:00:00Z".parse().unwrap();
    let args = || match json!({"n": 7, "text": "it's'; DROP TABLE orders"}) {
        serde_json::Value::Object(args) => args,
        other => panic!("{other} is no mapping"),
    };
    let called = instance
        .call("echo", args(), &Viewer::Owner, now, 10)
        .await
        .unwrap();
    assert_eq!(json!(called.rows), json!([[7, "it's'; DROP TABLE orders"]]));
    let nobody = Viewer::user(serde_json::Map::new());
    let refused = instance.call("echo", args(), &nobody, now, 10).await;
    assert_eq!(refused, Err(ResolveError::NotAllowed("echo".to_owned())));
    let unknown = instance.call("ecoh", args(), &Viewer::Owner, now, 10).await;
    assert_eq!(unknown, Err(ResolveError::UnknownApi("ecoh".to_owned())));
    instance.close(DEADLINE).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_instance_lets_go_of_the_state_folder_before_it_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let first = opened(&folder).await;
    let root = folder.path().join("shop");
    assert!(
        Runtime::new().open(Options::new(&root)).await.is_err(),
        "it is in use"
    );
    first.close(DEADLINE).await.unwrap();
    let second = Runtime::new().open(Options::new(&root)).await.unwrap();
    second.close(DEADLINE).await.unwrap();
    drop(first);
}

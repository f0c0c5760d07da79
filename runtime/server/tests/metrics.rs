//! Tests of metrics queries through the library.

#![expect(
    clippy::unwrap_used,
    reason = "what fails here fails the test, with its place"
)]

use std::fs;
use std::time::Duration;

use serde_json::json;
use watershed::metrics::Query;
use watershed::{AnswerFile, Code, Instance, Options, Problem, Runtime, Source, Viewer};

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

/// Returns the code of the problem that a question ended with.
fn code<T: std::fmt::Debug>(answer: Result<T, Problem>) -> Code {
    answer.expect_err("a problem").code
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
    assert_eq!(code(unknown), Code::UnknownName);
    let refused = ask(json!({"metrics_view": "orders", "measures": ["ordrs"]})).await;
    assert_eq!(code(refused), Code::BadArgument);
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
    assert_eq!(code(refused), Code::NotAllowed);
    let unknown = instance.call("ecoh", args(), &Viewer::Owner, now, 10).await;
    assert_eq!(code(unknown), Code::UnknownName);
    instance.close(DEADLINE).await.unwrap();
}

/// A view with a filter for each user, and a view over a table that nothing here builds.
const CACHED: [(&str, &str); 4] = [
    (
        "migrations/outside.sql",
        "-- @type: migration\nCREATE TABLE IF NOT EXISTS outside AS SELECT 1 AS n; CREATE TABLE IF NOT EXISTS versions AS SELECT 1 AS version",
    ),
    (
        "metrics/seen.yaml",
        "version: 1
type: metrics_view
model: plain
dimensions: [{column: customer}]
measures: [{name: orders, expression: count(*)}, {name: age, expression: max(now())}]
security: {access: true, row_filter: \"customer = {{ .user.customer }}\"}
",
    ),
    (
        "metrics/outside.yaml",
        "version: 1\ntype: metrics_view\nrefs: [{type: migration, name: outside}]\ntable: outside\nmeasures: [{name: n, expression: count(*)}]\n",
    ),
    (
        "metrics/keyed.yaml",
        "version: 1\ntype: metrics_view\nrefs: [{type: migration, name: outside}]\ntable: outside\nmeasures: [{name: n, expression: count(*)}]
cache: {enabled: true, key_sql: SELECT max(version) FROM versions}\n",
    ),
];

/// Q22.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_kept_while_what_it_is_made_of_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("shop");
    fs::create_dir_all(root.join("migrations")).unwrap();
    fs::create_dir_all(root.join("metrics")).unwrap();
    fs::create_dir_all(root.join("models")).unwrap();
    for (path, text) in CACHED {
        fs::write(root.join(path), text).unwrap();
    }
    // A view in between: its rows are those of what it reads.
    fs::write(root.join("models/plain.sql"), "SELECT * FROM orders").unwrap();
    let instance = opened(&folder).await;
    let ask = async |query: serde_json::Value, viewer: &Viewer| {
        let now = "2024-06-01T00:00:00Z".parse().unwrap();
        let query = Query::from_json(&query).unwrap();
        let answer = instance.metrics(&query, viewer, now).await.unwrap();
        (json!(answer.rows), answer.cached)
    };
    let user = |customer: i64| match json!({"customer": customer}) {
        serde_json::Value::Object(attributes) => Viewer::user(attributes),
        other => panic!("{other} is no mapping"),
    };
    let orders = || json!({"metrics_view": "seen", "measures": ["orders"]});
    // Users whose filters differ share nothing; of one user the second question is answered by the first.
    assert_eq!(ask(orders(), &user(1)).await, (json!([[3]]), false));
    assert_eq!(ask(orders(), &user(1)).await, (json!([[3]]), true));
    assert_eq!(ask(orders(), &user(2)).await, (json!([[1]]), false));
    assert_eq!(ask(orders(), &Viewer::Owner).await, (json!([[4]]), false));
    assert_eq!(ask(orders(), &user(2)).await, (json!([[1]]), true));
    let ranged = || {
        json!({"metrics_view": "orders", "dimensions": [{"name": "at", "grain": "day"}], "measures": ["amount", "best", "growth"],
            "time_range": "inf", "comparison_time_range": {"offset": "-1P"}, "time_zone": "America/Havana", "totals": true,
            "where": {"cond": {"op": "in", "exprs": [{"name": "country"}, {"val": ["Norway", "nowhere"]}]}}})
    };
    let (rows, cached) = ask(ranged(), &Viewer::Owner).await;
    assert!(!cached);
    assert_eq!(
        ask(ranged(), &Viewer::Owner).await,
        (rows, true),
        "all that a plan writes can be kept"
    );
    // A clock is not.
    let clock = || json!({"metrics_view": "seen", "measures": ["age"]});
    ask(clock(), &Viewer::Owner).await;
    assert!(!ask(clock(), &Viewer::Owner).await.1);
    // A table that is nobody's output: only with the author's key.
    for (view, kept) in [("outside", false), ("keyed", true)] {
        let query = || json!({"metrics_view": view, "measures": ["n"]});
        assert_eq!(ask(query(), &Viewer::Owner).await, (json!([[1]]), false));
        assert_eq!(ask(query(), &Viewer::Owner).await, (json!([[1]]), kept), "{view}");
    }
    // A build in between.
    let more = ORDERS.replace(
        "FROM (VALUES",
        "FROM (VALUES (1, 10, 1, TIMESTAMP '2024-03-01 10:00:00', ['a']),",
    );
    fs::write(root.join("models/orders.sql"), more).unwrap();
    let built = tokio::time::timeout(DEADLINE, async {
        while ask(orders(), &user(1)).await.0 != json!([[4]]) {
            instance.controller().wait_until_idle(DEADLINE).await.unwrap();
        }
    });
    built.await.expect("a build makes a fresh answer");
    assert_eq!(
        ask(orders(), &user(2)).await,
        (json!([[1]]), false),
        "made anew though it is the same"
    );
    assert!(ask(orders(), &user(2)).await.1);
    instance.close(DEADLINE).await.unwrap();
}

/// Q17.
#[tokio::test(flavor = "multi_thread")]
async fn attributes_travel_beside_a_statement_and_stay_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("shop");
    fs::create_dir_all(root.join("metrics")).unwrap();
    let view = "version: 1\ntype: metrics_view\nmodel: orders\nmeasures: [{name: orders, expression: count(*)}]
query_attributes: {tenant: \"{{ .user.tenant }}\", app.name: it's shop}
security: {access: true, row_filter: \"customer = CAST(getvariable('tenant') AS INTEGER) AND getvariable('app.name') LIKE 'it_s shop'\"}\n";
    fs::write(root.join("metrics/rented.yaml"), view).unwrap();
    let instance = opened(&folder).await;
    let now = "2024-06-01T00:00:00Z".parse().unwrap();
    let query = Query::from_json(&json!({"metrics_view": "rented", "measures": ["orders"]})).unwrap();
    let tenant = |tenant: &str| match json!({"tenant": tenant}) {
        serde_json::Value::Object(attributes) => Viewer::user(attributes),
        other => panic!("{other} is no mapping"),
    };
    for _ in 0..2 {
        for (name, rows) in [("1", 3), ("2", 1), ("3", 0)] {
            let answer = instance.metrics(&query, &tenant(name), now).await.unwrap();
            assert_eq!(json!(answer.rows), json!([[rows]]), "tenant {name}");
            assert!(!answer.cached, "the text says nothing of the tenant");
        }
    }
    let hostile = instance
        .metrics(&query, &tenant("1'; RESET VARIABLE tenant; --"), now)
        .await;
    let hostile = hostile.expect_err("it is a text that is no number");
    assert_eq!(hostile.code, Code::ProjectError);
    assert!(!hostile.to_string().contains("Could not convert"), "{hostile}");
    assert!(
        instance.metrics(&query, &Viewer::Owner, now).await.is_ok(),
        "no rule binds the owner"
    );
    instance.close(DEADLINE).await.unwrap();
}

/// Q15.
#[tokio::test(flavor = "multi_thread")]
async fn rules_of_explores_and_canvases_are_a_layer_in_front_of_their_views() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("shop");
    for (path, text) in [
        (
            "metrics/plain.yaml",
            "version: 1\ntype: metrics_view\nmodel: orders\nmeasures: [{name: orders, expression: count(*)}]\n\
            security: {access: \"'{{ .user.domain }}' = 'example.org'\"}\n",
        ),
        (
            "explores/heads.yaml",
            "type: explore\nmetrics_view: plain\nsecurity: {access: \"{{ .user.admin }}\"}\n",
        ),
        (
            "explores/all.yaml",
            "type: explore\nmetrics_view: plain\nsecurity: {access: true}\n",
        ),
        (
            "explores/none.yaml",
            "type: explore\nmetrics_view: plain\nsecurity: {}\n",
        ),
        (
            "canvases/board.yaml",
            "type: canvas\nrows: [{items: [{kpi: {metrics_view: plain, measure: orders}}]}]\nsecurity: {access: \"{{ .user.admin }}\"}\n",
        ),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let instance = opened(&folder).await;
    let now = "2024-06-01T00:00:00Z".parse().unwrap();
    let user = |email: &str, admin: bool| match json!({"email": email, "admin": admin}) {
        serde_json::Value::Object(attributes) => Viewer::user(attributes),
        other => panic!("{other} is no mapping"),
    };
    let ask = async |view: &str, front: (&str, &str), viewer: &Viewer| {
        let query = Query::from_json(&json!({"metrics_view": view, "measures": ["orders"]})).unwrap();
        let front = format!("{}/{}", front.0, front.1);
        let answer = instance.metrics_through(&front, &query, viewer, now).await;
        answer.map(|answer| json!(answer.rows))
    };
    let (head, clerk) = (user("head@example.org", true), user("clerk@example.org", false));
    let guest = user("guest@elsewhere.org", true);
    for front in [("explore", "heads"), ("canvas", "board")] {
        assert_eq!(ask("plain", front, &head).await, Ok(json!([[4]])));
        assert_eq!(ask("plain", front, &Viewer::Owner).await, Ok(json!([[4]])));
        // Neither layer opens what the other closes.
        for viewer in [&clerk, &guest] {
            let refused = ask("plain", front, viewer).await;
            assert_eq!(code(refused), Code::NotAllowed, "{front:?}");
        }
    }
    assert_eq!(ask("plain", ("explore", "all"), &clerk).await, Ok(json!([[4]])));
    assert!(ask("plain", ("explore", "all"), &guest).await.is_err());
    assert!(
        ask("plain", ("explore", "none"), &head).await.is_err(),
        "a block closes what it does not open"
    );
    let other = ask("orders", ("explore", "all"), &head).await;
    assert_eq!(code(other), Code::BadArgument);
    let unknown = ask("plain", ("explore", "al"), &head).await;
    assert_eq!(code(unknown), Code::UnknownName);
    instance.close(DEADLINE).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_written_into_a_file_for_whoever_asks() {
    let folder = tempfile::tempdir().unwrap();
    let instance = opened(&folder).await;
    let now = "2024-03-04T00:00:00Z".parse().unwrap();
    let clerk = Viewer::user(json!({"customer": 2}).as_object().cloned().unwrap());
    let query: Query = r#"{"metrics_view": "orders", "dimensions": ["customer"], "measures": ["orders"]}"#
        .parse()
        .unwrap();
    let file = |name: &str| AnswerFile {
        file: folder.path().join(name),
        ..AnswerFile::default()
    };
    let write = async |viewer: &Viewer, to: &AnswerFile| {
        instance.export(Source::Metrics(&query), viewer, now, to).await
    };
    let of_owner = file("owner.csv");
    assert_eq!(write(&Viewer::Owner, &of_owner).await.unwrap().rows, Some(2));
    let text = fs::read_to_string(&of_owner.file).unwrap();
    assert_eq!(text, "customer,orders\n1,3\n2,1\n");
    assert_eq!(code(write(&Viewer::Owner, &of_owner).await), Code::AlreadyExists);
    let again = AnswerFile {
        replace: true,
        limit: Some(1),
        ..of_owner.clone()
    };
    write(&Viewer::Owner, &again).await.unwrap();
    assert_eq!(
        fs::read_to_string(&of_owner.file).unwrap(),
        "customer,orders\n1,3\n"
    );
    for (to, is_right) in [
        (file("rows.txt"), false),
        (file("rows.parquet"), true),
        (file("rows.xlsx"), true),
    ] {
        let written = write(&Viewer::Owner, &to).await;
        assert_eq!(written.is_ok(), is_right, "{written:?}");
        assert_eq!(to.file.exists(), is_right);
    }
    let nothing = serde_json::Map::new();
    let call = Source::Call {
        api: "unknown",
        args: &nothing,
    };
    let unknown = instance.export(call, &clerk, now, &file("call.csv")).await;
    assert_eq!(code(unknown), Code::UnknownName);
    instance.close(DEADLINE).await.unwrap();
}

/// The users of an embedder: each e-mail address is that of a customer.
struct Customers;

impl watershed::Directory for Customers {
    fn find<'a>(&'a self, user: &'a str) -> watershed::directory::Found<'a> {
        Box::pin(async move {
            let customer: i64 = user.strip_suffix("@example.org")?.parse().ok()?;
            json!({"email": user, "customer": customer}).as_object().cloned()
        })
    }
}

/// N3.
#[tokio::test(flavor = "multi_thread")]
async fn an_alert_runs_in_the_name_of_a_user_that_the_embedder_knows() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("shop");
    let alert = |user: &str| {
        format!(
            "type: alert\ndata: {{metrics: {{metrics_view: rented, measures: [orders]}}}}\nfor: {{user_email: {user}}}\n\
             on_error: true\nnotify: {{file: archive}}\n"
        )
    };
    for (path, text) in [
        ("watershed.yaml", String::new()),
        ("models/orders.sql", ORDERS.to_owned()),
        ("metrics/rented.yaml", "version: 1\ntype: metrics_view\nmodel: orders\nmeasures: [{name: orders, expression: count(*)}]\n\
            security: {access: true, row_filter: \"customer = {{ .user.customer }}\"}\n".to_owned()),
        ("connectors/archive.yaml", "type: connector\ndriver: file\npath: told\n".to_owned()),
        ("alerts/known.yaml", alert("2@example.org")),
        ("alerts/unknown.yaml", alert("x@example.org")),
        ("told/.keep", String::new()),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let runtime = Runtime::new().with_directory(Customers);
    let instance = runtime.open(Options::new(&root)).await.unwrap();
    instance.controller().wait_until_idle(DEADLINE).await.unwrap();
    instance.close(DEADLINE).await.unwrap();
    let mut told: Vec<(String, serde_json::Value)> = fs::read_dir(root.join("told"))
        .unwrap()
        .filter_map(|entry| serde_json::from_slice(&fs::read(entry.unwrap().path()).unwrap()).ok())
        .map(|message: serde_json::Value| (message["sender"]["name"].to_string(), message))
        .collect();
    told.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(
        told[0].1["table"]["rows"],
        json!([["1"]]),
        "the orders of customer 2"
    );
    assert_eq!(told[1].1["verdict"], "error");
}

/// Links to the files of reports, as an embedder serves them.
struct Served;

impl watershed::Links for Served {
    fn link<'a>(&'a self, file: watershed::links::ReportFile<'a>) -> watershed::links::Link<'a> {
        Box::pin(async move {
            let is_whole = file.path.metadata().ok()?.len() == file.bytes;
            is_whole.then(|| format!("https://files.example.org/{}/{}", file.report, file.name))
        })
    }
}

/// N10.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_links_to_where_the_embedder_serves_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("shop");
    for (path, text) in [
        ("watershed.yaml", ""),
        ("models/orders.sql", ORDERS),
        (
            "connectors/archive.yaml",
            "type: connector\ndriver: file\npath: told\n",
        ),
        (
            "reports/all.yaml",
            "type: report\nrefresh: {ref_update: true}\ndata: {sql: SELECT * FROM orders}\nexport: {format: csv}\n\
             notify: {file: archive}\n",
        ),
        ("told/.keep", ""),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let runtime = Runtime::new().with_links(Served);
    let instance = runtime.open(Options::new(&root)).await.unwrap();
    instance.controller().wait_until_idle(DEADLINE).await.unwrap();
    let mut run = instance.run_report("all").await.unwrap();
    run.outcome(DEADLINE).await.unwrap();
    instance.controller().wait_until_idle(DEADLINE).await.unwrap();
    assert!(instance.evaluate_alert("all").await.is_err(), "it is no alert");
    instance.close(DEADLINE).await.unwrap();
    let told: Vec<serde_json::Value> = fs::read_dir(root.join("told"))
        .unwrap()
        .filter_map(|entry| serde_json::from_slice(&fs::read(entry.unwrap().path()).unwrap()).ok())
        .collect();
    let [message] = told.as_slice() else {
        panic!("one message: {told:?}");
    };
    let link = message["attachment"]["link"].as_str().unwrap();
    assert!(link.starts_with("https://files.example.org/all/all-"), "{link}");
    assert!(message["attachment"]["path"].as_str().unwrap().ends_with(".csv"));
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

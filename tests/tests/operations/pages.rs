//! Lists over HTTP, a page at a time: resources, the past, partitions. What is beyond a bound is refused.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::client::Client;
use crate::http::{SHOP, Served};
use crate::project::Place;

/// Reads a list of a key to its end, `limit` at a time.
async fn all(client: Client, path: &str, key: &str, limit: usize) -> Vec<Value> {
    let (mut all, mut page) = (Vec::new(), String::new());
    loop {
        let glue = if path.contains('?') { '&' } else { '?' };
        let read = client
            .get(&format!("{SHOP}{path}{glue}limit={limit}{page}"))
            .await;
        assert_eq!(
            read.status,
            200,
            "{path}: {}",
            String::from_utf8_lossy(&read.body)
        );
        let read = read.json();
        let found = read[key].as_array().expect("a list").clone();
        assert!(found.len() <= limit, "{path} at {limit}");
        all.extend(found);
        match read["next"].as_str() {
            Some(next) => page = format!("&page={next}"),
            None => return all,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api10_pages_of_any_size_make_the_same_list() {
    let place = Place::new(&[("data/3.csv", "id,v\n3,30\n"), ("data/4.csv", "id,v\n4,40\n")]);
    let served = Served::new(&place).await;
    let client = served.client;
    for (path, key) in [
        ("/resources?fields=health", "resources"),
        ("/resources?all=true&fields=health", "resources"),
        ("/history?kind=x", ""),
        ("/history?outcome=done", "runs"),
        ("/resources/model/late/history", "runs"),
        ("/resources/model/parts/partitions", "partitions"),
    ] {
        if key.is_empty() {
            assert_eq!(client.get(&format!("{SHOP}{path}")).await.status, 400, "{path}");
            continue;
        }
        let whole = all(client, path, key, 1_000).await;
        assert!(!whole.is_empty(), "{path}");
        for limit in [1, 2, 3, 7] {
            assert_eq!(
                all(client, path, key, limit).await,
                whole,
                "{path}, {limit} at a time"
            );
        }
    }
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api10_partitions_are_chosen_by_phase_and_range_and_counted_all_the_same() {
    let place = Place::new(&[("data/3.csv", "id,v\n3,30\n"), ("data/4.csv", "id,v\n4,bad\n")]);
    let served = Served::new(&place).await;
    let client = served.client;
    let path = "/resources/model/parts/partitions";
    let whole = client.get(&format!("{SHOP}{path}")).await.json();
    assert_eq!(
        (&whole["counts"]["done"], &whole["counts"]["failed"]),
        (&json!(3), &json!(1))
    );
    for (phase, number) in [("failed", 1), ("done", 3), ("staged", 0)] {
        let chosen = client.get(&format!("{SHOP}{path}?phase={phase}")).await.json();
        assert_eq!(
            chosen["partitions"].as_array().map(Vec::len),
            Some(number),
            "{phase}"
        );
        assert_eq!(chosen["counts"], whole["counts"], "{phase}");
    }
    let mut keys: Vec<&str> = whole["partitions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["key"].as_str())
        .collect();
    keys.sort_unstable();
    let ranged = client
        .get(&format!("{SHOP}{path}?from={}&to={}", keys[1], keys[3]))
        .await
        .json();
    let ranged: BTreeSet<&str> = ranged["partitions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["key"].as_str())
        .collect();
    assert_eq!(ranged, BTreeSet::from([keys[1], keys[2]]));
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_past_is_chosen_by_time_outcome_and_selection() {
    let broken = (
        "models/broken.sql",
        "-- @materialize: true\nSELECT 1 // 0 + nothing\n",
    );
    let place = Place::new(&[broken]);
    let served = Served::new(&place).await;
    let client = served.client;
    let runs = async |words: &str| -> Vec<Value> {
        let read = client.get(&format!("{SHOP}/history?{words}")).await;
        assert_eq!(
            read.status,
            200,
            "{words}: {}",
            String::from_utf8_lossy(&read.body)
        );
        read.json()["runs"].as_array().cloned().unwrap_or_default()
    };
    let names = |runs: &[Value]| -> BTreeSet<String> {
        let names = runs.iter().filter_map(|run| run["resource"]["name"].as_str());
        names.map(str::to_owned).collect()
    };
    assert_eq!(
        names(&runs("outcome=failed").await),
        BTreeSet::from(["broken".to_owned()])
    );
    let chosen = names(&runs("select=late&select=tested").await);
    assert_eq!(chosen, BTreeSet::from(["late".to_owned(), "tested".to_owned()]));
    assert!(!names(&runs("exclude=late").await).contains("late"));
    let everything = runs("").await;
    let times: Vec<&str> = everything
        .iter()
        .filter_map(|run| run["started_at"].as_str())
        .collect();
    let middle = times[times.len() / 2];
    let (early, late) = (
        runs(&format!("until={middle}")).await,
        runs(&format!("from={middle}")).await,
    );
    assert_eq!(early.len() + late.len(), everything.len());
    assert!(late.iter().all(|run| run["started_at"].as_str() >= Some(middle)));
    for wrong in [
        "from=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z",
        "from=yesterday",
        "outcome=fine",
        "page=x",
        "page=5",
        "select=nothing_of_that_name",
    ] {
        let refused = client.get(&format!("{SHOP}/history?{wrong}")).await;
        assert!(matches!(refused.status, 400 | 404), "{wrong}: {}", refused.status);
    }
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api10_a_number_beyond_its_bound_is_refused_with_the_bound() {
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    let late = "/resources/model/late";
    for (path, bound) in [
        ("/resources?limit=1001".to_owned(), "1 to 1000"),
        ("/resources?limit=0".to_owned(), "1 to 1000"),
        ("/history?limit=1001".to_owned(), "1 to 1000"),
        (format!("{late}/history?limit=18446744073709551615"), "1 to 1000"),
        (
            "/resources/model/parts/partitions?limit=1001".to_owned(),
            "1 to 1000",
        ),
        (format!("{late}/logs?limit=1001"), "0 to 1000"),
        // A typo must not look as if nothing were there.
        ("/resources?kind=models".to_owned(), "no kind `models`"),
        ("/watch?kind=source".to_owned(), "no kind `source`"),
        ("/history?from=yesterday".to_owned(), "2026-01-31T06:00:00Z"),
    ] {
        let refused = served.client.get(&format!("{SHOP}{path}")).await;
        let problem = refused.json();
        assert_eq!(
            (refused.status, &problem["code"]),
            (400, &json!("bad-argument")),
            "{path}"
        );
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(detail.contains(bound), "{path}: {detail}");
    }
    let asked = json!({"query": {"measures": [{"name": "flights"}]}, "limit": 10_001});
    let refused = served
        .client
        .post(&format!("{SHOP}/metrics/delays/query"), &asked)
        .await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.json()["detail"]
            .as_str()
            .unwrap_or_default()
            .contains("1 to 10000")
    );
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api41_a_query_in_sql_is_the_same_query() {
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    let path = format!("{SHOP}/metrics/delays/query");
    let ask = async |body: Value| served.client.post(&path, &body).await;
    let query = json!({"dimensions": [{"name": "origin"}], "measures": [{"name": "flights"}],
        "sort": [{"name": "origin", "desc": true}], "limit": 2});
    let sql = "SELECT origin, flights FROM delays ORDER BY origin DESC LIMIT 2";
    let (as_json, as_sql) = (ask(json!({"query": query})).await, ask(json!({"sql": sql})).await);
    assert_eq!(as_sql.status, 200, "{}", as_sql.json());
    assert_eq!(as_sql.json()["rows"], as_json.json()["rows"]);
    assert!(
        as_sql.json()["rows"]
            .as_array()
            .is_some_and(|rows| !rows.is_empty())
    );
    let compared = ask(
        json!({"shows_change": true, "query": {"measures": [{"name": "flights"}],
        "time_range": {"start": "2024-01-01T00:00:00Z", "end": "2024-02-01T00:00:00Z"},
        "comparison_time_range": {"start": "2023-01-01T00:00:00Z", "end": "2023-02-01T00:00:00Z"}}}),
    );
    let compared = compared.await.json();
    let columns = compared["columns"].as_array().into_iter().flatten();
    let columns: Vec<_> = columns.map(|column| column["name"].clone()).collect();
    assert_eq!(
        columns,
        ["flights", "flights_before", "flights_change"],
        "{compared}"
    );
    for (body, said) in [
        (json!({"sql": "SELECT * FROM delays"}), "name the fields"),
        (
            json!({"query": {"measures": ["flights"], "where": "origin = 'JFK'"}}),
            "where: expected a mapping",
        ),
        (json!({"sql": "SELECT flights FROM late"}), "`sql` reads `late`"),
        (json!({"sql": "SELECT origin FROM delays, late"}), "metrics view"),
        (
            json!({"sql": "SELECT flights FROM read_csv('/etc/passwd')"}),
            "metrics view",
        ),
        (
            json!({"sql": sql, "query": {"limit": 1}}),
            "two forms of one query",
        ),
        (json!({"sql": "x".repeat(9_000)}), "at most 8192 bytes"),
    ] {
        let refused = ask(body.clone()).await;
        let problem = refused.json();
        assert_eq!(refused.status / 100, 4, "{body}: {problem}");
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(detail.contains(said), "{body}: {problem}");
    }
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api6_a_hint_that_names_an_operation_is_a_call_that_can_be_made() {
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    let client = served.client;
    let paused = client
        .post(&format!("{SHOP}/resources/model/tested/pause"), &json!({}))
        .await;
    assert_eq!(paused.status, 200);
    let explained = client
        .get(&format!("{SHOP}/resources/model/tested/explain"))
        .await
        .json();
    let action = &explained["causes"][0]["actions"][0];
    assert_eq!(action["operation"], "resume", "{explained}");
    assert_eq!(action["resource"], json!({"kind": "model", "name": "tested"}));
    let call = &action["call"];
    let path = format!("{SHOP}{}", call["path"].as_str().expect("a path"));
    let done = client
        .send(
            call["method"].as_str().expect("a verb"),
            &path,
            &[],
            Some(&call["body"]),
        )
        .await;
    assert_eq!(done.status, 200);
    let health = client
        .get(&format!("{SHOP}/resources/model/tested?fields=health"))
        .await
        .json();
    assert_ne!(health["health"], "paused");
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ends_of_a_view_are_those_of_the_rows_that_there_are() {
    let closed = (
        "metrics/closed.yaml",
        "version: 1\ntype: metrics_view\nmodel: late\ndimensions: [{name: origin, column: origin}]\n\
         measures: [{name: flights, expression: count(*)}]\n",
    );
    let place = Place::new(&[closed]);
    let served = Served::new(&place).await;
    let ends = served
        .client
        .get(&format!("{SHOP}/metrics/delays/bounds"))
        .await
        .json();
    assert_eq!(ends["time_dimension"], "day");
    let told =
        ["earliest", "latest", "watermark"].map(|end| ends[end].as_str().unwrap_or_default().to_owned());
    assert_eq!(
        told,
        [
            "2024-03-01T00:00:00Z",
            "2024-03-02T00:00:00Z",
            "2024-03-02T00:00:00Z"
        ]
    );
    let without = served
        .client
        .get(&format!("{SHOP}/metrics/closed/bounds"))
        .await
        .json();
    assert_eq!(
        (&without["time_dimension"], &without["earliest"]),
        (&Value::Null, &Value::Null)
    );
    let unknown = served.client.get(&format!("{SHOP}/metrics/delay/bounds")).await;
    assert_eq!(
        (unknown.status, &unknown.json()["code"]),
        (404, &json!("unknown-name"))
    );
    served.close().await;
}

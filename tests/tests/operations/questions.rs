//! SQL of callers over HTTP: rows, the fence around callers, and statements that end with their connections.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::client::Response;
use crate::http::{SHOP, Served};
use crate::project::Place;
use crate::roles::told;

const QUERY: [(&str, &str); 1] = [("x-caller", "read+query")];

async fn ask(served: &Served, body: Value) -> Response {
    let path = format!("{SHOP}/query");
    served.client.send("POST", &path, &QUERY, Some(&body)).await
}

async fn get(served: &Served, path: &str) -> Response {
    served
        .client
        .send("GET", &format!("{SHOP}{path}"), &QUERY, None)
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api24_callers_read_outputs_over_http_and_nothing_else() {
    let place = Place::new(&[]);
    std::fs::write(place.root().join("marked.csv"), "MARK\nMARK\n").expect("a file");
    let served = Served::with(&place, told).await;
    let answer = ask(
        &served,
        json!({"sql": "SELECT count(*) AS n, 9007199254740993 AS big, 1.10::DECIMAL(9, 2) AS d FROM late"}),
    )
    .await;
    let document = answer.json();
    assert_eq!(answer.status, 200, "{document}");
    assert_eq!(document["columns"][0], json!({"name": "n", "type": "BIGINT"}));
    assert_eq!(document["rows"][0][1], "9007199254740993");
    assert_eq!(document["rows"][0][2], "1.10");
    assert_eq!(document["truncated"], false);
    let cut = ask(&served, json!({"sql": "FROM range(5000)", "limit": 3000}))
        .await
        .json();
    assert_eq!(cut["rows"].as_array().map(Vec::len), Some(3_000));
    assert_eq!(cut["truncated"], true);
    let rows = get(&served, "/resources/model/late/rows?limit=1").await.json();
    assert_eq!(rows["rows"].as_array().map(Vec::len), Some(1), "{rows}");
    let compiled = get(&served, "/resources/model/late/compiled").await;
    assert_eq!(compiled.status, 200);
    let tables = ask(&served, json!({"sql": "SHOW TABLES"})).await.json();
    let rows = tables["rows"].as_array().expect("rows");
    assert!(rows.contains(&json!(["late"])), "{tables}");
    let columns = ask(&served, json!({"sql": "SHOW ALL TABLES"})).await.json();
    let outputs = columns["rows"].as_array().expect("rows");
    assert_eq!(outputs.len(), rows.len(), "outputs alone: {columns}");
    let late = outputs.iter().find(|row| row[0] == "late").expect("late");
    let [names, types] = [&late[1], &late[2]].map(|list| list.as_array().map(Vec::len));
    assert!(names.is_some_and(|count| count > 0) && names == types, "{late}");
    let file = place.root().join("marked.csv");
    let file = file.display();
    for sql in [
        format!("SELECT * FROM '{file}'"),
        format!("SELECT * FROM read_csv('{file}')"),
        format!("SELECT content FROM read_text('{file}')"),
        format!("SELECT (SELECT content FROM read_text('{file}')) FROM late"),
        "SELECT * FROM 'marked.csv'".to_owned(),
        "SELECT * FROM duckdb_settings()".to_owned(),
        "SELECT current_setting('threads')".to_owned(),
        "SELECT write_log('x')".to_owned(),
        "FROM late; DROP TABLE late".to_owned(),
        "DROP VIEW late".to_owned(),
        "COPY late TO 'x.csv'".to_owned(),
    ] {
        let answer = ask(&served, json!({"sql": sql})).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, 403, "{sql}: {text}");
        assert!(
            text.contains("not-allowed-sql") && !text.contains("MARK"),
            "{sql}: {text}"
        );
    }
    let refused = served
        .client
        .send(
            "POST",
            &format!("{SHOP}/query"),
            &[("x-caller", "read")],
            Some(&json!({"sql": "SELECT 1"})),
        )
        .await;
    assert_eq!(refused.status, 403);
    for wrong in [
        json!({"sql": "SELECT 1", "timeout_ms": 600_001}),
        json!({"sql": "SELECT 1", "timeout_ms": 0}),
        json!({}),
    ] {
        assert_eq!(ask(&served, wrong.clone()).await.status, 400, "{wrong}");
    }
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api24_parameters_of_a_statement_are_values_and_never_sql() {
    let place = Place::new(&[]);
    let served = Served::with(&place, told).await;
    let text = "x' OR read_text('/etc/passwd') IS NOT NULL --";
    for (sql, parameters, row) in [
        (
            "SELECT $1 AS a, $2 + 1 AS b",
            json!([text, 1]),
            json!([text, "2"]),
        ),
        (
            "SELECT ? AS a, ?::BOOLEAN AS b",
            json!([null, true]),
            json!([null, true]),
        ),
        (
            "SELECT $a || $b AS c FROM late LIMIT 1",
            json!({"a": "x", "b": "y"}),
            json!(["xy"]),
        ),
        (
            "SELECT $1::HUGEINT AS a",
            json!([18_446_744_073_709_551_615_u64]),
            json!(["18446744073709551615"]),
        ),
        (
            "SELECT $1::DATE + 1 AS a",
            json!(["2024-02-28"]),
            json!(["2024-02-29"]),
        ),
    ] {
        let answer = ask(&served, json!({"sql": sql, "parameters": parameters})).await;
        let document = answer.json();
        assert_eq!(answer.status, 200, "{sql}: {document}");
        let found: Vec<String> = document["rows"][0]
            .as_array()
            .expect("a row")
            .iter()
            .map(plain)
            .collect();
        let expected: Vec<String> = row.as_array().expect("a row").iter().map(plain).collect();
        assert_eq!(found, expected, "{sql}");
    }
    for (sql, parameters, said) in [
        (
            "SELECT $1",
            json!([]),
            "the parameter `$1` of the statement has no value",
        ),
        ("SELECT $1", json!([1, 2]), "the statement has no parameter `$2`"),
        ("SELECT 1", json!({"a": 1}), "the statement has no parameters"),
        (
            "SELECT $1",
            json!([[1]]),
            "the parameter `$1` takes a text, a number",
        ),
    ] {
        let answer = ask(&served, json!({"sql": sql, "parameters": parameters})).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, 400, "{sql}: {text}");
        assert!(text.contains(said), "{sql}: {text}");
    }
    let file = ask(
        &served,
        json!({"sql": "FROM read_text($1)", "parameters": ["/etc/passwd"]}),
    )
    .await;
    assert_eq!(file.status, 403, "{}", String::from_utf8_lossy(&file.body));
    served.close().await;
}

/// Returns a value as text: numbers beyond 2^53 are texts in JSON already.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api26_a_statement_ends_with_its_time_and_with_its_connection() {
    let place = Place::new(&[]);
    let served = Served::with(&place, told).await;
    let long = "SELECT count(*) FROM range(100000000) a, range(1000000) b WHERE a.range % 7 = b.range % 11";
    let late = ask(&served, json!({"sql": long, "timeout_ms": 50})).await;
    assert_eq!(late.status, 504, "{}", String::from_utf8_lossy(&late.body));
    // More than there are slots, all of which hang up: the next one gets a slot all the same.
    for _ in 0..2 * std::thread::available_parallelism().map_or(1, usize::from) {
        let body = json!({"sql": long}).to_string();
        let head = format!(
            "POST {SHOP}/query HTTP/1.1\r\nhost: localhost\r\nx-caller: read+query\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(served.client.0).await.expect("it listens");
        stream.write_all(head.as_bytes()).await.expect("it reads");
        drop(stream);
    }
    let next = ask(&served, json!({"sql": "SELECT 1 AS one"})).await;
    assert_eq!(next.json()["rows"], json!([[1]]));
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api26_an_error_behind_the_first_byte_stands_at_the_end() {
    let place = Place::new(&[]);
    let served = Served::with(&place, told).await;
    let sql =
        "SELECT CAST(CASE WHEN range = 900000 THEN 'x' ELSE '1' END AS INTEGER) AS n FROM range(1000000)";
    let answer = ask(&served, json!({"sql": sql})).await;
    let document = answer.json();
    match answer.status {
        200 => {
            assert!(document["error"]["code"].is_string() && document.get("truncated").is_none());
        }
        // The engine may find the mistake before it gives the first row.
        status => assert_eq!(status, 422, "{document}"),
    }
    served.close().await;
}

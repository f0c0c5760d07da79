//! Forms of rows over HTTP: the same in each, to what people read them with.

use std::io::Read as _;
use std::process::Command;

use serde_json::json;
use watershed_tests::server::{fetched, skip};

use crate::client::Response;
use crate::http::{SHOP, Served};
use crate::project::Place;

const SHEET: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const PARQUET: &str = "application/vnd.apache.parquet";

/// Values that one form or another is known to lose: an ordinary row, extremes, NULL, and what looks like NULL.
const PLAIN: &str = "-- @materialize: true
SELECT * FROM (VALUES
  (1, 12.500::DECIMAL(18,3), 9007199254740993::BIGINT, DATE '2024-02-29', TIMESTAMP '2024-02-29 12:00:00.123456',
   TIMESTAMPTZ '2024-02-29 12:00:00+02', 0.1::DOUBLE, 'a,\"b\"' || chr(10) || 'é'),
  (2, -0.005, -9223372036854775808, DATE '1969-12-31', TIMESTAMP '1969-12-31 23:59:59', TIMESTAMPTZ '2000-01-01 00:00:00+00',
   1e300, 'NULL'),
  (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (4, 0, 0, DATE '2000-01-01', TIMESTAMP '2000-01-01 00:00:00', TIMESTAMPTZ '2000-01-01 00:00:00+00', 2.5, '')
) AS t(id, fraction, big, day, moment, zoned, x, text) ORDER BY id
";

const KINDS: &str = "-- @materialize: true
SELECT * FROM (VALUES
  (1, '99999999999999999999999999999999999999'::HUGEINT, TIME '12:34:56.789', INTERVAL '1 year 2 days 3 seconds', 'nan'::DOUBLE,
   '\\x00a\\x5C\\xFF'::BLOB, '0101'::BIT, '00000000-0000-0000-0000-00000000000f'::UUID, 'small'::ENUM('small', 'large'),
   [1, NULL, 3], {'a': 1, 'b': 'x'}, MAP {'k': 1, 'l': NULL}, '340282366920938463463374607431768211455'::UHUGEINT),
  (2, -1::HUGEINT, TIME '00:00:00', INTERVAL '-1 months', '-inf'::DOUBLE, ''::BLOB, '1'::BIT,
   'ffffffff-ffff-ffff-ffff-ffffffffffff'::UUID, 'large'::ENUM('small', 'large'),
   [], {'a': NULL, 'b': 'NULL'}, MAP {'m': 2}, 0::UHUGEINT),
  (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
) AS t(id, huge, time, span, x, bytes, bits, uuid, word, list, \"row\", map, unsigned) ORDER BY id
";

/// Returns the model of the engine's own text of another model: nested values as JSON.
fn told(model: &str, columns: &[&str]) -> String {
    let nested = ["list", "row", "map"];
    let texts = columns.iter().map(|column| match nested.contains(column) {
        true => format!("to_json(\"{column}\")::VARCHAR AS \"{column}\""),
        false => format!("\"{column}\"::VARCHAR AS \"{column}\""),
    });
    let texts: Vec<String> = texts.collect();
    format!(
        "-- @materialize: true\nSELECT {} FROM {model} ORDER BY id::INT\n",
        texts.join(", ")
    )
}

/// A project with models of all kinds of values, of many rows, and of rows that fail late.
fn place() -> Place {
    let plain = ["id", "fraction", "big", "day", "moment", "zoned", "x", "text"];
    let kinds = [
        "id", "huge", "time", "span", "x", "bytes", "bits", "uuid", "word", "list", "row", "map", "unsigned",
    ];
    let (plain_told, kinds_told) = (told("plain", &plain), told("kinds", &kinds));
    let late = "SELECT CASE WHEN range = 200000 THEN error('too late')::BIGINT ELSE range END AS x FROM range(300000)\n";
    Place::new(&[
        ("models/plain.sql", PLAIN),
        ("models/kinds.sql", KINDS),
        ("models/plain_told.sql", &plain_told),
        ("models/kinds_told.sql", &kinds_told),
        ("models/late_error.sql", late),
        (
            "models/many.sql",
            "SELECT range AS x, 'text' AS word FROM range(100000)\n",
        ),
    ])
}

/// Reads the rows of a model in a form.
async fn rows(served: &Served, model: &str, headers: &[(&str, &str)]) -> Response {
    let path = format!("{SHOP}/resources/model/{model}/rows");
    served.client.send("GET", &path, headers, None).await
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api25_all_forms_have_the_same_rows_for_real_readers() {
    let python = fetched().join("python-readers");
    if !python.exists() {
        return skip("python-readers are missing (scripts/fetch-test-servers)");
    }
    let place = place();
    let served = Served::new(&place).await;
    let mut read = tokio::process::Command::from(Command::new("python3"));
    read.env("PYTHONPATH", &python)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/clients/forms.py"))
        .arg(format!("http://{}{SHOP}/resources/model", served.client.0));
    let output = read.kill_on_drop(true).output().await.expect("Python runs");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success() && text.ends_with("done\n"), "{text}");
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api25_an_error_behind_the_first_byte_never_looks_like_an_end() {
    let place = place();
    let served = Served::new(&place).await;
    let document = rows(&served, "late_error", &[]).await;
    assert_eq!(document.status, 200, "the first rows are right");
    let document = document.json();
    assert!(document["rows"].as_array().is_some_and(|rows| rows.len() > 1_000));
    let error = document["error"]["detail"].as_str().unwrap_or_default();
    assert!(error.contains("too late"), "{}", document["error"]);
    assert!(document.get("truncated").is_none(), "it has no end of its own");
    for media in [
        "text/csv",
        "application/x-ndjson",
        "application/vnd.apache.arrow.stream",
    ] {
        let read = read_raw(&served, media).await;
        let end = read.len().saturating_sub(5);
        assert!(read.len() > 10_000, "{media}: rows come before");
        assert_ne!(&read[end..], b"0\r\n\r\n", "{media}: the body has no end");
    }
    // What is made as a file is refused whole.
    for media in [SHEET, PARQUET] {
        let refused = rows(&served, "late_error", &[("accept", media)]).await;
        assert!(refused.status >= 400, "{media}: {}", refused.status);
        let detail = refused.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(detail.contains("too late"), "{media}: {detail}");
    }
    no_file_is_left(&place);
    served.close().await;
}

/// Reads an answer as it comes, to the end of the connection.
async fn read_raw(served: &Served, media: &str) -> Vec<u8> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(served.client.0)
        .await
        .expect("it listens");
    let head = format!(
        "GET {SHOP}/resources/model/late_error/rows HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: {media}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("it reads");
    let mut read = Vec::new();
    // A connection that is broken off may end with an error, which is no end either.
    let _ = stream.read_to_end(&mut read).await;
    read
}

/// Asserts that nothing is left of files that were made for answers.
fn no_file_is_left(place: &Place) {
    let folder = place.root().join(".watershed/dev/answers");
    let left: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api25_a_limit_is_marked_in_each_form_and_files_have_safe_names() {
    let place = place();
    let served = Served::new(&place).await;
    let path = format!("{SHOP}/resources/model/plain/rows?limit=2");
    let document = served.client.get(&path).await;
    assert_eq!(document.json()["truncated"], true);
    assert_eq!(document.json()["rows"].as_array().map(Vec::len), Some(2));
    assert_eq!(document.header("content-disposition"), None);
    let csv = served
        .client
        .send("GET", &path, &[("accept", "text/csv")], None)
        .await;
    assert_eq!(csv.header("watershed-truncated"), Some("true"));
    assert_eq!(
        csv.header("content-disposition"),
        Some("attachment; filename=\"plain.csv\"")
    );
    for media in ["text/csv", SHEET, PARQUET] {
        let accept = [("accept", media)];
        let cut = served.client.send("GET", &path, &accept, None).await;
        assert_eq!(cut.header("watershed-truncated"), Some("true"), "{media}");
        let all = rows(&served, "plain", &accept).await;
        assert_eq!(all.header("watershed-truncated"), None, "{media}");
        // As many as there are is no cut.
        let number = served
            .client
            .get(&format!("{SHOP}/resources/model/plain/rows"))
            .await;
        let number = number.json()["rows"].as_array().map_or(0, Vec::len);
        let exact = path.replace("limit=2", &format!("limit={number}"));
        let exact = served.client.send("GET", &exact, &accept, None).await;
        assert_eq!(exact.header("watershed-truncated"), None, "{media}");
    }
    let refused = rows(&served, "plain", &[("accept", "text/html")]).await;
    assert_eq!(refused.status, 406);
    let hint = refused.json()["hint"].as_str().unwrap_or_default().to_owned();
    assert!(hint.contains("text/csv") && hint.contains(PARQUET), "{hint}");
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api25_bodies_are_compressed_for_who_accepts_it() {
    let place = place();
    let served = Served::new(&place).await;
    let csv = ("accept", "text/csv");
    let plain = rows(&served, "many", &[csv]).await;
    assert_eq!(plain.header("content-encoding"), None);
    let packed = rows(&served, "many", &[csv, ("accept-encoding", "gzip")]).await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() * 2 < plain.body.len());
    let mut unpacked = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(packed.body.as_slice());
    reader.read_to_end(&mut unpacked).expect("it is gzip");
    assert!(unpacked == plain.body, "the same rows");
    let packed = rows(&served, "many", &[csv, ("accept-encoding", "br;q=1, gzip;q=0.5")]).await;
    assert_eq!(packed.header("content-encoding"), Some("br"));
    // What is small or packed already stays as it is.
    let small = rows(&served, "plain", &[csv, ("accept-encoding", "gzip")]).await;
    assert_eq!(small.header("content-encoding"), None);
    let file = rows(
        &served,
        "many",
        &[("accept", PARQUET), ("accept-encoding", "gzip")],
    )
    .await;
    assert_eq!(file.header("content-encoding"), None);
    assert!(file.body.starts_with(b"PAR1") && file.body.ends_with(b"PAR1"));
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api25_metrics_and_apis_answer_in_these_forms() {
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    let (metrics, api) = (
        format!("{SHOP}/metrics/delays/query"),
        format!("{SHOP}/api/by_origin?origin=JFK"),
    );
    let query = json!({ "query": { "dimensions": [{"name": "origin"}], "measures": [{"name": "flights"}], "sort": [{"name": "origin"}] } });
    let ask = async |media: &str| {
        let accept = [("accept", media)];
        let metrics = served.client.send("POST", &metrics, &accept, Some(&query)).await;
        (metrics, served.client.send("GET", &api, &accept, None).await)
    };
    let (document, called) = ask("application/json").await;
    assert_eq!(
        document.json()["rows"],
        json!([["JFK", 1], ["LGA", 1]]),
        "{document:?}"
    );
    assert_eq!(called.json()["rows"], json!([[10]]));
    let (csv, called) = ask("text/csv").await;
    assert_eq!(
        String::from_utf8_lossy(&csv.body),
        "origin,flights\nJFK,1\nLGA,1\n"
    );
    assert_eq!(String::from_utf8_lossy(&called.body), "delay\n10\n");
    let (lines, _) = ask("application/jsonl").await;
    assert_eq!(
        String::from_utf8_lossy(&lines.body),
        "{\"origin\":\"JFK\",\"flights\":1}\n{\"origin\":\"LGA\",\"flights\":1}\n"
    );
    for (media, sign) in [(SHEET, b"PK\x03\x04"), (PARQUET, b"PAR1")] {
        let (metrics, called) = ask(media).await;
        for answer in [metrics, called] {
            assert!(answer.body.starts_with(sign), "{media}: {answer:?}");
            assert_eq!(answer.header("content-type"), Some(media));
        }
    }
    let (refused, _) = ask("image/png").await;
    assert_eq!(refused.status, 406);
    no_file_is_left(&place);
    served.close().await;
}

//! Rows by the million: what forms cost above the engine.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use watershed_drivers::duckdb::{Engine, Options};
use watershed_drivers::olap::{Olap as _, Query};
use watershed_tests::measure::{Report, Unit};

use super::client::Client;
use super::projects::rows;
use super::{PLACE, ROUNDS, Served, percentile};

/// Measures the forms of a table's rows.
pub(crate) async fn forms(report: &Report, number: usize) {
    let served = Served::new(rows(number)).await;
    let path = format!("{PLACE}/resources/model/many/rows");
    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let own = engine(number).await;
        let arrow = take(served.client, &path, "application/vnd.apache.arrow.stream").await;
        ratios.push(arrow.as_secs_f64() / own.as_secs_f64());
        let csv = take(served.client, &path, "text/csv").await;
        rates.push(number as f64 / csv.as_secs_f64() / 1e6);
    }
    report.print("arrow_over_engine", Unit::Ratio, ratios);
    report.print("csv_mrows_per_s", Unit::MillionsPerSecond, rates);
    served.close().await;
}

/// Rows of the table that small questions are asked of.
const FEW: usize = 1_000;
/// Questions of a round.
const QUESTIONS: usize = 200;

/// Measures what a small question costs above the engine: a text that is new, and one that was asked before.
pub(crate) async fn questions(report: &Report) {
    let served = Served::new(rows(FEW)).await;
    let mut connection = served.client.connect().await;
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::new(Options::new(folder.path().join("own.db"), folder.path()));
    let view = format!("({})", super::projects::select_rows(FEW));
    let (mut new, mut again) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let (mut own, mut first, mut second) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..QUESTIONS {
            let question = |view: &str| question(view, round * QUESTIONS + number);
            let begun = Instant::now();
            let cancel = CancellationToken::new();
            let mut answer = engine.query(all_of(question(&view)), &cancel).await.unwrap();
            assert_eq!(answer.collect().await.unwrap().len(), 5);
            own.push(begun.elapsed().as_secs_f64() * 1_000.0);
            let body = serde_json::json!({ "sql": question("many") }).to_string();
            for times in [&mut first, &mut second] {
                let begun = Instant::now();
                let path = format!("{PLACE}/query");
                let json = "content-type: application/json\r\n";
                connection.send("POST", &path, json, &body).await;
                times.push(begun.elapsed().as_secs_f64() * 1_000.0);
            }
        }
        let own = percentile(own, 50);
        new.push(percentile(first, 50) - own);
        again.push(percentile(second, 50) - own);
    }
    report.print("query_overhead_ms", Unit::Milliseconds, new);
    report.print("query_again_ms", Unit::Milliseconds, again);
    served.close().await;
}

fn question(view: &str, number: usize) -> String {
    format!(
        "SELECT kind, sum(amount) AS total FROM {view} WHERE id % 97 <> {number} GROUP BY kind ORDER BY total DESC, kind LIMIT 5"
    )
}

fn all_of(sql: String) -> Query {
    Query::new(sql)
}

/// Reads all rows of the same table in Arrow's layout from an engine in this process, which sends them nowhere.
async fn engine(number: usize) -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::new(Options::new(folder.path().join("own.db"), folder.path()));
    let cancel = CancellationToken::new();
    // The file is open before the time begins.
    let batching = engine.batching().unwrap();
    let mut first = engine
        .query(all_of("SELECT 1".to_owned()), &cancel)
        .await
        .unwrap();
    first.collect().await.unwrap();
    drop(first);
    let begun = Instant::now();
    let all = all_of(super::projects::select_rows(number));
    let mut batches = batching.query_batches(all, &cancel).await.unwrap();
    let mut read = 0;
    while let Some(batch) = batches.next().await {
        read += batch.unwrap().num_rows();
    }
    let took = begun.elapsed();
    assert_eq!(read, number);
    took
}

/// Reads a path to its end in a form, and returns the time that takes.
async fn take(client: Client, path: &str, media: &str) -> Duration {
    let connection = client.connect().await;
    let begun = Instant::now();
    connection.drain(path, media).await;
    begun.elapsed()
}

//! Rows by the million: what forms cost above the engine.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use watershed_drivers::duckdb::{Engine, Options};
use watershed_drivers::olap::{Olap as _, Query};
use watershed_tests::measure::{Report, Unit};

use super::client::Client;
use super::projects::rows;
use super::{PLACE, ROUNDS, Served};

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

/// Reads all rows of the same table in Arrow's layout from an engine in this process, which sends them nowhere.
async fn engine(number: usize) -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::new(Options::new(folder.path().join("own.db"), folder.path()));
    let cancel = CancellationToken::new();
    let query = |sql: String| Query {
        sql,
        limit: None,
        timeout: None,
        attributes: Default::default(),
    };
    // The file is open before the time begins.
    let batching = engine.batching().unwrap();
    let mut first = engine.query(query("SELECT 1".to_owned()), &cancel).await.unwrap();
    first.collect().await.unwrap();
    drop(first);
    let begun = Instant::now();
    let all = query(super::projects::select_rows(number));
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

//! An instance beside another that is busy.

use std::sync::Arc;
use std::time::Instant;

use watershed::api::request::RunRequest;
use watershed::{Options, Runtime};
use watershed_tests::measure::{Report, Unit};

use super::projects::models;
use super::{PATIENCE, ROUNDS, percentile};

/// Measures small edits of one project while another builds many models.
pub(crate) async fn quiet(report: &Report, number: usize) {
    let mut slowest = Vec::new();
    for _ in 0..ROUNDS {
        let runtime = Runtime::new();
        let (busy, quiet) = (models(number), models(1));
        let loud = Arc::new(runtime.open(Options::new(busy.path())).await.unwrap());
        let small = runtime.open(Options::new(quiet.path())).await.unwrap();
        small.run(RunRequest::default()).await.unwrap();
        let building = tokio::spawn({
            let loud = Arc::clone(&loud);
            async move { loud.run(RunRequest::default()).await.unwrap() }
        });
        let mut times = Vec::new();
        let mut edit = 1;
        while !building.is_finished() {
            quiet.edit(edit);
            let begun = Instant::now();
            small.run(RunRequest::default()).await.unwrap();
            times.push(begun.elapsed().as_secs_f64() * 1_000.0);
            edit += 1;
        }
        building.await.unwrap();
        slowest.push(percentile(times, 99));
        loud.close(PATIENCE).await.unwrap();
        small.close(PATIENCE).await.unwrap();
    }
    report.print("quiet_p99_ms", Unit::Milliseconds, slowest);
}

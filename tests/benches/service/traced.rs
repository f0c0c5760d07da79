//! Cold builds whose spans go to a collector, beside builds that tell nobody.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::Router;
use axum::body::Bytes;
use tokio::net::TcpListener;
use watershed_tests::measure::{Report, Unit};

use super::ROUNDS;
use super::projects::models;
use super::serving::program;

/// Measures a build from nothing with traces over one without, each on a project of its own.
pub(crate) async fn slowdown(report: &Report, number: usize) {
    let taken = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&taken);
    let take = move |body: Bytes| async move {
        counting.fetch_add(body.len() as u64, Ordering::Relaxed);
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let collector = tokio::spawn(async { axum::serve(listener, Router::new().fallback(take)).await });
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let alone = build(number, None).await;
        let before = taken.load(Ordering::Relaxed);
        ratios.push(build(number, Some(address.clone())).await / alone);
        assert!(taken.load(Ordering::Relaxed) > before, "nothing was sent");
    }
    collector.abort();
    report.print("otel_build_slowdown", Unit::Ratio, ratios);
}

async fn build(number: usize, collector: Option<String>) -> f64 {
    let building = move || {
        let project = models(number);
        let mut building = Command::new(program());
        building.arg("run").current_dir(project.path());
        if let Some(address) = collector {
            building.env("OTEL_EXPORTER_OTLP_ENDPOINT", address);
        }
        let begun = Instant::now();
        assert!(building.output().unwrap().status.success());
        begun.elapsed().as_secs_f64()
    };
    tokio::task::spawn_blocking(building).await.unwrap()
}

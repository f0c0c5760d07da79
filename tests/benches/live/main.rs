//! The time from closing a saved file until a query sees its new rows, beside a running `start`.
//!
//! ```
//! cargo bench -p watershed-tests --bench live -- --json
//! ```
//!
//! Figures: `live_flights_*` edits a model of the flights project that nothing reads, `live_1k_*` one of 1,000 models;
//! median and 95th percentile of 50 edits. `idle_1k_*` is what `start` uses while nothing happens.
//! `-- --soak` measures how it ages instead, see [`soak`]; `-- --gigabyte` a rename of a large table, see [`gigabyte`].
//! `WATERSHED_PROGRAM` names another program to measure.

#![allow(
    clippy::unwrap_used,
    reason = "a measurement that goes wrong should end at once"
)]

mod gigabyte;
mod projects;
mod soak;
mod start;

use std::fs;
use std::time::{Duration, Instant};

use watershed::socket::Address;
use watershed_tests::measure::{Report, Unit};

use self::projects::{Project, flights, thousand};
use self::start::{Start, ask};

/// Edits of one figure.
const EDITS: usize = 50;
/// The time for which the idle process is looked at.
const IDLE: Duration = Duration::from_secs(20);
/// Far longer than any edit takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() {
    let report = Report::from_args();
    if std::env::args().any(|argument| argument == "--soak") {
        return soak::soak(&report);
    }
    if std::env::args().any(|argument| argument == "--gigabyte") {
        return gigabyte::gigabyte(&report);
    }
    if report.wants("live_flights_median_ms") || report.wants("live_flights_p95_ms") {
        let project = flights();
        edits(&report, "live_flights", &project);
    }
    if report.wants("live_1k_median_ms") || report.wants("live_1k_p95_ms") || report.wants("idle_1k_cpu") {
        let project = thousand();
        edits(&report, "live_1k", &project);
    }
}

fn edits(report: &Report, figure: &str, project: &Project) {
    fs::write(project.path().join(project.file), (project.text)(0)).unwrap();
    let mut start = Start::new(&project.path());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut took = Vec::new();
    for n in 1..=EDITS {
        start.settle();
        let text = (project.text)(n);
        fs::write(project.path().join(project.file), text).unwrap();
        let closed = Instant::now();
        runtime.block_on(until_seen(&start.address, project.model, n));
        took.push(closed.elapsed().as_secs_f64() * 1_000.0);
    }
    start.settle();
    took.sort_by(f64::total_cmp);
    report.print(&format!("{figure}_median_ms"), Unit::Milliseconds, took.clone());
    let p95 = took[took.len() * 95 / 100];
    report.print(&format!("{figure}_p95_ms"), Unit::Milliseconds, vec![p95]);
    if figure == "live_1k" {
        let before = start.cpu_ms();
        runtime.block_on(async { tokio::time::sleep(IDLE).await });
        let used = start.cpu_ms() - before;
        report.print("idle_1k_cpu_ms_in_20_s", Unit::Milliseconds, vec![used]);
    }
}

/// Asks until the rows of the n-th edit are there, each time over a connection of its own, as the program does.
async fn until_seen(address: &Address, model: &str, n: usize) {
    let begun = Instant::now();
    let sql = format!("SELECT max(edit) FROM {model}");
    while begun.elapsed() < PATIENCE {
        if ask(address, &sql).await.unwrap()[0][0] == n {
            return;
        }
    }
    panic!("the edit was never seen");
}

//! Costs of questions to metrics views, of alerts, of messages and of files.
//!
//! ```
//! cargo bench -p watershed-tests --bench metrics -- --json
//! ```
//!
//! | figure | measures |
//! |---|---|
//! | `overhead_p50_us`, `overhead_p99_us` | `Instance::metrics` beyond the same statement on a raw connection, nothing kept |
//! | `plan_us` | plan and text: 3 dimensions, 10 measures, comparison, policy |
//! | `cached_p50_us` | the same query again |
//! | `leaderboard_ratio` | 10 measures, one dimension, sorted, limited, over hand-written SQL |
//! | `compare_ratio`, `totals_ratio` | with the period before; with totals, over hand-written SQL |
//! | `zone_ratio` | days of New York over days of a TIMESTAMP |
//! | `policy_ratio` | with a row filter over the filter written by hand |
//! | `alerts_1000_s` | 1,000 alerts asked for at once, trivial SQL, evaluated and stored |
//! | `alert_idle_bytes` | bytes held for an idle alert whose history is full: of 1,000 less those of 100 |
//! | `deliver_1000_s` | 1,000 messages to a local receiver, each stored before and after |
//! | `csv_cells_per_s_m`, `xlsx_cells_per_s_m` | million cells written in a second, 10 columns |
//! | `export_rss_mb` | memory of writing a sheet, above that of the engine before it |
//!
//! Ratios are of flights multiplied to 10 million rows, medians of five pairs in one run. `WATERSHED_BENCH_ROWS` takes fewer.

#![allow(
    clippy::unwrap_used,
    reason = "a measurement that goes wrong should end at once"
)]

mod alerts;
mod delivery;
mod files;
mod held;
mod instance;
mod ratios;

use watershed_tests::measure::Report;

fn main() {
    let report = Report::from_args();
    ratios::measure(&report);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        instance::measure(&report).await;
        alerts::measure(&report).await;
        delivery::measure(&report).await;
        files::measure(&report).await;
    });
}

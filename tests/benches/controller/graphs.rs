//! From a start on a stored catalog until everything is idle, so that every resource is invoked exactly once.

use std::time::Instant;

use watershed_controller::Key;
use watershed_controller::kind::Parents;
use watershed_controller::store::{MemoryStore, SqliteStore};
use watershed_tests::measure::{Report, Unit};

use crate::world::{
    CHAIN, DEADLINE, FAN, LAYERS, LOOSE, Shape, at_rest, batch, fill, filled, finish, idle, median, name,
    start, start_as, start_to_idle,
};

/// Samples of each figure; the median is printed.
const SAMPLES: usize = 5;
/// Samples of what takes longer than ten seconds.
const FEW: usize = 3;

pub(crate) async fn measure(report: &Report) {
    if report.wants("noop_100k_per_s") {
        let samples = in_memory(100_000, LOOSE, SAMPLES).await;
        report.print("noop_100k_per_s", Unit::PerSecond, per_second(100_000, samples));
    }
    if report.wants("noop_100k_sqlite_per_s") {
        let samples = in_sqlite(100_000).await;
        report.print(
            "noop_100k_sqlite_per_s",
            Unit::PerSecond,
            per_second(100_000, samples),
        );
    }
    if report.wants("growth_1m_over_100k") {
        let small = median(in_memory(100_000, LOOSE, FEW).await);
        let large = median(in_memory(1_000_000, LOOSE, FEW).await);
        report.print("growth_1m_over_100k", Unit::Ratio, vec![large / small]);
    }
    for (figure, count, shape) in [
        ("chain_10k_s", 10_000, CHAIN),
        ("fan_10k_s", 10_000, FAN),
        ("chain_100k_s", 100_000, CHAIN),
    ] {
        if report.wants(figure) {
            report.print(figure, Unit::Seconds, in_memory(count, shape, SAMPLES).await);
        }
    }
    if report.wants("fan_100k_s") {
        report.print("fan_100k_s", Unit::Seconds, from_the_root(100_000).await);
    }
    if report.wants("layers_100k_s") {
        let restart = in_memory(100_000, LAYERS, SAMPLES).await;
        let created = as_one_batch(100_000).await;
        let larger = if median(restart.clone()) > median(created.clone()) {
            restart
        } else {
            created
        };
        report.print("layers_100k_s", Unit::Seconds, larger);
    }
    if report.wants("cold_start_100k_s") {
        report.print("cold_start_100k_s", Unit::Seconds, in_sqlite(100_000).await);
    }
    if report.wants("unchanged_root_fan_ms") {
        report.print(
            "unchanged_root_fan_ms",
            Unit::Milliseconds,
            unchanged_root(100_000).await,
        );
    }
}

async fn in_memory(count: usize, shape: Shape, samples: usize) -> Vec<f64> {
    let store = filled(count, shape).await;
    let mut times = Vec::new();
    for _ in 0..samples {
        times.push(start_to_idle(store.clone()).await);
    }
    times
}

async fn in_sqlite(count: usize) -> Vec<f64> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("catalog.db");
    let open = || async { SqliteStore::open(&path).await.expect("the catalog opens") };
    fill(open().await, count, LOOSE).await;
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        samples.push(start_to_idle(open().await).await);
    }
    samples
}

/// Seconds from a batch that creates everything until it is idle.
async fn as_one_batch(count: usize) -> Vec<f64> {
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let controller = start(MemoryStore::new()).await;
        let batch = batch(0..count, LAYERS);
        let started = Instant::now();
        controller.edit(batch).await.expect("the batch is taken");
        idle(&controller).await;
        samples.push(started.elapsed().as_secs_f64());
        finish(controller).await;
    }
    samples
}

/// Seconds from a request for the root of a fan that is idle until everything is idle again.
async fn from_the_root(count: usize) -> Vec<f64> {
    let controller = at_rest(count, FAN).await;
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let started = Instant::now();
        let root = Key::new("thing", name(0).as_str());
        let mut request = controller.reconcile(root).await.expect("the request is taken");
        request.settled(DEADLINE).await.expect("everything settles");
        samples.push(started.elapsed().as_secs_f64());
    }
    finish(controller).await;
    samples
}

/// Milliseconds of a request for the root of a fan whose children run only if it changed, which it does not.
async fn unchanged_root(count: usize) -> Vec<f64> {
    let controller = start_as(filled(count, FAN).await, Parents::Changed).await;
    idle(&controller).await;
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let started = Instant::now();
        let root = Key::new("thing", name(0).as_str());
        controller.reconcile(root).await.expect("the request is taken");
        idle(&controller).await;
        samples.push(started.elapsed().as_secs_f64() * 1e3);
    }
    finish(controller).await;
    samples
}

fn per_second(count: usize, samples: Vec<f64>) -> Vec<f64> {
    samples
        .into_iter()
        .map(|seconds| count as f64 / seconds)
        .collect()
}

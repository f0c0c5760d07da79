//! What the controller itself costs: reconcilers that do nothing, on graphs of different shapes.
//!
//! Each figure is taken from the start of a controller on a stored catalog until everything is idle, so that every
//! resource is invoked exactly once. The figures of peak memory are of the process so far.

use std::time::Duration;

use watershed_controller::store::{MemoryStore, SqliteStore, Store};
use watershed_controller::{
    Batch, Context, Controller, Edit, Error, KindOptions, Limits, NewResource, Outcome, Reconciler, Ref,
    fresh_uid,
};
use watershed_tests::measure::{Report, Unit};

/// Longer than any of this takes.
const DEADLINE: Duration = Duration::from_secs(600);
/// Samples of each figure; the median is printed.
const SAMPLES: usize = 5;
/// Edits of one batch when a catalog is made.
const BATCH: usize = 10_000;

struct Nothing;

impl Reconciler for Nothing {
    type Spec = ();
    type State = ();

    async fn reconcile(&self, _context: Context<Self>) -> Result<Outcome, Error> {
        Ok(Outcome::default())
    }
}

/// A shape of graph: the refs of the resource with this number, to resources with lower ones.
type Shape = fn(usize) -> Option<usize>;

const LOOSE: Shape = |_| None;
const CHAIN: Shape = |n| n.checked_sub(1);
const FAN: Shape = |n| (n > 0).then_some(0);

fn name(number: usize) -> String {
    format!("thing{number:06}")
}

fn resource(number: usize, shape: Shape) -> NewResource {
    let mut new = NewResource::new(fresh_uid(), "thing", name(number).as_str(), Vec::new());
    new.spec_format = 0;
    let parent = shape(number).map(|parent| Ref::completed("thing", name(parent).as_str()));
    new.with_refs(Vec::from_iter(parent))
}

/// Reconcilers that only look are cheap enough to run by the thousand.
const CONCURRENCY: usize = 1_024;

async fn start(store: impl Store) -> Controller {
    let limits = Limits {
        concurrency: CONCURRENCY,
        ..Limits::default()
    };
    let builder = Controller::builder()
        .store(store)
        .limits(limits)
        .kind(KindOptions::new("thing"), Nothing);
    builder.start().await.expect("the controller starts")
}

async fn finish(controller: Controller) {
    controller
        .wait_until_idle(DEADLINE)
        .await
        .expect("everything becomes idle");
    controller
        .shutdown(DEADLINE)
        .await
        .expect("the controller stops in order");
}

/// Fills a store with `count` resources, each run once.
async fn fill(store: impl Store, count: usize, shape: Shape) {
    let controller = start(store).await;
    for first in (0..count).step_by(BATCH) {
        let numbers = first..count.min(first + BATCH);
        let edits = numbers
            .map(|number| Edit::create(resource(number, shape)))
            .collect();
        controller
            .apply(Batch { edits })
            .await
            .expect("the batch is taken");
    }
    finish(controller).await;
}

/// Seconds from a start to idle.
async fn start_to_idle(store: impl Store) -> f64 {
    let started = std::time::Instant::now();
    let controller = start(store).await;
    controller
        .wait_until_idle(DEADLINE)
        .await
        .expect("everything becomes idle");
    let elapsed = started.elapsed().as_secs_f64();
    finish(controller).await;
    elapsed
}

async fn in_memory(count: usize, shape: Shape) -> Vec<f64> {
    let store = MemoryStore::new();
    fill(store.clone(), count, shape).await;
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        samples.push(start_to_idle(store.clone()).await);
    }
    samples
}

async fn in_sqlite(count: usize, shape: Shape) -> Vec<f64> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("catalog.db");
    let open = || async { SqliteStore::open(&path).await.expect("the catalog opens") };
    fill(open().await, count, shape).await;
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        samples.push(start_to_idle(open().await).await);
    }
    samples
}

fn per_second(count: usize, samples: Vec<f64>) -> Vec<f64> {
    samples
        .into_iter()
        .map(|seconds| count as f64 / seconds)
        .collect()
}

#[tokio::main]
async fn main() {
    let report = Report::from_args();
    if report.wants("noop_100k_per_s") {
        let samples = in_memory(100_000, LOOSE).await;
        report.print("noop_100k_per_s", Unit::PerSecond, per_second(100_000, samples));
    }
    if report.wants("noop_100k_sqlite_per_s") {
        let samples = in_sqlite(100_000, LOOSE).await;
        report.print(
            "noop_100k_sqlite_per_s",
            Unit::PerSecond,
            per_second(100_000, samples),
        );
    }
    if report.wants("chain_10k_s") {
        report.print("chain_10k_s", Unit::Seconds, in_memory(10_000, CHAIN).await);
    }
    if report.wants("fan_10k_s") {
        report.print("fan_10k_s", Unit::Seconds, in_memory(10_000, FAN).await);
    }
}

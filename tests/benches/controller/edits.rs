//! Edits and requests one by one, and a large batch.

use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use watershed_controller::{Batch, Controller, Edit, Key, Name, Update};
use watershed_tests::measure::{Report, Unit};

use crate::world::{DEADLINE, LOOSE, at_rest, filled, finish, idle, name, quantile, start};

/// Resources of the catalog.
const COUNT: usize = 100_000;
/// Requests that make up one distribution.
const REQUESTS: usize = 10_000;
const SAMPLES: usize = 5;

pub(crate) async fn measure(report: &Report) {
    if report.wants("leaf_p50_us") || report.wants("leaf_p99_us") {
        leaf(report).await;
    }
    if report.wants("leaf_during_start_p99_ms") {
        let mut samples = Vec::new();
        for _ in 0..SAMPLES {
            samples.push(leaf_during_start().await);
        }
        report.print("leaf_during_start_p99_ms", Unit::Milliseconds, samples);
    }
    if report.wants("update_specs_100k_s") {
        report.print("update_specs_100k_s", Unit::Seconds, update_specs().await);
    }
    if report.wants("round_trips_100k_s") {
        report.print("round_trips_100k_s", Unit::Seconds, round_trips().await);
    }
    if report.wants("renames_100k_s") {
        report.print("renames_100k_s", Unit::Seconds, renames().await);
    }
}

fn key(number: usize) -> Key {
    Key::new("thing", name(number).as_str())
}

/// Microseconds from a request to its outcome.
async fn request(controller: &Controller, number: usize) -> f64 {
    let started = Instant::now();
    let mut request = controller
        .reconcile(key(number))
        .await
        .expect("the request is taken");
    request.outcome(DEADLINE).await.expect("it has an outcome");
    started.elapsed().as_secs_f64() * 1e6
}

async fn leaf(report: &Report) {
    let controller = at_rest(COUNT, LOOSE).await;
    let (mut halves, mut tails) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        let mut times = Vec::with_capacity(REQUESTS);
        for number in 0..REQUESTS {
            times.push(request(&controller, number * (COUNT / REQUESTS)).await);
        }
        halves.push(quantile(&mut times, 0.5));
        tails.push(quantile(&mut times, 0.99));
    }
    report.print("leaf_p50_us", Unit::Microseconds, halves);
    report.print("leaf_p99_us", Unit::Microseconds, tails);
    finish(controller).await;
}

/// The slowest but one in a hundred of the requests that are made while everything starts up, in milliseconds.
async fn leaf_during_start() -> f64 {
    let store = filled(COUNT, LOOSE).await;
    let controller = start(store).await;
    let handle = controller.handle();
    let idle = tokio::spawn(async move { handle.wait_until_idle(DEADLINE).await });
    let mut times = Vec::new();
    let mut number = COUNT;
    while !idle.is_finished() && number > 0 {
        number -= 1;
        times.push(request(&controller, number).await / 1e3);
    }
    finish(controller).await;
    quantile(&mut times, 0.99)
}

/// Seconds for a new spec of each resource, each acknowledged before the next.
async fn update_specs() -> Vec<f64> {
    let controller = at_rest(COUNT, LOOSE).await;
    let mut samples = Vec::new();
    for round in 0..SAMPLES {
        let started = Instant::now();
        for number in 0..COUNT {
            let update = Update {
                spec: Some((vec![u8::try_from(round).unwrap_or(0) + 1].into(), 0)),
                ..Update::default()
            };
            let updated = controller.update(key(number), update).await;
            updated.expect("the update is taken");
        }
        samples.push(started.elapsed().as_secs_f64());
        idle(&controller).await;
    }
    finish(controller).await;
    samples
}

/// Seconds for as many bare round trips as there are updates, from a task to another and back: what no call that is
/// answered by another task can go below.
async fn round_trips() -> Vec<f64> {
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let (ask, mut asked) = mpsc::channel::<(usize, oneshot::Sender<usize>)>(1_024);
        let answering = tokio::spawn(async move {
            while let Some((number, reply)) = asked.recv().await {
                let _ = reply.send(number);
            }
        });
        let started = Instant::now();
        for number in 0..COUNT {
            let (reply, answer) = oneshot::channel();
            ask.send((number, reply)).await.expect("it is taken");
            answer.await.expect("it is answered");
        }
        samples.push(started.elapsed().as_secs_f64());
        drop(ask);
        answering.await.expect("the other task ends");
    }
    samples
}

/// Seconds for a batch in which every resource takes the name of the next: one long chain that closes.
async fn renames() -> Vec<f64> {
    let controller = at_rest(COUNT, LOOSE).await;
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let edits = (0..COUNT).map(|number| {
            let next = Name::new(name((number + 1) % COUNT));
            Edit::rename(key(number), next)
        });
        let batch = Batch {
            edits: edits.collect(),
        };
        let started = Instant::now();
        controller.edit(batch).await.expect("the batch is taken");
        idle(&controller).await;
        samples.push(started.elapsed().as_secs_f64());
    }
    finish(controller).await;
    samples
}

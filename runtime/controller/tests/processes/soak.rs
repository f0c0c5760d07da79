//! Test of random edits, cancels and restarts for minutes: memory stays flat, no task remains, no channel grows.
//!
//! A few times in each life everything settles, and then all queues must be empty. In between, each queue must keep to
//! its bound: see the constants.
//!
//! `WATERSHED_SOAK_S=600 cargo test --release -p watershed-controller --features postgres,sqlite --test processes --
//! --ignored --nocapture soak`

use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use watershed_controller::stats::{QueueDepth, QueueDepths};
use watershed_controller::store::SqliteStore;
use watershed_controller::watch::Watch;
use watershed_controller::{Batch, Controller, Edit, EditError, Limits, Refusal, Resource, Select};

use crate::task::{SOON, Task, builder, key, reading};

/// Number of resources, each of which reads at most one with a lower number.
const RESOURCES: u32 = 10_000;
/// Duration for which a controller runs before it is started again.
const LIFE: Duration = Duration::from_secs(30);
/// Timeout that is longer than any operation takes on a busy machine.
const LONG: Duration = Duration::from_secs(600);
/// Number of calls in a row between two rests.
const BUSY: u64 = 2_000;
/// Number of watchers that fall behind in every other stretch of calls, and are dropped at the next rest.
const WATCHERS: usize = 8;
/// Maximum number of calls on their way to the loop.
const CALLS: u64 = 1_024;
/// Maximum number of calls without an answer: a state of each resource, if all run while the previous commit is
/// written. The test makes one call at a time, and its dropped calls are forgotten soon.
const ANSWERS: u64 = 2 * RESOURCES as u64;
/// Maximum number of calls in progress whose callers no longer wait for an answer.
const FORGOTTEN: u64 = 64;
/// Maximum number of signals of an invocation at a time: its return, a state, a progress text.
const SIGNALS: u64 = 3;
/// Maximum number of bytes kept for watchers, one change included.
const WATCHED_BYTES: u64 = 17 << 20;
/// Maximum number of bytes kept for later readers while there are no watchers, one change included.
const KEPT_BYTES: u64 = 2 << 20;
/// Number of controller lives in which caches fill before memory is measured.
const WARM: u32 = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes as long as WATERSHED_SOAK_S says, in seconds"]
async fn memory_stays_flat_and_no_task_is_left() {
    let seconds = std::env::var("WATERSHED_SOAK_S").map_or(60, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.db");
    let mut random = SmallRng::seed_from_u64(7);
    let begun = Instant::now();
    let (mut life, mut calls, mut figures) = (0, 0_u64, Vec::new());
    let tasks_at_first = alive();
    while begun.elapsed() < Duration::from_secs(seconds) {
        let controller = builder(SqliteStore::open(&path).await.unwrap())
            .start()
            .await
            .unwrap();
        if life == 0 {
            fill(&controller).await;
        }
        controller.wait_until_idle(LONG).await.unwrap();
        let until = Instant::now() + LIFE.min(Duration::from_secs(seconds) / 5);
        let mut rests = 0;
        while Instant::now() < until {
            let watching = watching(&controller, if rests % 2 == 0 { 0 } else { WATCHERS });
            for _ in 0..BUSY {
                one(&controller, &mut random).await;
                calls += 1;
            }
            controller.wait_until_idle(LONG).await.unwrap();
            keeps_its_bounds(&controller.stats().waiting, watching.len());
            drop(watching);
            nothing_waits(&controller).await;
            rests += 1;
        }
        let (tasks, waiting) = (alive(), controller.stats().waiting);
        controller.shutdown(SOON).await.unwrap();
        drop(controller);
        tokio::task::yield_now().await;
        life += 1;
        figures.push(resident_kb());
        println!(
            "life {life}: {calls} calls, {} kB, {tasks} tasks running, {rests} rests; most {}; {} bytes kept",
            resident_kb(),
            told(&waiting, |queue| queue.most),
            waiting.watched_bytes,
        );
    }
    let left = settled_tasks(tasks_at_first).await;
    println!(
        "{calls} calls in {:?}, {left} tasks left of {tasks_at_first} at first",
        begun.elapsed()
    );
    assert!(left <= tasks_at_first, "{left} tasks are left");
    let warm = figures.get(WARM as usize).or(figures.last()).copied().unwrap();
    let last = figures.last().copied().unwrap();
    assert!(
        last <= warm * 5 / 4,
        "memory grew from {warm} to {last} kB: {figures:?}"
    );
}

async fn fill(controller: &Controller) {
    let edits = (0..RESOURCES).map(|number| {
        let parents = if number % 10 == 0 {
            Vec::new()
        } else {
            vec![format!("{}", number - 1)]
        };
        let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
        Edit::create(reading(&format!("{number}"), &Task::Build("0".into()), &parents))
    });
    let edits = edits.collect();
    controller.edit(Batch { edits }).await.unwrap();
}

/// Opens `count` watches that are never read.
fn watching(controller: &Controller, count: usize) -> Vec<Watch> {
    let watch = || controller.watch(controller.list(Select::new().with_deleted()).revision);
    (0..count).map(|_| watch()).collect()
}

/// Checks that no queue was ever longer than its bound, however busy the controller was.
fn keeps_its_bounds(waiting: &QueueDepths, watchers: usize) {
    let running = Limits::default().concurrency as u64;
    let bounds = [CALLS, ANSWERS, SIGNALS * running + 2, FORGOTTEN, running];
    for ((name, queue), bound) in waiting.queues().into_iter().zip(bounds) {
        assert!(queue.most <= bound, "{name}: {queue:?}, at most {bound} expected");
    }
    let bound = if watchers == 0 { KEPT_BYTES } else { WATCHED_BYTES };
    assert!(
        waiting.watched_bytes <= bound,
        "{waiting:?} with {watchers} watchers"
    );
}

/// Waits until all queues of the settled controller are empty.
async fn nothing_waits(controller: &Controller) {
    let begun = Instant::now();
    loop {
        let waiting = controller.stats().waiting;
        if waiting.queues().iter().all(|(_, queue)| queue.now == 0) {
            return;
        }
        let now = told(&waiting, |queue| queue.now);
        assert!(begun.elapsed() < SOON, "at rest there still wait {now}");
        tokio::task::yield_now().await;
    }
}

fn told(waiting: &QueueDepths, length: fn(QueueDepth) -> u64) -> String {
    let queues = waiting.queues().into_iter();
    let queues: Vec<String> = queues
        .map(|(name, queue)| format!("{name} {}", length(queue)))
        .collect();
    queues.join(", ")
}

/// Makes one random call, such as an edit or a request.
async fn one(controller: &Controller, random: &mut SmallRng) {
    let name = format!("{}", random.random_range(0..RESOURCES));
    let spec = match random.random_range(0..20) {
        0 => Task::Fail("it fails".into()),
        1 => Task::Sleep(random.random_range(100..500), "slept long".into()),
        2 => Task::Sleep(random.random_range(0..20), "slept".into()),
        _ => Task::Build(format!("{}", random.random::<u32>())),
    };
    let refused = match random.random_range(0..10) {
        0..=5 => {
            let update = Edit::update(key(&name), Resource::new_spec(&spec).unwrap());
            controller.edit(update).await.err()
        }
        6 => {
            // Delete and create of one name are one full update; the resource goes on.
            let edits = vec![Edit::delete(key(&name)), Edit::create(reading(&name, &spec, &[]))];
            controller.edit(Batch { edits }).await.err()
        }
        7 => {
            let mut request = controller.reconcile(key(&name)).await.unwrap();
            let _ = request
                .outcome(Duration::from_millis(random.random_range(0..5)))
                .await;
            None
        }
        8 => {
            let _ = controller.cancel(key(&name)).await;
            None
        }
        _ => {
            drop(controller.watch(controller.list(Select::new().with_deleted()).revision));
            let _ = controller.wait_until_idle(Duration::from_millis(1)).await;
            None
        }
    };
    if let Some(EditError::Refused(Refusal::OutcomeUnknown)) = refused {
        panic!("{refused:?}");
    }
}

fn alive() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Returns the number of live tasks, after waiting for surplus ones to end.
async fn settled_tasks(at_first: usize) -> usize {
    let begun = Instant::now();
    while alive() > at_first && begun.elapsed() < SOON {
        tokio::task::yield_now().await;
    }
    alive()
}

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse().ok())
        .unwrap_or(0)
}

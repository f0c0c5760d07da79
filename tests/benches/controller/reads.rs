//! Readers beside a busy loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use watershed_controller::store::MemoryStore;
use watershed_controller::{Handle, Key};
use watershed_tests::measure::{Report, Unit};

use crate::world::{LAYERS, LOOSE, batch, filled, finish, idle, median, name, start};

const COUNT: usize = 100_000;
const READERS: usize = 4;
const SAMPLES: usize = 5;

pub(crate) async fn measure(report: &Report) {
    if report.wants("longest_get_us") {
        let mut samples = Vec::new();
        for _ in 0..SAMPLES {
            samples.push(longest_get().await);
        }
        report.print("longest_get_us", Unit::Microseconds, samples);
    }
    if report.wants("reads_per_s_m") || report.wants("loop_cpu_slowdown") {
        let store = filled(COUNT, LOOSE).await;
        let (mut alone, mut disturbed, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..SAMPLES {
            alone.push(busy(store.clone(), 0).await.0);
            let (cpu, rate) = busy(store.clone(), READERS).await;
            disturbed.push(cpu);
            rates.push(rate / 1e6);
        }
        report.print("reads_per_s_m", Unit::MillionsPerSecond, rates);
        let slowdown = median(disturbed) / median(alone);
        report.print("loop_cpu_slowdown", Unit::Ratio, vec![slowdown]);
    }
}

/// The longest of all reads while a large batch is taken and run.
async fn longest_get() -> f64 {
    let controller = start(MemoryStore::new()).await;
    controller
        .apply(batch(0..1, LOOSE))
        .await
        .expect("the batch is taken");
    idle(&controller).await;
    let (handle, over) = (controller.handle(), Arc::new(AtomicBool::new(false)));
    let reader = {
        let over = Arc::clone(&over);
        thread::spawn(move || {
            let key = Key::new("thing", name(0).as_str());
            let mut longest = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let started = Instant::now();
                handle.get(key.clone()).expect("it is there");
                longest = longest.max(started.elapsed());
            }
            longest
        })
    };
    let all = batch(COUNT..2 * COUNT, |number| {
        let parents = LAYERS(number - COUNT);
        parents.into_iter().map(|parent| parent + COUNT).collect()
    });
    controller.apply(all).await.expect("the batch is taken");
    idle(&controller).await;
    over.store(true, Ordering::Relaxed);
    let longest = reader.join().expect("the reader ends");
    finish(controller).await;
    longest.as_secs_f64() * 1e6
}

/// CPU seconds of the loop's thread from start to idle, and reads in a second beside it.
async fn busy(store: MemoryStore, readers: usize) -> (f64, f64) {
    let (send, handle) = std::sync::mpsc::channel::<Handle>();
    let over = Arc::new(AtomicBool::new(false));
    let looping = {
        let over = Arc::clone(&over);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let controller = start(store).await;
                let _ = send.send(controller.handle());
                let before = thread_cpu();
                idle(&controller).await;
                let cpu = thread_cpu() - before;
                over.store(true, Ordering::Relaxed);
                finish(controller).await;
                cpu
            })
        })
    };
    let handle = handle.recv().expect("the controller starts");
    let (reads, started) = (AtomicU64::new(0), Instant::now());
    thread::scope(|scope| {
        for reader in 0..readers {
            let (handle, over, reads) = (handle.clone(), &over, &reads);
            scope.spawn(move || reads.fetch_add(read(&handle, reader, over), Ordering::Relaxed));
        }
    });
    let rate = reads.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64();
    (looping.join().expect("the loop ends"), rate)
}

/// Reads one resource after the other until it is over.
fn read(handle: &Handle, reader: usize, over: &AtomicBool) -> u64 {
    let keys: Vec<Key> = (0..1_000)
        .map(|number| Key::new("thing", name((number * 97 + reader * 13) % COUNT).as_str()))
        .collect();
    let mut count = 0;
    while !over.load(Ordering::Relaxed) {
        for key in &keys {
            assert!(handle.get(key.clone()).is_ok(), "it is there");
        }
        count += keys.len() as u64;
    }
    count
}

fn thread_cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

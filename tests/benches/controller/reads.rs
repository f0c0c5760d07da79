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
        let samples: Vec<_> = (0..SAMPLES).map(|_| longest_get()).collect();
        for (figure, which) in [("longest_get_us", 0), ("longest_get_with_lost_cores_us", 1)] {
            let times = samples.iter().map(|sample| sample[which].as_secs_f64() * 1e6);
            report.print(figure, Unit::Microseconds, times.collect());
        }
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

/// The longest of all reads while a large batch is taken and run, of those that kept their core and of all.
///
/// The controller has one thread, so that reader and controller have a core each: where threads outnumber cores, a
/// read lasts as long as the system gives its core to another.
fn longest_get() -> [Duration; 2] {
    let (send, handle) = std::sync::mpsc::channel::<Handle>();
    let over = Arc::new(AtomicBool::new(false));
    let working = {
        let over = Arc::clone(&over);
        thread::spawn(move || {
            on_this_thread(async move {
                let controller = start(MemoryStore::new()).await;
                controller
                    .edit(batch(0..1, LOOSE))
                    .await
                    .expect("the batch is taken");
                idle(&controller).await;
                let all = batch(COUNT..2 * COUNT, |number| {
                    let parents = LAYERS(number - COUNT);
                    parents.into_iter().map(|parent| parent + COUNT).collect()
                });
                let _ = send.send(controller.handle());
                controller.edit(all).await.expect("the batch is taken");
                idle(&controller).await;
                over.store(true, Ordering::Relaxed);
                finish(controller).await;
            })
        })
    };
    let handle = handle.recv().expect("the controller starts");
    let key = Key::new("thing", name(0).as_str());
    let (mut kept, mut longest, mut lost_before) = (Duration::ZERO, Duration::ZERO, lost_core());
    while !over.load(Ordering::Relaxed) {
        let started = Instant::now();
        handle.get(key.clone()).expect("it is there");
        let took = started.elapsed();
        longest = longest.max(took);
        if took > kept {
            let lost = lost_core();
            if lost == lost_before {
                kept = took;
            }
            lost_before = lost;
        }
    }
    working.join().expect("the controller ends");
    [kept, longest]
}

/// Returns the number of times that the system gave this thread's core to another one although it had work to do.
fn lost_core() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok())
        .unwrap_or_default()
}

fn on_this_thread<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// CPU seconds of the loop's thread from start to idle, and reads in a second beside it.
async fn busy(store: MemoryStore, readers: usize) -> (f64, f64) {
    let (send, handle) = std::sync::mpsc::channel::<Handle>();
    let over = Arc::new(AtomicBool::new(false));
    let looping = {
        let over = Arc::clone(&over);
        thread::spawn(move || {
            on_this_thread(async move {
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

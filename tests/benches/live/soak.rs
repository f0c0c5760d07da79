//! The aging of a process that keeps 1,000 models converged: first nothing happens, then a file is edited every second
//! while somebody reads in a loop.
//!
//! ```
//! cargo bench -p watershed-tests --bench live -- --soak
//! ```
//!
//! Each half takes `WATERSHED_SOAK_MINUTES` (10). Every minute is told on standard error; the figures at the end are
//! the processor time of an idle minute and, for each half, the memory of its last third over that of its first. Memory
//! is flat where that is at most 1.05. Edits begin some minutes before they are measured: what is at work takes more
//! memory than what is idle, and it takes them to come to that. A reader that meets an error or a part of a table ends
//! the measurement.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::time::sleep;
use watershed::socket::Address;
use watershed_tests::measure::{Report, Unit};

use crate::projects::{Project, thousand};
use crate::start::{Start, ask};

/// Minutes of each half unless `WATERSHED_SOAK_MINUTES` says otherwise.
const MINUTES: usize = 10;
/// Minutes of edits before those that are measured.
const WARM_UP: usize = 3;
/// From one edit to the next.
const PACE: Duration = Duration::from_secs(1);
const MINUTE: usize = 60;
/// Rows of the model that is read.
const BUCKETS: u64 = 20;

pub(crate) fn soak(report: &Report) {
    let minutes = std::env::var("WATERSHED_SOAK_MINUTES").ok();
    let minutes = minutes.map_or(MINUTES, |text| text.parse().unwrap());
    let project = thousand();
    fs::write(project.path().join(project.file), (project.text)(0)).unwrap();
    let mut start = Start::new(&project.path());
    start.settle();
    start.let_go_on();
    idle(report, &start, minutes);
    let answers = Arc::new(AtomicU64::new(0));
    let over = Arc::new(AtomicBool::new(false));
    let reader = read(start.address.clone(), Arc::clone(&answers), Arc::clone(&over));
    edited(report, &start, &project, minutes, &answers);
    assert!(!reader.is_finished(), "the reader met an error, told above");
    over.store(true, Ordering::Relaxed);
    reader.join().unwrap();
    let said = |path: &str| fs::metadata(project.path().join(".watershed/dev").join(path));
    for file in ["catalog.db", "main.duckdb"] {
        let bytes = said(file).map_or(0, |metadata| metadata.len());
        report.print(&format!("soak_{file}"), Unit::Bytes, vec![bytes as f64]);
    }
}

/// Nothing happens.
fn idle(report: &Report, start: &Start, minutes: usize) {
    let (mut memory, mut cpu) = (Vec::new(), Vec::new());
    for minute in 1..=minutes {
        let before = start.cpu_ms();
        let rss = watch(start, |_| ());
        cpu.push(start.cpu_ms() - before);
        memory.push(rss);
        tell(&format!(
            "idle, minute {minute}: {:.0} ms of CPU, {rss:.1} MB",
            cpu[minute - 1]
        ));
    }
    report.print("soak_idle_cpu_ms_a_minute", Unit::Milliseconds, cpu);
    report.print("soak_idle_rss_growth", Unit::Ratio, vec![growth(&memory)]);
}

/// An edit every second.
fn edited(report: &Report, start: &Start, project: &Project, minutes: usize, answers: &AtomicU64) {
    let mut memory = Vec::new();
    let root = project.path();
    for minute in 1..=WARM_UP + minutes {
        let (cpu, read) = (start.cpu_ms(), answers.load(Ordering::Relaxed));
        let rss = watch(start, |second| {
            edit(&root, project, (minute - 1) * MINUTE + second + 1)
        });
        let (cpu, read) = (start.cpu_ms() - cpu, answers.load(Ordering::Relaxed) - read);
        assert!(read > 0, "the reader is answered");
        memory.push(rss);
        tell(&format!(
            "one edit a second, minute {minute}: {cpu:.0} ms of CPU, {rss:.1} MB, {read} answers"
        ));
    }
    let memory = memory.split_off(WARM_UP);
    report.print("soak_edited_rss_growth", Unit::Ratio, vec![growth(&memory)]);
}

/// A minute, second by second; the median of the memory in it.
fn watch(start: &Start, mut each: impl FnMut(usize)) -> f64 {
    let runtime = runtime();
    let begun = Instant::now();
    let mut samples = Vec::new();
    for second in 0..MINUTE {
        each(second);
        let next = PACE * u32::try_from(second + 1).unwrap();
        runtime.block_on(async { sleep(next.saturating_sub(begun.elapsed())).await });
        samples.push(start.rss_mb());
    }
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Edits as people make them: most of the time the model that they work on, now and then one that others read, a
/// mistake and its mending, a file that moves away and back.
fn edit(root: &Path, project: &Project, n: usize) {
    let file = root.join(project.file);
    let (moved, middle) = (root.join("models/moved.sql"), root.join("models/m4_007.sql"));
    match n % 10 {
        3 => {
            let text = fs::read_to_string(&middle).unwrap();
            let (before, rest) = text.split_once("max(a.amount)").unwrap();
            let (_, after) = rest.split_once(" AS amount").unwrap();
            let text = format!("{before}max(a.amount) + {n} AS amount{after}");
            fs::write(&middle, text).unwrap();
        }
        5 => fs::write(
            &file,
            "-- @materialize: true\nSELECT nothing AS edit FROM m5_007\n",
        )
        .unwrap(),
        7 => fs::rename(root.join("models/m9_050.sql"), &moved).unwrap(),
        8 => fs::rename(&moved, root.join("models/m9_050.sql")).unwrap(),
        _ => fs::write(&file, (project.text)(n)).unwrap(),
    }
}

/// Reads in a loop, on a thread of its own, until it is over, or an answer is an error or not that of one edit.
fn read(address: Address, answers: Arc<AtomicU64>, over: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let runtime = runtime();
        let sql = "SELECT count(*), min(edit), max(edit) FROM edited";
        while !over.load(Ordering::Relaxed) {
            let rows = match runtime.block_on(ask(&address, sql)) {
                Ok(rows) => rows,
                Err(error) => return tell(&format!("a reader met an error: {error}")),
            };
            if rows.len() != 1 || rows[0][0] != BUCKETS || rows[0][1] != rows[0][2] {
                return tell(&format!("a reader met a part of a table: {rows:?}"));
            }
            answers.fetch_add(1, Ordering::Relaxed);
            // It reads beside the edits, and is not what is measured.
            runtime.block_on(async { sleep(Duration::from_millis(20)).await });
        }
    })
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

/// The mean of the last third over that of the first.
fn growth(samples: &[f64]) -> f64 {
    let third = samples.len().div_ceil(3);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    mean(&samples[samples.len() - third..]) / mean(&samples[..third])
}

#[allow(clippy::print_stderr, reason = "whoever waits for it wants to see it")]
fn tell(what: &str) {
    eprintln!("{what}");
}

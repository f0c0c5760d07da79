//! Many readers of one stream.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc;
use watershed_tests::measure::{Report, Unit};

use super::projects::models;
use super::{ROUNDS, Served, build, percentile};

/// Commits of one round.
const COMMITS: usize = 20;
/// Models of the build that is watched.
const MODELS: usize = 200;

/// Measures how long the last reader waits, and what the readers cost a build.
pub(crate) async fn readers(report: &Report, number: usize) {
    let served = Served::new(models(MODELS)).await;
    let mut edit = 1;
    build(&served, edit).await;
    let mut alone = Vec::new();
    for _ in 0..ROUNDS {
        edit += 1;
        alone.push(cpu_of(&served, edit).await);
    }
    let (heard, mut hearing) = mpsc::unbounded_channel();
    for reader in 0..number {
        let mut stream = served.client.connect().await.watch().await;
        let heard = heard.clone();
        tokio::spawn(async move {
            let mut buffer = vec![0; 64 << 10];
            let mut text = String::new();
            while let Ok(read) = stream.read(&mut buffer).await
                && read > 0
            {
                text.push_str(&String::from_utf8_lossy(&buffer[..read]));
                for (word, what) in [
                    ("event: listed", Heard::Listed),
                    ("\"health\":\"paused\"", Heard::Pause(reader)),
                ] {
                    if text.contains(word) {
                        let _ = heard.send(what);
                        text.clear();
                    }
                }
                // A word may lie over two reads.
                let keep = (0..=text.len().saturating_sub(32))
                    .rev()
                    .find(|at| text.is_char_boundary(*at));
                text.drain(..keep.unwrap_or(0));
            }
        });
    }
    for _ in 0..number {
        assert_eq!(hearing.recv().await, Some(Heard::Listed));
    }
    let (mut last, mut ratios) = (Vec::new(), Vec::new());
    for alone in alone {
        let mut times = Vec::new();
        for _ in 0..COMMITS {
            times.push(commit(&served, &mut hearing, number).await);
        }
        last.push(percentile(times, 99));
        edit += 1;
        ratios.push(cpu_of(&served, edit).await / alone);
        quiet(&mut hearing).await;
    }
    report.print("watch_1k_p99_ms", Unit::Milliseconds, last);
    report.print("watch_1k_cpu_ratio", Unit::Ratio, ratios);
    served.close().await;
}

/// News that a reader has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Heard {
    Listed,
    Pause(usize),
}

/// Commits something, and returns the milliseconds until the last reader has heard of it.
async fn commit(served: &Served, hearing: &mut mpsc::UnboundedReceiver<Heard>, number: usize) -> f64 {
    let mut connection = served.client.connect().await;
    let path = |verb: &str| format!("{}/resources/model/m1/{verb}", super::PLACE);
    let begun = Instant::now();
    connection.post(&path("pause")).await;
    // A reader may be told of the document and of the status.
    let mut heard = HashSet::new();
    while heard.len() < number {
        heard.insert(hearing.recv().await.unwrap());
    }
    let took = begun.elapsed();
    connection.post(&path("resume")).await;
    quiet(hearing).await;
    took.as_secs_f64() * 1_000.0
}

/// Waits until nobody has heard anything for a while.
async fn quiet(hearing: &mut mpsc::UnboundedReceiver<Heard>) {
    while tokio::time::timeout(Duration::from_millis(300), hearing.recv())
        .await
        .is_ok()
    {}
}

/// Returns the seconds of CPU that this process takes for a build.
async fn cpu_of(served: &Served, edit: usize) -> f64 {
    let before = cpu();
    build(served, edit).await;
    cpu() - before
}

/// Returns the seconds of CPU that this process has taken.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_ascii_whitespace()
        .collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    #[expect(clippy::cast_precision_loss, reason = "it is a hundred")]
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    ticks / per_second
}

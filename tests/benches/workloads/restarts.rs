//! Processes that are killed, one of a thousand at a time.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use watershed_tests::measure::{Report, Unit};

use super::many::{MANY, named};
use super::stand::{Stand, sleeper};
use super::system::{children, parent};

/// The pause between two looks at the children of their parent.
const LOOK_EVERY: Duration = Duration::from_micros(500);
/// The longest wait for a successor.
const LONG: Duration = Duration::from_secs(60);

pub(super) async fn measure(report: &Report) {
    if !["restart_p50_ms", "restart_p99_ms"]
        .iter()
        .any(|figure| report.wants(figure))
    {
        return;
    }
    let stand = Stand::new().await;
    stand.declare(named(|_| sleeper())).await;
    stand.until_ready(MANY, Instant::now()).await;
    stand.idle().await;
    let first = stand.pids();
    let shim = parent(*first.first().unwrap());
    let mut took = Vec::new();
    let mut there = children(shim);
    for pid in first {
        let begun = Instant::now();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        let successor = loop {
            let now = children(shim);
            if let Some(new) = now.difference(&there).next() {
                break *new;
            }
            assert!(begun.elapsed() < LONG, "it starts again");
            tokio::time::sleep(LOOK_EVERY).await;
        };
        took.push(begun.elapsed().as_secs_f64() * 1e3);
        there.remove(&pid);
        there.insert(successor);
    }
    took.sort_by(f64::total_cmp);
    let at = |part: usize| took[took.len() * part / 100];
    report.print("restart_p50_ms", Unit::Milliseconds, vec![at(50)]);
    report.print("restart_p99_ms", Unit::Milliseconds, vec![at(99)]);
    stand.stop().await;
}

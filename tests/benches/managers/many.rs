//! Ten thousand resources that stand side by side.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use watershed_controller::resource::Revision;
use watershed_controller::{Batch, Edit, Key, Select};
use watershed_managers::{Desired, Manager as _, Timed, set_desired};
use watershed_tests::measure::{Report, Unit};

use super::thing::{Shape, Stand, Thing, cpu_ms, declared};

/// The resources.
const MANY: usize = 10_000;
/// The time for which nothing happens.
const IDLE: Duration = Duration::from_secs(30);

pub(super) async fn measure(report: &Report) {
    let figures = [
        "start_10k_s",
        "restart_10k_s",
        "idle_10k_cpu_ms_per_min",
        "observe_10k_cpu_ms",
        "kib_per_resource",
    ];
    if !figures.iter().any(|figure| report.wants(figure)) {
        return;
    }
    let (mut starts, mut restarts) = (Vec::new(), Vec::new());
    let mut last = None;
    for _ in 0..3 {
        let (stand, took) = started().await;
        starts.push(took.as_secs_f64());
        let written = revision(&stand);
        let (stand, took) = stand.restart().await;
        restarts.push(took.as_secs_f64());
        assert_eq!(revision(&stand), written, "a start writes nothing");
        last = Some(stand);
    }
    report.print("start_10k_s", Unit::Seconds, starts);
    report.print("restart_10k_s", Unit::Seconds, restarts);
    let Some(stand) = last else { return };
    let before = cpu_ms();
    tokio::time::sleep(IDLE).await;
    let idle = (cpu_ms() - before) * 60.0 / IDLE.as_secs_f64();
    report.print("idle_10k_cpu_ms_per_min", Unit::Milliseconds, vec![idle]);
    let looks = stand.thing.0.looks.load(Ordering::Relaxed);
    let before = cpu_ms();
    for number in 0..MANY {
        stand.controller.nudge(key(number)).await.unwrap();
    }
    stand.idle().await;
    let used = cpu_ms() - before;
    assert!(
        stand.thing.0.looks.load(Ordering::Relaxed) >= looks + MANY as u64,
        "each was looked at"
    );
    report.print("observe_10k_cpu_ms", Unit::Milliseconds, vec![used]);
    if report.wants("kib_per_resource") {
        memory(report, stand).await;
    }
}

/// Eight more changes of the stage of each, and what that has added to memory: a restart leaves nothing else behind.
async fn memory(report: &Report, stand: Stand) {
    let before = rss_kib();
    for stage in ["prepared", "active"].into_iter().cycle().take(8) {
        for number in 0..MANY {
            set_desired(&stand.controller.handle(), key(number), stage.into())
                .await
                .unwrap();
        }
        stand.idle().await;
    }
    let (_stand, _) = stand.restart().await;
    let added = rss_kib().saturating_sub(before) as f64 / MANY as f64;
    report.print("kib_per_resource", Unit::Kibibytes, vec![added]);
}

async fn started() -> (Stand, Duration) {
    let stand = Stand::new().await;
    let window = Timed::once("2020-01-01T00:00", "2099-01-01T00:00");
    let desired = || Desired::stage("active").within(window.clone());
    let new = (0..MANY).map(|number| declared(&format!("t{number}"), desired(), Shape::default()));
    let batch = Batch {
        edits: new.map(Edit::create).collect(),
    };
    let begun = Instant::now();
    stand.controller.edit(batch).await.unwrap();
    stand.idle().await;
    let took = begun.elapsed();
    (stand, took)
}

fn revision(stand: &Stand) -> Revision {
    stand.controller.list(Select::all()).revision
}

fn key(number: usize) -> Key {
    Key::new(Thing::KIND, format!("t{number}").as_str())
}

fn rss_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse().unwrap()
}

//! A thousand services of one process.

use std::fs::OpenOptions;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use watershed_proto::{HealthCheck, Port, ServiceSpec, TcpCheck};
use watershed_tests::measure::{Report, Unit, time};

use super::stand::{COMMAND, Stand, sleeper};
use super::system::{children, cpu_ms, own, parent, pss_kib};

/// The services.
pub(super) const MANY: usize = 1_000;
/// Rounds.
const ROUNDS: usize = 5;
/// The time that a process has to live until it is running.
const MIN_LIFE: Duration = Duration::from_millis(750);
/// The time for which processor time is counted.
const QUIET: Duration = Duration::from_secs(30);

pub(super) async fn measure(report: &Report) {
    let figures = [
        "start_1k_s",
        "start_1k_over_floor",
        "adopt_1k_s",
        "idle_1k_cpu_ms_per_min",
        "kib_per_service",
    ];
    if figures.iter().any(|figure| report.wants(figure)) {
        unchecked(report).await;
    }
    if report.wants("checked_1k_cpu_ms_per_min") {
        checked(report).await;
    }
}

async fn unchecked(report: &Report) {
    let (mut starts, mut over, mut adopted) = (Vec::new(), Vec::new(), Vec::new());
    let (mut idle, mut memory) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let floor = floor();
        let stand = Stand::new().await;
        // The first service starts the parent, whose own memory is no service's.
        stand.declare([("first".to_owned(), sleeper())].into_iter()).await;
        stand.until_ready(1, Instant::now()).await;
        let shim = parent(*stand.pids().first().unwrap());
        let before = pss_kib(own()) + pss_kib(shim);
        let begun = Instant::now();
        stand.declare(named(|_| sleeper())).await;
        let took = stand.until_ready(MANY + 1, begun).await;
        starts.push(took.as_secs_f64());
        over.push((took.saturating_sub(MIN_LIFE)).as_secs_f64() / floor.as_secs_f64());
        stand.idle().await;
        memory.push((pss_kib(own()) + pss_kib(shim) - before) / MANY as f64);
        if round == 0 {
            idle.push(cpu_per_minute(shim).await);
        }
        let there = children(shim);
        let begun = Instant::now();
        let stand = stand.restart().await;
        stand.until_ready(MANY + 1, begun).await;
        stand.idle().await;
        adopted.push(begun.elapsed().as_secs_f64());
        assert_eq!(children(shim), there, "none is started");
        stand.stop().await;
    }
    report.print("start_1k_s", Unit::Seconds, starts);
    report.print("start_1k_over_floor", Unit::Ratio, over);
    report.print("adopt_1k_s", Unit::Seconds, adopted);
    report.print("idle_1k_cpu_ms_per_min", Unit::Milliseconds, idle);
    // In later rounds the program has memory that it has been given already.
    memory.truncate(1);
    report.print("kib_per_service", Unit::Kibibytes, memory);
}

async fn checked(report: &Report) {
    let stand = Stand::new().await;
    stand.declare(named(|_| with_check())).await;
    stand.until_ready(MANY, Instant::now()).await;
    // Connections wait to be taken, which answers a check.
    let ports = stand.replicas().into_iter().map(|record| record.ports["PORT"]);
    let listeners: Vec<TcpListener> = ports
        .map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap())
        .collect();
    stand.idle().await;
    let shim = parent(*stand.pids().first().unwrap());
    let used = cpu_per_minute(shim).await;
    report.print("checked_1k_cpu_ms_per_min", Unit::Milliseconds, vec![used]);
    drop(listeners);
    stand.stop().await;
}

fn with_check() -> ServiceSpec {
    let mut spec = sleeper();
    spec.program.as_mut().unwrap().ports = vec![Port {
        name: "PORT".into(),
        ..Port::default()
    }];
    spec.checks = vec![HealthCheck {
        tcp: Some(TcpCheck { port: "PORT".into() }),
        interval_ms: 10_000,
        timeout_ms: 2_000,
        threshold: 3,
        on_failure: "alert".into(),
        ..HealthCheck::default()
    }];
    spec
}

pub(super) fn named(spec: impl Fn(usize) -> ServiceSpec) -> impl Iterator<Item = (String, ServiceSpec)> {
    (0..MANY).map(move |number| (format!("s{number}"), spec(number)))
}

/// Processor time of this program and the parent of the processes.
async fn cpu_per_minute(shim: i32) -> f64 {
    let used = || cpu_ms(own()) + cpu_ms(shim);
    let before = used();
    tokio::time::sleep(QUIET).await;
    (used() - before) * 60.0 / QUIET.as_secs_f64()
}

/// The same processes, spawned in a loop: each with a file for its output, in a group of its own.
fn floor() -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let (took, mut all) = time(|| {
        let spawn = |number: usize| {
            let place = folder.path().join(number.to_string());
            std::fs::create_dir(&place).unwrap();
            let mut options = OpenOptions::new();
            options.append(true).create(true);
            let output = options.open(place.join("1.log")).unwrap();
            let mut command = Command::new(COMMAND[0]);
            command.args(&COMMAND[1..]).stdin(Stdio::null()).process_group(0);
            command.stdout(output.try_clone().unwrap()).stderr(output);
            command.spawn().unwrap()
        };
        (0..MANY).map(spawn).collect::<Vec<_>>()
    });
    for child in &mut all {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    took
}

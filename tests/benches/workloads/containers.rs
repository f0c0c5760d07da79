//! Starts of containers, beside the engine's own program.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _};
use watershed_tests::docker::{Engine, IMAGE};
use watershed_tests::measure::{Report, Unit};
use watershed_workloads::Connect as _;
use watershed_workloads::backend::docker::{Address, Containers};
use watershed_workloads::backend::{Backend, Container, Limits, Phase, Program, Pull, Start, StartId};

/// Containers of a round, and those that are started at once.
const CONTAINERS: usize = 20;
const AT_ONCE: usize = 8;
const ROUNDS: usize = 3;
/// Longer than it takes.
const LONG: Duration = Duration::from_secs(300);

pub(super) async fn measure(report: &Report) {
    if !report.wants("docker_start_over_cli") {
        return;
    }
    let Some(engine) = Engine::start() else {
        eprintln!("docker_start_over_cli: not measured, as no container engine can be started here");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let containers = Containers::new(folder.path(), Address::from_host(Some(&engine.host())));
    let backend = containers.connect(1).unwrap();
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let ours = by_backend(&backend, round).await;
        remove_all(&engine);
        let theirs = by_program(&engine.host()).await;
        remove_all(&engine);
        ratios.push(ours.as_secs_f64() / theirs.as_secs_f64());
    }
    report.print("docker_start_over_cli", Unit::Ratio, ratios);
}

/// Starts containers by the backend, until all run.
async fn by_backend(backend: &Arc<dyn Backend>, round: usize) -> Duration {
    let begun = Instant::now();
    let mut news = backend.news();
    stream::iter(0..CONTAINERS)
        .map(|number| backend.start(start(round, number)))
        .buffer_unordered(AT_ONCE)
        .for_each(|started| async {
            started.unwrap();
        })
        .await;
    loop {
        let listed = backend.list().await.unwrap();
        let running = listed.iter().filter(|one| one.phase == Phase::Running);
        if running.count() == CONTAINERS {
            return begun.elapsed();
        }
        assert!(begun.elapsed() < LONG, "containers run");
        let _ = tokio::time::timeout(Duration::from_millis(100), news.recv()).await;
    }
}

fn start(round: usize, number: usize) -> Start {
    Start {
        id: StartId::new(&format!("r{round}c{number}"), 1).unwrap(),
        program: Program::Container(Container {
            image: IMAGE.into(),
            pull: Pull::Never,
            entrypoint: vec!["/bin/sh".into(), "-c".into()],
            command: vec!["sleep 1000".into()],
            cwd: None,
            network: "none".into(),
            mounts: Vec::new(),
            ports: Vec::new(),
        }),
        environment: Vec::new(),
        limits: Limits::default(),
        output: None,
    }
}

/// Starts containers by the engine's program, which returns when one runs.
async fn by_program(host: &str) -> Duration {
    let begun = Instant::now();
    stream::iter(0..CONTAINERS)
        .map(|_| {
            let host = host.to_owned();
            tokio::task::spawn_blocking(move || docker(&host, &RUN))
        })
        .buffer_unordered(AT_ONCE)
        .for_each(|done| async {
            done.unwrap();
        })
        .await;
    begun.elapsed()
}

const RUN: [&str; 7] = [
    "run",
    "-d",
    "--network=none",
    IMAGE,
    "/bin/sh",
    "-c",
    "sleep 1000",
];

fn docker(host: &str, arguments: &[&str]) {
    let done = Command::new("docker")
        .env("DOCKER_HOST", host)
        .args(arguments)
        .stdout(Stdio::null())
        .status();
    assert!(done.unwrap().success(), "docker {arguments:?}");
}

fn remove_all(engine: &Engine) {
    for container in engine.containers() {
        let id = container["Id"].as_str().unwrap_or_default().to_owned();
        docker(&engine.host(), &["rm", "-f", &id]);
    }
}

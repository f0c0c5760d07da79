//! The backend of containers against a real engine: what it promises, whoever dies (rules W3, W7, W13, W14, W17, W19).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use watershed_tests::docker::{Engine, IMAGE};
use watershed_workloads::Connect as _;
use watershed_workloads::backend::docker::{Address, Containers, Part};
use watershed_workloads::backend::{
    Backend, Container, End, Error, Limits, Mount, News, Observation, Output, Phase, Program, Pull, Start,
    StartId, Stop, Then,
};
use watershed_workloads::policy::exit::{Exit, StartFailure};

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn connect(engine: &Engine, folder: &Path, epoch: u64) -> (Containers, Arc<dyn Backend>) {
    let containers = Containers::new(folder, Address::from_host(Some(&engine.host())));
    let backend = containers.connect(epoch).expect("nothing is asked yet");
    (containers, backend)
}

fn id(uid: &str, counter: u64) -> StartId {
    StartId::new(uid, counter).expect("it is a start id")
}

/// A container without a network that runs a text in its shell.
fn start(uid: &str, counter: u64, run: &str) -> Start {
    Start {
        id: id(uid, counter),
        program: Program::Container(Container {
            image: IMAGE.into(),
            pull: Pull::Never,
            entrypoint: vec!["/bin/sh".into(), "-c".into()],
            command: vec![run.into()],
            cwd: None,
            network: "none".into(),
            mounts: Vec::new(),
            ports: Vec::new(),
        }),
        environment: Vec::new(),
        limits: Limits::default(),
        output: Some(Output {
            path: "/unused".into(),
            max_size: 1_000_000,
            keep: 1,
        }),
    }
}

fn with(mut start: Start, change: impl FnOnce(&mut Container)) -> Start {
    if let Program::Container(container) = &mut start.program {
        change(container);
    }
    start
}

fn stop(uid: &str, counter: u64, grace: Duration, then: Then) -> Stop {
    Stop {
        id: id(uid, counter),
        signal: "TERM".into(),
        grace_ms: u64::try_from(grace.as_millis()).expect("it is short"),
        then,
    }
}

async fn observed(backend: &dyn Backend, wanted: &StartId) -> Option<Observation> {
    let listed = backend.list().await.unwrap_or_default();
    listed.into_iter().find(|one| one.id == *wanted)
}

/// Waits until something holds of a start, which news tell.
async fn reaches(
    backend: &dyn Backend,
    wanted: &StartId,
    holds: impl Fn(Option<&Phase>) -> bool,
) -> Option<Observation> {
    let mut news = backend.news();
    let begun = Instant::now();
    loop {
        let found = observed(backend, wanted).await;
        if holds(found.as_ref().map(|one| &one.phase)) {
            return found;
        }
        assert!(begun.elapsed() < LONG, "waited in vain: {found:?}");
        let _ = tokio::time::timeout(Duration::from_secs(2), news.recv()).await;
    }
}

async fn runs(backend: &dyn Backend, wanted: &StartId) -> Observation {
    reaches(backend, wanted, |phase| phase == Some(&Phase::Running))
        .await
        .expect("it is there")
}

async fn ends(backend: &dyn Backend, wanted: &StartId) -> End {
    let found = reaches(backend, wanted, |phase| {
        matches!(phase, Some(Phase::Ended { .. }))
    })
    .await;
    match found.map(|one| one.phase) {
        Some(Phase::Ended { end, .. }) => end,
        other => panic!("{other:?}"),
    }
}

async fn fails(backend: &dyn Backend, start: Start) -> StartFailure {
    let wanted = start.id.clone();
    backend.start(start).await.expect("the engine answers");
    let found = reaches(backend, &wanted, |phase| {
        matches!(phase, Some(Phase::NotStarted { .. }))
    })
    .await;
    backend.forget(wanted, true).await.expect("it is over");
    match found.map(|one| one.phase) {
        Some(Phase::NotStarted { failure, .. }) => failure,
        other => panic!("{other:?}"),
    }
}

/// The last lines of an output, as they are now.
fn last(limit: usize) -> Part {
    Part {
        limit,
        since: None,
        follow: false,
    }
}

/// W7, W13: a start id makes one container, whoever asks how often; its end is a code, a signal or out of memory, and stays
/// until it is forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_makes_one_container_and_its_end_stays_until_it_is_counted() {
    let Some(engine) = Engine::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (containers, backend) = connect(&engine, folder.path(), 1);
    assert!(backend.list().await.unwrap().is_empty());
    let order = start("a", 1, "echo said; echo so >&2; exit 3");
    let (first, second) = tokio::join!(backend.start(order.clone()), backend.start(order.clone()));
    assert_eq!(first.unwrap().id, second.unwrap().id);
    assert_eq!(ends(&*backend, &id("a", 1)).await, End::Exit(Exit::Code(3)));
    let again = backend.start(order.clone()).await.unwrap();
    assert!(matches!(again.phase, Phase::Ended { .. }), "{again:?}");
    assert_eq!(engine.containers().len(), 1);

    // Another program finds it, and does not start it again either.
    drop(backend);
    let (_, backend) = connect(&engine, folder.path(), 2);
    assert_eq!(ends(&*backend, &id("a", 1)).await, End::Exit(Exit::Code(3)));
    backend.start(order.clone()).await.unwrap();
    assert_eq!(engine.containers().len(), 1);
    backend.forget(id("a", 1), false).await.unwrap();
    assert_eq!(observed(&*backend, &id("a", 1)).await, None);
    assert!(
        matches!(backend.start(order).await, Err(Error::Superseded { .. })),
        "never again"
    );
    let mut kept = containers.output("a", 1, last(10)).await.unwrap().unwrap();
    let mut lines = kept.all().await.unwrap();
    lines.sort();
    assert_eq!(lines, ["said", "so"], "its output is kept");

    backend
        .start(start("a", 2, "sh -c 'kill -9 $$'; exit $?"))
        .await
        .unwrap();
    assert_eq!(ends(&*backend, &id("a", 2)).await, End::Exit(Exit::Signal(9)));
    backend.forget(id("a", 2), false).await.unwrap();
    assert_eq!(engine.containers().len(), 1, "that of the last start alone");
    let mut hungry = start("m", 1, "x=aaaaaaaa; while true; do x=$x$x; done");
    hungry.limits.memory = Some(16 << 20);
    backend.start(hungry).await.unwrap();
    assert_eq!(ends(&*backend, &id("m", 1)).await, End::Exit(Exit::OutOfMemory));
    backend.forget(id("m", 1), true).await.unwrap();
    backend.forget(id("a", 2), true).await.unwrap();
    assert!(engine.containers().is_empty());
}

/// W3, W14: a stop is a signal, the grace period and a kill, and nobody waits for it. What it orders outlives the program.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_returns_at_once_and_is_carried_out_whoever_dies() {
    let Some(engine) = Engine::start() else { return };
    engine.add_image("scratch:1");
    let folder = tempfile::tempdir().unwrap();
    let (_, backend) = connect(&engine, folder.path(), 1);
    let deaf = "trap '' TERM; while true; do sleep 1; done";
    let heeding = "trap 'exit 7' TERM; while true; do sleep 0.1; done";
    backend.start(start("heeds", 1, heeding)).await.unwrap();
    backend.start(start("deaf", 1, deaf)).await.unwrap();
    let scratch = with(start("left", 1, deaf), |container| {
        container.image = "scratch:1".into()
    });
    backend.start(scratch).await.unwrap();
    for uid in ["heeds", "deaf", "left"] {
        runs(&*backend, &id(uid, 1)).await;
    }
    assert_eq!(engine.volumes(), 1);

    let stopped = backend
        .stop(stop("heeds", 1, LONG, Then::Keep))
        .await
        .unwrap()
        .unwrap();
    assert!(stopped.stopping);
    assert_eq!(ends(&*backend, &id("heeds", 1)).await, End::Exit(Exit::Code(7)));
    assert!(
        observed(&*backend, &id("heeds", 1)).await.unwrap().stopping,
        "it was meant"
    );

    let begun = Instant::now();
    backend.stop(stop("deaf", 1, LONG, Then::Keep)).await.unwrap();
    backend
        .stop(stop("left", 1, Duration::from_secs(2), Then::ForgetWithOutput))
        .await
        .unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10), "nobody waits");
    assert!(backend.stops_within().is_some());
    // A second order shortens the first.
    backend
        .stop(stop("deaf", 1, Duration::from_millis(50), Then::Keep))
        .await
        .unwrap();
    assert_eq!(ends(&*backend, &id("deaf", 1)).await, End::Exit(Exit::Signal(9)));
    reaches(&*backend, &id("left", 1), |phase| phase.is_none()).await;
    assert_eq!(engine.volumes(), 0, "anonymous volumes go with it");

    // The next one goes on with what this one was about to do.
    backend.start(start("left", 2, deaf)).await.unwrap();
    runs(&*backend, &id("left", 2)).await;
    drop(backend);
    let host = engine.host();
    let path = folder.path().to_owned();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let containers = Containers::new(&path, Address::from_host(Some(&host)));
            let backend = containers.connect(2).unwrap();
            let order = stop("left", 2, Duration::from_secs(3), Then::ForgetWithOutput);
            backend.stop(order).await.unwrap();
        });
        // Dropped with all its tasks, as a kill would end them.
        runtime.shutdown_background();
    })
    .join()
    .unwrap();
    let (_, backend) = connect(&engine, folder.path(), 3);
    assert!(
        observed(&*backend, &id("left", 2))
            .await
            .is_none_or(|one| one.stopping)
    );
    reaches(&*backend, &id("left", 2), |phase| phase.is_none()).await;
    backend.forget(id("deaf", 1), true).await.unwrap();
    backend.forget(id("heeds", 1), true).await.unwrap();
    assert!(engine.containers().is_empty());
}

/// W7: what can't be started for good is told from what may pass.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_can_not_be_started_says_why() {
    let Some(engine) = Engine::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_, backend) = connect(&engine, folder.path(), 1);
    let command = |counter, words: &[&str]| {
        with(start("a", counter, ""), |container| {
            container.entrypoint = words.iter().map(ToString::to_string).collect();
            container.command.clear();
        })
    };
    let changed = |counter, change: fn(&mut Container)| with(start("a", counter, "true"), change);
    let cases: [(Start, StartFailure); 10] = [
        (
            changed(1, |one| one.image = "none:1".into()),
            StartFailure::ImageMissing,
        ),
        (command(2, &["no-such-program"]), StartFailure::ProgramMissing),
        (command(3, &["/no/such/program"]), StartFailure::ProgramMissing),
        (command(4, &["/tmp"]), StartFailure::NotExecutable),
        (
            changed(5, |one| one.cwd = Some("tmp".into())),
            StartFailure::BadFolder,
        ),
        (
            changed(6, |one| {
                one.mounts.push(Mount {
                    from: "/no/such/folder".into(),
                    to: "/data".into(),
                    read_only: true,
                });
            }),
            StartFailure::BadFolder,
        ),
        (
            changed(7, |one| one.network = "no-such-network".into()),
            StartFailure::EngineRefused,
        ),
        (
            changed(8, |one| {
                // Nobody listens there.
                one.image = "127.0.0.1:1/none:1".into();
                one.pull = Pull::Missing;
            }),
            StartFailure::PullInterrupted,
        ),
        (
            changed(9, |one| {
                one.image = "Not A Name".into();
                one.pull = Pull::Always;
            }),
            StartFailure::ImageMissing,
        ),
        (
            {
                let mut small = start("a", 10, "true");
                small.limits.memory = Some(1_000);
                small
            },
            StartFailure::EngineRefused,
        ),
    ];
    for (order, expected) in cases {
        let shown = format!("{order:?}");
        assert_eq!(fails(&*backend, order).await, expected, "{shown}");
    }
    assert!(engine.containers().is_empty(), "nothing is left of them");
}

/// W17: a container has what is listed.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_has_the_environment_and_the_folders_that_are_listed_and_no_more() {
    let Some(engine) = Engine::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("in"), "from the host\n").unwrap();
    let (containers, backend) = connect(&engine, folder.path(), 1);
    let run = "env; cat /data/in; touch /data/out || echo refused; cat /proc/self/status";
    let mut order = with(start("a", 1, run), |container| {
        container.cwd = Some("/tmp".into());
        container.mounts.push(Mount {
            from: data.path().to_owned(),
            to: "/data".into(),
            read_only: true,
        });
    });
    order.environment = vec![("LISTED".into(), "a value".into())];
    order.limits.open_files = Some(77);
    backend.start(order).await.unwrap();
    assert_eq!(ends(&*backend, &id("a", 1)).await, End::Exit(Exit::Code(0)));
    let mut output = containers
        .output("a", 1, last(usize::MAX))
        .await
        .unwrap()
        .unwrap();
    let lines = output.all().await.unwrap();
    let names: BTreeSet<&str> = lines
        .iter()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    // What the image and the shell set.
    let own = ["FROM_IMAGE", "HOME", "HOSTNAME", "PATH", "PWD", "SHLVL", "LISTED"];
    assert!(names.is_subset(&own.into()), "{names:?}");
    for expected in [
        "LISTED=a value",
        "PWD=/tmp",
        "from the host",
        "refused",
        "NoNewPrivs:\t1",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected}: {lines:?}");
    }
}

/// W13: of one uid one container lives, and a request of an epoch that is over is refused.
#[tokio::test(flavor = "multi_thread")]
async fn names_and_epochs_keep_others_out() {
    let Some(engine) = Engine::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_, backend) = connect(&engine, folder.path(), 5);
    let wait = "exec sleep 1000";
    backend.start(start("a", 1, wait)).await.unwrap();
    runs(&*backend, &id("a", 1)).await;
    let beside = backend.start(start("a", 2, wait)).await;
    assert_eq!(beside, Err(Error::Occupied { living: id("a", 1) }));
    assert_eq!(backend.forget(id("a", 1), true).await, Err(Error::StillRunning));

    let (_, earlier) = connect(&engine, folder.path(), 4);
    let stale = Error::StaleEpoch { epoch: 4, newest: 5 };
    assert_eq!(earlier.start(start("b", 1, wait)).await, Err(stale.clone()));
    assert_eq!(earlier.stop(stop("a", 1, LONG, Then::Keep)).await, Err(stale));

    // Another state folder has containers of its own.
    let other = tempfile::tempdir().unwrap();
    let (_, others) = connect(&engine, other.path(), 1);
    others.start(start("a", 1, wait)).await.unwrap();
    runs(&*others, &id("a", 1)).await;
    assert_eq!(backend.list().await.unwrap().len(), 1);
    assert_eq!(engine.names("running").len(), 2);

    // Somebody has the name that the next start would have.
    let name = engine.names("running").into_iter().find(|name| {
        let all = engine.containers();
        let own = all.iter().find(|one| one["Names"][0] == format!("/{name}"));
        own.is_some_and(|one| one["Labels"]["watershed.epoch"] == "5")
    });
    let taken = name.unwrap().replace("-a-1", "-c-1");
    engine.create(&taken, &["true"]);
    backend.start(start("c", 1, wait)).await.unwrap();
    runs(&*backend, &id("c", 1)).await;
    assert_eq!(
        engine.names("created"),
        [taken],
        "that of the other is left alone"
    );
}

/// W2, W13: events tell what happens at once; whatever is missed is found by a listing, also after the engine was away.
#[tokio::test(flavor = "multi_thread")]
async fn news_come_by_events_and_a_restart_of_the_engine_loses_nothing() {
    let Some(mut engine) = Engine::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_, backend) = connect(&engine, folder.path(), 1);
    for uid in ["a", "b", "c"] {
        backend.start(start(uid, 1, "exec sleep 1000")).await.unwrap();
        runs(&*backend, &id(uid, 1)).await;
    }
    let named = |uid: &str| {
        let part = format!("-{uid}-1");
        let names = engine.names("running");
        names.into_iter().find(|name| name.ends_with(&part)).unwrap()
    };
    let mut news = backend.news();
    engine.kill(&named("a"), "KILL");
    let told = async {
        loop {
            match news.recv().await.unwrap() {
                News::Ended {
                    id: ended,
                    end,
                    was_stopped,
                    ..
                } => return (ended, end, was_stopped),
                News::Changed(_) | News::Missed => {}
            }
        }
    };
    let told = tokio::time::timeout(LONG, told).await.unwrap();
    assert_eq!(told, (id("a", 1), End::Exit(Exit::Signal(9)), false));
    engine.remove(&named("b"));
    reaches(&*backend, &id("b", 1), |phase| phase.is_none()).await;

    engine.stop();
    let away = backend.list().await;
    assert!(matches!(away, Err(Error::Unreachable { .. })), "{away:?}");
    let refused = backend.start(start("d", 1, "true")).await;
    assert!(refused.is_err_and(|error| error.is_transient()));
    engine.begin();
    let end = ends(&*backend, &id("c", 1)).await;
    assert!(
        matches!(end, End::Exit(Exit::Signal(_) | Exit::Code(_))),
        "{end:?}"
    );
    // Events follow again.
    let mut news = backend.news();
    backend.start(start("d", 1, "exit 4")).await.unwrap();
    assert_eq!(ends(&*backend, &id("d", 1)).await, End::Exit(Exit::Code(4)));
    let ended = async { while !matches!(news.recv().await, Ok(News::Ended { .. })) {} };
    tokio::time::timeout(LONG, ended).await.unwrap();
}

/// W10: commands of checks run inside, and one that does not end is not begun twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_inside_the_container() {
    let Some(engine) = Engine::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_, backend) = connect(&engine, folder.path(), 1);
    let mut order = start("a", 1, "touch /tmp/up; exec sleep 1000");
    order.environment = vec![("NAME".into(), "up".into())];
    backend.start(order).await.unwrap();
    runs(&*backend, &id("a", 1)).await;
    let words = |words: &[&str]| -> Vec<String> { words.iter().map(ToString::to_string).collect() };
    let up = words(&["sh", "-c", "test -f /tmp/$NAME"]);
    let begun = Instant::now();
    while backend.run_inside(&id("a", 1), &up).await != Ok(0) {
        assert!(begun.elapsed() < LONG);
    }
    assert_eq!(backend.run_inside(&id("a", 1), &words(&["false"])).await, Ok(1));
    assert!(backend.run_inside(&id("b", 1), &up).await.is_err());
    let hangs = words(&["sleep", "1000"]);
    let first = id("a", 1);
    let asked = backend.run_inside(&first, &hangs);
    assert!(tokio::time::timeout(Duration::from_secs(1), asked).await.is_err());
    let again = backend.run_inside(&id("a", 1), &hangs).await;
    assert!(again.is_err_and(|error| error.to_string().contains("still runs")));
    assert_eq!(backend.run_inside(&id("a", 1), &up).await, Ok(0), "others go on");
}

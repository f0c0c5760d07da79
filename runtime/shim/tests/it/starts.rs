//! Tests of starts: once per start id, with exactly the ordered environment.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use watershed_shim::protocol::{End, FailureClass, MemoryGuard, Phase, Refusal, Then};
use watershed_shim::{Error, TAG_VARIABLE};

use crate::support::{Rig, exit_of, find, id, pid, stop, text_of};

/// W13: an exit is kept until it is forgotten.
#[tokio::test]
async fn a_program_runs_and_its_exit_code_is_kept_until_it_is_forgotten() {
    let rig = Rig::new();
    let client = rig.client(1);
    let first = id("a", 1);
    client.spawn(rig.order(&first, &["exit", "3"])).await.unwrap();
    let exit = exit_of(&client, &first).await;
    assert_eq!((exit.end, exit.stop), (End::Code(3), None));
    assert_eq!(exit_of(&client, &first).await, exit);
    client.forget(first.clone(), false).await.unwrap();
    assert_eq!(find(&client, &first).await, None);
    client.forget(first, false).await.unwrap();
}

/// W13: `spawn` is idempotent by start id, also for calls at the same time.
#[tokio::test]
async fn one_start_id_starts_one_process_however_often_it_is_asked_for() {
    let rig = Rig::new();
    let client = rig.client(1);
    let first = id("a", 1);
    let file = rig.text("count");
    let order = rig.order(&first, &["run", &file]);
    let calls = (0..10).map(|_| {
        let (client, order) = (client.clone(), order.clone());
        tokio::spawn(async move { pid(&client.spawn(order).await.unwrap()) })
    });
    let mut pids = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        pids.push(call.await.unwrap());
    }
    assert!(pids.iter().all(|other| *other == pids[0]), "{pids:?}");
    text_of(&rig.path("count")).await;
    client
        .stop(stop(&first, "TERM", 5_000, Then::Keep))
        .await
        .unwrap();
    exit_of(&client, &first).await;
    let again = client.spawn(order).await.unwrap();
    assert!(matches!(again.phase, Phase::Exited(_)), "{again:?}");
    assert_eq!(fs::read_to_string(rig.path("count")).unwrap().lines().count(), 1);
}

/// W3: never two processes for a replica, and none for a start that is over.
#[tokio::test]
async fn of_one_uid_one_start_lives_and_no_earlier_one_follows() {
    let rig = Rig::new();
    let client = rig.client(1);
    client.spawn(rig.order(&id("a", 2), &["wait"])).await.unwrap();
    let second = client.spawn(rig.order(&id("a", 3), &["wait"])).await;
    assert!(
        matches!(&second, Err(Error::Refused(Refusal::Occupied { living })) if *living == id("a", 2)),
        "{second:?}"
    );
    client.spawn(rig.order(&id("b", 1), &["wait"])).await.unwrap();
    client
        .stop(stop(&id("a", 2), "TERM", 5_000, Then::Keep))
        .await
        .unwrap();
    exit_of(&client, &id("a", 2)).await;
    let earlier = client.spawn(rig.order(&id("a", 1), &["wait"])).await;
    assert!(
        matches!(&earlier, Err(Error::Refused(Refusal::Superseded { .. }))),
        "{earlier:?}"
    );
    client.spawn(rig.order(&id("a", 3), &["wait"])).await.unwrap();
}

/// W7: failed starts are told apart, each once and for good.
#[tokio::test]
async fn failed_starts_are_classified() {
    let rig = Rig::new();
    let client = rig.client(1);
    let script = rig.path("script");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(rig.path("plain"), "text").unwrap();
    fs::write(rig.path("garbage"), [0_u8, 1, 2, 3]).unwrap();
    fs::set_permissions(rig.path("garbage"), fs::Permissions::from_mode(0o755)).unwrap();
    let (script, plain, garbage) = (rig.text("script"), rig.text("plain"), rig.text("garbage"));
    let long = "x".repeat(200_000);
    let cases: [(&str, Vec<&str>, FailureClass); 10] = [
        ("garbage", vec![&garbage], FailureClass::NotExecutable),
        ("long", vec!["/bin/echo", &long], FailureClass::BadCommand),
        ("path", vec!["/no/such/program"], FailureClass::ProgramMissing),
        ("name", vec!["no-such-program"], FailureClass::ProgramMissing),
        ("script", vec![&script], FailureClass::ProgramMissing),
        ("plain", vec![&plain], FailureClass::NotExecutable),
        ("folder", vec!["/usr/bin"], FailureClass::NotExecutable),
        ("none", vec![], FailureClass::BadCommand),
        ("empty", vec![""], FailureClass::BadCommand),
        ("zero", vec!["/bin/echo", "a\0b"], FailureClass::BadCommand),
    ];
    for (uid, command, class) in cases {
        let mut order = rig.order(&id(uid, 1), &[]);
        order.command = command.into_iter().map(str::to_owned).collect();
        let process = client.spawn(order.clone()).await.unwrap();
        assert!(
            matches!(&process.phase, Phase::Failed(failure) if failure.class == class),
            "{uid}: {process:?}"
        );
        assert_eq!(client.spawn(order).await.unwrap(), process);
    }
    let mut order = rig.order(&id("cwd", 1), &["wait"]);
    order.cwd = rig.path("nowhere");
    let process = client.spawn(order).await.unwrap();
    assert!(matches!(&process.phase, Phase::Failed(failure) if failure.class == FailureClass::BadFolder));
    let mut order = rig.order(&id("output", 1), &["wait"]);
    order.output = Some(rig.output(10, 1));
    fs::write(rig.path("logs"), "no folder").unwrap();
    let process = client.spawn(order).await.unwrap();
    assert!(matches!(&process.phase, Phase::Failed(failure) if failure.class == FailureClass::BadOutput));
    assert!(rig.processes().is_empty());
}

/// W17: environment, group, privileges, standard input.
#[tokio::test]
async fn a_process_gets_what_is_listed_and_nothing_else() {
    let rig = Rig::new();
    let client = rig.client(1);
    let mut order = rig.order(&id("a", 1), &["show", &rig.text("shown")]);
    order.environment.push(("KEY".to_owned(), "value".to_owned()));
    fs::create_dir(rig.path("app")).unwrap();
    order.cwd = rig.path("app");
    client.spawn(order).await.unwrap();
    let shown = text_of(&rig.path("shown")).await;
    let cwd = rig.path("app").canonicalize().unwrap();
    let expected = format!(
        "NoNewPrivs:\t1\ncwd {}\nleads true\nstdin \"\"\nenvironment KEY PATH RIG {TAG_VARIABLE}\n",
        cwd.display()
    );
    assert_eq!(shown, expected);
}

/// W17: a program without a path is looked for in the environment's own `PATH`.
#[tokio::test]
async fn a_name_is_found_in_the_listed_path() {
    let rig = Rig::new();
    let client = rig.client(1);
    let mut order = rig.order(&id("a", 1), &[]);
    order.command = ["sh", "-c", "exit 4"].map(str::to_owned).into();
    client.spawn(order).await.unwrap();
    assert_eq!(exit_of(&client, &id("a", 1)).await.end, End::Code(4));
}

/// W17: the limit of open files is the process's own, not the shim's.
#[tokio::test]
async fn open_files_are_limited() {
    let rig = Rig::new();
    let client = rig.client(1);
    let mut order = rig.order(&id("a", 1), &["files"]);
    order.limits.open_files = Some(40);
    client.spawn(order).await.unwrap();
    let exit = exit_of(&client, &id("a", 1)).await;
    assert!(matches!(exit.end, End::Code(30..=40)), "{exit:?}");
    client.spawn(rig.order(&id("b", 1), &["files"])).await.unwrap();
    assert_eq!(exit_of(&client, &id("b", 1)).await.end, End::Code(251));
    let mut order = rig.order(&id("c", 1), &["wait"]);
    order.limits.open_files = Some(40);
    let process = client.spawn(order).await.unwrap();
    let limits = fs::read_to_string(format!("/proc/{}/limits", pid(&process))).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files"));
    let files: Vec<&str> = files.unwrap().split_whitespace().skip(3).take(2).collect();
    assert_eq!(files, ["40", "40"], "soft and hard, once the start is told");
}

/// W17: memory is limited by a delegated group or by a data limit, and the process says by which.
#[tokio::test]
async fn memory_is_limited_and_the_way_is_told() {
    const MIB: u64 = 1 << 20;
    let rig = Rig::new();
    let client = rig.client(1);
    let take = |uid: &str, limit: u64| {
        let mut order = rig.order(&id(uid, 1), &["memory", &(200 * MIB).to_string()]);
        order.limits.memory = Some(limit);
        order
    };
    let process = client.spawn(take("small", 50 * MIB)).await.unwrap();
    let exit = exit_of(&client, &id("small", 1)).await;
    match process.memory {
        MemoryGuard::DataLimit => assert_eq!(exit.end, End::Code(9)),
        MemoryGuard::Cgroup => assert_eq!(exit.end, End::OutOfMemory),
        MemoryGuard::None => panic!("no limit"),
    }
    client.spawn(take("large", 400 * MIB)).await.unwrap();
    assert_eq!(exit_of(&client, &id("large", 1)).await.end, End::Code(0));
}

/// W13: what may hold a secret is not stored.
#[tokio::test]
async fn neither_environment_nor_command_is_in_the_journal() {
    let rig = Rig::new();
    let client = rig.client(1);
    let mut order = rig.order(&id("a", 1), &["wait", "secret-argument"]);
    order
        .environment
        .push(("KEY".to_owned(), "secret-value".to_owned()));
    client.spawn(order).await.unwrap();
    let journal = fs::read_to_string(rig.journal()).unwrap();
    assert!(journal.contains("a:1"), "{journal}");
    assert!(!journal.contains("secret"), "{journal}");
}

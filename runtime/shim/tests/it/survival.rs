//! Tests of survival when the program, the shim, the state folder or the machine ends.

use std::fs;

use rustix::process::Signal;
use watershed_shim::protocol::{End, Lifetime, Phase, StopReason, Then};
use watershed_shim::{Client, Error, News};

use crate::support::{
    Rig, all, exit_of, find, id, is_alive, kill, pid, signal, stop, text_of, until, until_true,
};

/// W13: a restarted program adopts; an exit in between is there once.
#[tokio::test]
async fn processes_and_exits_outlive_the_program() {
    let rig = Rig::new();
    let client = rig.client(1);
    let process = client.spawn(rig.order(&id("a", 1), &["wait"])).await.unwrap();
    client
        .spawn(rig.order(&id("b", 1), &["exit", "5"]))
        .await
        .unwrap();
    drop(client);
    let next = rig.client(2);
    assert_eq!(exit_of(&next, &id("b", 1)).await.end, End::Code(5));
    let found = find(&next, &id("a", 1)).await.unwrap();
    assert_eq!((pid(&found), found.epoch), (pid(&process), 1));
}

/// W13: after the shim was killed processes are watched, their exits unknown, their stops as thorough as before.
#[tokio::test]
async fn processes_outlive_the_shim_and_are_watched_by_the_next() {
    let rig = Rig::new();
    let client = rig.client(1);
    let mut news = client.news();
    let child = rig.text("child");
    let mut pids = Vec::new();
    for (uid, mode) in [
        ("a", vec!["wait"]),
        ("b", vec!["escape", &child]),
        ("c", vec!["wait"]),
    ] {
        pids.push(pid(&client.spawn(rig.order(&id(uid, 1), &mode)).await.unwrap()));
    }
    let escaped: u32 = text_of(&rig.path("child")).await.parse().unwrap();
    text_of(&rig.path("child.ready")).await;
    kill(client.shim().await.unwrap());
    assert_eq!(news.recv().await.unwrap(), News::Reconnected);
    let found = all(&client).await;
    let adopted = found.values().map(|process| process.phase.clone());
    let expected = pids.iter().map(|pid| Phase::Running {
        pid: *pid,
        adopted: true,
    });
    assert!(adopted.eq(expected), "{found:?}");

    kill(pids[0]);
    let exit = exit_of(&client, &id("a", 1)).await;
    assert_eq!((exit.end, exit.stop), (End::Unknown, None));
    for (uid, pid) in [("b", pids[1]), ("c", pids[2])] {
        client
            .stop(stop(&id(uid, 1), "TERM", 10_000, Then::Keep))
            .await
            .unwrap();
        let exit = exit_of(&client, &id(uid, 1)).await;
        assert_eq!((exit.end, exit.stop), (End::Unknown, Some(StopReason::Ordered)));
        assert!(!is_alive(pid));
    }
    until_true("what escaped is gone, too", || !is_alive(escaped)).await;
}

/// W13: an exit while no shim was there is found by the next one, once.
#[tokio::test]
async fn an_exit_that_nobody_saw_is_unknown_and_stays_as_it_is() {
    let rig = Rig::new();
    let client = rig.client(1);
    let process = client.spawn(rig.order(&id("a", 1), &["wait"])).await.unwrap();
    let shim = client.shim().await.unwrap();
    drop(client);
    kill(shim);
    until_true("the shim is gone", || rig.shims().is_empty()).await;
    kill(pid(&process));
    until_true("the process is gone", || !is_alive(pid(&process))).await;
    let client = rig.client(2);
    let exit = exit_of(&client, &id("a", 1)).await;
    assert_eq!(exit.end, End::Unknown);
    kill(client.shim().await.unwrap());
    assert_eq!(exit_of(&client, &id("a", 1)).await, exit);
}

/// W13: an exit that was stored keeps its code, although the shim died before it told anybody.
#[tokio::test]
async fn an_exit_that_was_stored_is_known_to_the_next_shim() {
    for point in ["shim-exit-within", "shim-exit-after"] {
        let rig = Rig::new();
        let client = rig.dying_client(&format!("{point}=return"));
        let first = client.shim().await.unwrap();
        client
            .spawn(rig.order(&id("a", 1), &["exit", "5"]))
            .await
            .unwrap();
        assert_eq!(exit_of(&client, &id("a", 1)).await.end, End::Code(5), "{point}");
        assert_ne!(client.shim().await.unwrap(), first);
    }
}

/// W13: a process whose pid was never stored is found by its tag, and is the one that was ordered.
#[tokio::test]
async fn a_process_whose_shim_died_before_it_knew_the_pid_is_adopted() {
    let rig = Rig::new();
    let client = rig.dying_client("shim-spawn-after=return");
    let first = client.shim().await.unwrap();
    let order = rig.order(&id("a", 1), &["escape", &rig.text("child")]);
    let process = client.spawn(order).await.unwrap();
    assert!(
        matches!(process.phase, Phase::Running { adopted: true, .. }),
        "{process:?}"
    );
    assert_ne!(client.shim().await.unwrap(), first);
    let child: u32 = text_of(&rig.path("child")).await.parse().unwrap();
    assert_ne!(pid(&process), child, "its child carries the tag, too");
    kill(client.shim().await.unwrap());
    assert_eq!(
        find(&client, &id("a", 1)).await,
        Some(process),
        "its pid is stored now"
    );
}

/// Kills the shim and changes its journal.
async fn with_journal(rig: &Rig, client: Client, change: impl Fn(String) -> String) {
    let shim = client.shim().await.unwrap();
    drop(client);
    kill(shim);
    until_true("the shim is gone", || rig.shims().is_empty()).await;
    let journal = fs::read_to_string(rig.journal()).unwrap();
    let changed = change(journal.clone());
    assert_ne!(journal, changed);
    fs::write(rig.journal(), changed).unwrap();
}

/// W13: a pid alone is no identity: with another start time it is another process.
#[tokio::test]
async fn a_process_that_got_the_pid_of_another_is_neither_adopted_nor_killed() {
    let rig = Rig::new();
    let client = rig.client(1);
    let process = client.spawn(rig.order(&id("a", 1), &["wait"])).await.unwrap();
    let started = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.split(' ').nth(21).map(str::to_owned)
    };
    let wait = || {
        let mut command = std::process::Command::new(crate::support::PROGRAM);
        command.arg("wait").spawn().unwrap()
    };
    let mut other = wait();
    // The clock of starts has a hundred ticks a second.
    while started(other.id()) == started(pid(&process)) {
        other.kill().unwrap();
        other.wait().unwrap();
        other = wait();
    }
    let (before, after) = (pid(&process), other.id());
    kill(before);
    let replace = |journal: String| {
        let exits = journal.lines().filter(|line| !line.contains("\"exit\""));
        let lines = exits.map(|line| line.replace(&format!("\"pid\":{before}"), &format!("\"pid\":{after}")));
        lines.map(|line| line + "\n").collect()
    };
    with_journal(&rig, client, replace).await;
    let client = rig.client(2);
    assert_eq!(exit_of(&client, &id("a", 1)).await.end, End::Unknown);
    client
        .stop(stop(&id("a", 1), "KILL", 0, Then::Forget))
        .await
        .unwrap();
    client.list().await.unwrap();
    assert!(is_alive(after), "it is nobody's process");
    other.kill().unwrap();
    other.wait().unwrap();
}

/// W13: after a reboot nothing lives, and the end is told apart from a crash.
#[tokio::test]
async fn after_a_reboot_everything_has_ended_with_the_machine() {
    let rig = Rig::new();
    let client = rig.client(1);
    client.spawn(rig.order(&id("a", 1), &["wait"])).await.unwrap();
    client
        .spawn(rig.order(&id("b", 1), &["exit", "1"]))
        .await
        .unwrap();
    exit_of(&client, &id("b", 1)).await;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    with_journal(&rig, client, |journal| {
        journal.replace(boot.trim(), "another-boot")
    })
    .await;
    let client = rig.client(2);
    assert_eq!(exit_of(&client, &id("a", 1)).await.end, End::Reboot);
    assert_eq!(exit_of(&client, &id("b", 1)).await.end, End::Code(1));
}

/// W13: what carries a tag of the folder and stands in no journal is killed.
#[tokio::test]
async fn a_process_that_no_journal_knows_is_killed() {
    let rig = Rig::new();
    let client = rig.client(1);
    let process = client.spawn(rig.order(&id("a", 1), &["wait"])).await.unwrap();
    client.spawn(rig.order(&id("b", 1), &["wait"])).await.unwrap();
    let drop_a = |journal: String| {
        let lines = journal.lines().filter(|line| !line.contains("\"a:1\""));
        lines.map(|line| format!("{line}\n")).collect()
    };
    with_journal(&rig, client, drop_a).await;
    let client = rig.client(2);
    let listed = all(&client).await;
    assert_eq!(listed.keys().collect::<Vec<_>>(), [&id("b", 1)]);
    until_true("it is killed", || !is_alive(pid(&process))).await;
    assert!(is_alive(pid(&listed[&id("b", 1)])));
}

/// W13: two clients start one shim.
#[tokio::test]
async fn clients_that_begin_together_share_one_shim() {
    let rig = Rig::new();
    let clients: Vec<_> = (0..8).map(|_| rig.client(1)).collect();
    let calls: Vec<_> = clients
        .iter()
        .map(|client| {
            let client = client.clone();
            tokio::spawn(async move { client.shim().await.unwrap() })
        })
        .collect();
    let mut pids = Vec::new();
    for call in calls {
        pids.push(call.await.unwrap());
    }
    assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
    until_true("the others have left", || rig.shims() == [pids[0]]).await;
}

#[tokio::test]
async fn a_shim_that_cannot_begin_is_reported_at_once_with_its_last_words() {
    let rig = Rig::new();
    let client = rig.client_in_shell("echo no luck today >&2; exit 3;");
    let began = std::time::Instant::now();
    let failed = client.list().await;
    assert!(
        matches!(&failed, Err(Error::Ended(words)) if words == "no luck today"),
        "{failed:?}"
    );
    assert!(began.elapsed() < std::time::Duration::from_secs(5));
}

/// Checks that a shim without process and client ends, and that the next one has its records.
#[tokio::test]
async fn an_unused_shim_ends_and_one_with_a_process_does_not() {
    let rig = Rig::new();
    let client = rig.client(1);
    client
        .spawn(rig.order(&id("a", 1), &["exit", "6"]))
        .await
        .unwrap();
    let process = client.spawn(rig.order(&id("b", 1), &["wait"])).await.unwrap();
    exit_of(&client, &id("a", 1)).await;
    let first = client.shim().await.unwrap();
    drop(client);
    tokio::time::sleep(std::time::Duration::from_millis(3_500)).await;
    assert!(is_alive(first), "something runs");
    kill(pid(&process));
    until_true("it ends by itself", || rig.shims().is_empty()).await;
    let client = rig.client(1);
    assert_eq!(exit_of(&client, &id("a", 1)).await.end, End::Code(6));
    assert_eq!(exit_of(&client, &id("b", 1)).await.end, End::Signal(9));
}

/// W13: without its state folder a process is stopped.
#[tokio::test]
async fn without_its_folder_the_shim_kills_everything_and_ends() {
    let rig = Rig::new();
    let client = rig.client(1);
    let child = rig.text("child");
    client
        .spawn(rig.order(&id("a", 1), &["escape", &child]))
        .await
        .unwrap();
    text_of(&rig.path("child.ready")).await;
    let shim = client.shim().await.unwrap();
    drop(client);
    fs::remove_dir_all(rig.state()).unwrap();
    until_true("everything is gone", || {
        rig.processes().is_empty() && !is_alive(shim)
    })
    .await;
}

#[tokio::test]
async fn a_shim_that_is_told_to_end_stops_everything_first() {
    let rig = Rig::new();
    let client = rig.client(1);
    let process = client.spawn(rig.order(&id("a", 1), &["wait"])).await.unwrap();
    let shim = client.shim().await.unwrap();
    signal(shim, Signal::TERM);
    until_true("both are gone", || !is_alive(shim) && !is_alive(pid(&process))).await;
    // The client starts another one.
    let exit = until("the exit is known", || async {
        match find(&client, &id("a", 1)).await?.phase {
            Phase::Exited(exit) => Some(exit),
            _ => None,
        }
    })
    .await;
    assert_eq!(
        (exit.end, exit.stop),
        (End::Signal(15), Some(StopReason::ShimEnded))
    );
}

/// Checks that a read-only client does not disturb the holder.
#[tokio::test]
async fn a_reader_sees_everything_and_changes_nothing() {
    let rig = Rig::new();
    let client = rig.client(3);
    client.spawn(rig.order(&id("a", 1), &["wait"])).await.unwrap();
    let reader = rig.client_with(None, Lifetime::Lease { ttl_ms: 1 });
    assert_eq!(reader.list().await.unwrap(), client.list().await.unwrap());
    assert!(reader.forget(id("a", 1), false).await.is_err());
    client.spawn(rig.order(&id("b", 1), &["wait"])).await.unwrap();
}

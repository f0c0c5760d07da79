//! Tests of stops: signal, grace period, and no leftovers.

use std::fs;

use watershed_shim::protocol::{End, Phase, Refusal, StopReason, Then};
use watershed_shim::{Client, Error, News};

use crate::support::{PROGRAM, Rig, exit_of, find, id, is_alive, pid, stop, text_of, until_true};

/// W3: an exit after an ordered stop says so, and is told to those who listen.
#[tokio::test]
async fn a_stop_sends_its_signal_and_its_exit_is_known_as_ordered() {
    let rig = Rig::new();
    let client = rig.client(1);
    let mut news = client.news();
    let first = id("a", 1);
    client.spawn(rig.order(&first, &["wait"])).await.unwrap();
    let process = client
        .stop(stop(&first, "TERM", 20_000, Then::Keep))
        .await
        .unwrap();
    assert_eq!(process.unwrap().stopping, Some(StopReason::Ordered));
    let exit = exit_of(&client, &first).await;
    assert_eq!(
        (exit.end, exit.stop),
        (End::Signal(15), Some(StopReason::Ordered))
    );
    let told = news.recv().await.unwrap();
    assert_eq!(told, News::Exited { id: first, exit });
    assert!(news.try_recv().is_err(), "told once");
}

#[tokio::test]
async fn the_first_signal_can_be_chosen_and_a_wrong_one_is_refused() {
    let rig = Rig::new();
    let client = rig.client(1);
    let first = id("a", 1);
    let mut order = rig.order(&first, &["usr1"]);
    order.output = Some(rig.output(1_000, 1));
    client.spawn(order).await.unwrap();
    let wrong = client.stop(stop(&first, "STOP", 0, Then::Keep)).await;
    assert!(
        matches!(wrong, Err(Error::Refused(Refusal::Malformed(_)))),
        "{wrong:?}"
    );
    text_of(&rig.path("logs/out")).await;
    client
        .stop(stop(&first, "USR1", 20_000, Then::Keep))
        .await
        .unwrap();
    assert_eq!(exit_of(&client, &first).await.end, End::Code(7));
}

/// W14: what ignores the signal is killed after its grace, which a second stop can shorten.
#[tokio::test]
async fn a_stubborn_process_is_killed_after_its_grace() {
    let rig = Rig::new();
    let client = rig.client(1);
    for (uid, graces) in [("a", vec![100]), ("b", vec![3_600_000, 0])] {
        let file = format!("{uid}-ready");
        client
            .spawn(rig.order(&id(uid, 1), &["stubborn", &rig.text(&file)]))
            .await
            .unwrap();
        text_of(&rig.path(&file)).await;
        for grace in graces {
            client
                .stop(stop(&id(uid, 1), "TERM", grace, Then::Keep))
                .await
                .unwrap();
        }
        assert_eq!(exit_of(&client, &id(uid, 1)).await.end, End::Signal(9), "{uid}");
    }
}

/// W14: the rest of the group and what has escaped it die with the process, however it ends.
#[tokio::test]
async fn no_descendant_outlives_a_process_that_is_stopped_or_ends() {
    let rig = Rig::new();
    let client = rig.client(1);
    for (uid, mode, grace) in [
        ("group", "group", Some(20_000)),
        ("escaped", "escape", Some(20_000)),
        ("killed", "escape", Some(0)),
        ("crashed", "escape", None),
        ("hidden", "hide", Some(20_000)),
        ("hidden-crashed", "hide", None),
        ("bare", "bare", Some(20_000)),
        ("bare-crashed", "bare", None),
    ] {
        let file = format!("{uid}-child");
        let process = client
            .spawn(rig.order(&id(uid, 1), &[mode, &rig.text(&file)]))
            .await
            .unwrap();
        text_of(&rig.path(&format!("{file}.ready"))).await;
        let child: u32 = text_of(&rig.path(&file)).await.parse().unwrap();
        assert!(is_alive(child));
        match grace {
            Some(grace) => drop(
                client
                    .stop(stop(&id(uid, 1), "TERM", grace, Then::Keep))
                    .await
                    .unwrap(),
            ),
            None => crate::support::kill(pid(&process)),
        }
        exit_of(&client, &id(uid, 1)).await;
        until_true(&format!("the child of {uid} is gone"), || !is_alive(child)).await;
    }
    until_true("nothing is left", || rig.processes().is_empty()).await;
}

/// Starts a mode with a child, and returns the process with the child's pid.
async fn with_child(rig: &Rig, client: &Client, uid: &str, mode: &str) -> (u32, u32) {
    let file = format!("{uid}-child");
    let order = rig.order(&id(uid, 1), &[mode, &rig.text(&file)]);
    let process = client.spawn(order).await.unwrap();
    text_of(&rig.path(&format!("{file}.ready"))).await;
    let child = text_of(&rig.path(&file)).await.parse().unwrap();
    (pid(&process), child)
}

/// Returns the start of a process, in clock ticks since boot.
fn begun(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, after_name) = stat.rsplit_once(") ").unwrap();
    after_name.split(' ').nth(19).unwrap().parse().unwrap()
}

/// Returns the current time in clock ticks since boot, as a process started now would have.
fn begins_now() -> u64 {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let tick = begun(child.id());
    child.wait().unwrap();
    tick
}

/// W14: of several starts only what the ended one has left is killed, as far as anybody can tell whose it is.
#[tokio::test]
async fn what_an_ended_start_has_left_dies_and_what_others_have_started_lives() {
    let rig = Rig::new();
    let client = rig.client(1);
    let (older, of_older) = with_child(&rig, &client, "older", "hide").await;
    let (ended, of_ended) = with_child(&rig, &client, "ended", "hide").await;
    let (bare, of_bare) = with_child(&rig, &client, "bare", "bare").await;
    // The kernel tells when a process began in hundredths of a second: of two in one, neither is known to be older.
    until_true("a process that begins now is younger", || {
        begins_now() > begun(of_bare)
    })
    .await;
    let (newer, of_newer) = with_child(&rig, &client, "newer", "bare").await;
    crate::support::kill(ended);
    until_true("its child is gone", || !is_alive(of_ended)).await;
    crate::support::kill(bare);
    exit_of(&client, &id("bare", 1)).await;
    let living = [of_older, of_newer, older, newer];
    assert!(living.into_iter().all(is_alive));
    // Without a mark it may be of any that is older.
    assert!(is_alive(of_bare));
    crate::support::kill(older);
    until_true("both are gone", || !is_alive(of_older) && !is_alive(of_bare)).await;
    assert!(is_alive(newer) && is_alive(of_newer));
    crate::support::kill(newer);
    until_true("nothing is left", || rig.processes().is_empty()).await;
}

/// W13, W14: whoever is the parent of what is left: the next shim finds it.
#[tokio::test]
async fn what_has_lost_its_tag_is_found_by_the_next_shim() {
    for ends_first in [false, true] {
        let rig = Rig::new();
        let client = rig.client(1);
        let (pid, child) = with_child(&rig, &client, "a", "hide").await;
        let shim = client.shim().await.unwrap();
        drop(client);
        crate::support::kill(shim);
        until_true("the shim is gone", || rig.shims().is_empty()).await;
        if ends_first {
            crate::support::kill(pid);
            until_true("the process is gone", || !is_alive(pid)).await;
        }
        let client = rig.client(1);
        if !ends_first {
            let order = stop(&id("a", 1), "TERM", 20_000, Then::Forget);
            client.stop(order).await.unwrap();
        }
        while find(&client, &id("a", 1))
            .await
            .is_some_and(|found| matches!(found.phase, Phase::Running { .. }))
        {}
        until_true("nothing is left", || {
            !is_alive(child) && rig.processes().is_empty()
        })
        .await;
    }
}

/// W14: a descendant that dropped its tag is still in the group.
#[tokio::test]
async fn a_descendant_without_a_tag_dies_with_its_group() {
    let rig = Rig::new();
    let client = rig.client(1);
    let (child, ready) = (rig.text("child"), rig.text("ready"));
    let script = format!("env -i {PROGRAM} stubborn {ready} & echo $! > {child}; exec {PROGRAM} wait");
    let mut order = rig.order(&id("a", 1), &[]);
    order.command = ["/bin/sh", "-c", &script].map(str::to_owned).into();
    let process = client.spawn(order).await.unwrap();
    let child: u32 = text_of(&rig.path("child")).await.trim().parse().unwrap();
    text_of(&rig.path("ready")).await;
    crate::support::kill(pid(&process));
    until_true("it is gone", || !is_alive(child)).await;
}

/// W14: a delete hands the stop over and returns; record and logs go with the process.
#[tokio::test]
async fn a_stop_for_good_leaves_neither_record_nor_output() {
    let rig = Rig::new();
    let client = rig.client(1);
    for (uid, then, has_logs) in [("a", Then::Forget, true), ("b", Then::ForgetWithOutput, false)] {
        let first = id(uid, 1);
        let mut order = rig.order(&first, &["wait"]);
        order.output = Some(rig.output(1_000, 2));
        let process = client.spawn(order).await.unwrap();
        client
            .stop(stop(&first, "TERM", 5_000, Then::Keep))
            .await
            .unwrap();
        client.stop(stop(&first, "TERM", 5_000, then)).await.unwrap();
        until_true("the process is gone", || !is_alive(pid(&process))).await;
        while find(&client, &first).await.is_some() {}
        until_true("the logs are as ordered", || {
            rig.path("logs").exists() == has_logs
        })
        .await;
        assert_eq!(client.stop(stop(&first, "TERM", 0, then)).await.unwrap(), None);
    }
    client
        .spawn(rig.order(&id("c", 1), &["exit", "0"]))
        .await
        .unwrap();
    exit_of(&client, &id("c", 1)).await;
    client
        .stop(stop(&id("c", 1), "TERM", 0, Then::Forget))
        .await
        .unwrap();
    assert_eq!(find(&client, &id("c", 1)).await, None);
}

/// W14: what a delete began is finished by the next shim.
#[tokio::test]
async fn a_stop_for_good_leaves_nothing_although_the_shim_dies_over_it() {
    for point in [
        "shim-signal-before",
        "shim-exit-within",
        "shim-exit-after",
        "shim-forget-after",
    ] {
        let rig = Rig::new();
        let client = rig.dying_client(&format!("{point}=return"));
        let shim = client.shim().await.unwrap();
        let mut order = rig.order(&id("a", 1), &["wait"]);
        order.output = Some(rig.output(1_000, 2));
        client.spawn(order).await.unwrap();
        let order = stop(&id("a", 1), "TERM", 5_000, Then::ForgetWithOutput);
        client.stop(order).await.unwrap();
        until_true("the shim died", || !is_alive(shim)).await;
        until_true("the logs are gone", || !rig.path("logs").exists()).await;
        assert_eq!(find(&client, &id("a", 1)).await, None, "{point}");
        until_true("the process is gone", || rig.processes().is_empty()).await;
    }
}

#[tokio::test]
async fn a_running_process_is_not_forgotten() {
    let rig = Rig::new();
    let client = rig.client(1);
    let first = id("a", 1);
    client.spawn(rig.order(&first, &["wait"])).await.unwrap();
    let refused = client.forget(first.clone(), true).await;
    assert!(
        matches!(refused, Err(Error::Refused(Refusal::StillRunning))),
        "{refused:?}"
    );
    let process = find(&client, &first).await.unwrap();
    assert!(matches!(process.phase, Phase::Running { .. }));
    assert!(fs::metadata(rig.journal()).is_ok());
}

//! Tests of lifetimes: the fate of processes whose holder is gone.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use watershed_shim::Error;
use watershed_shim::protocol::{End, Lifetime, Phase, Refusal, StopReason};

use crate::support::{Rig, exit_of, find, id, is_alive, kill, pid, until_true};

fn is_stale(result: &Result<impl Sized, Error>) -> bool {
    matches!(result, Err(Error::Refused(Refusal::StaleEpoch { .. })))
}

/// W13: under a lease that can expire everything is killed before another holder may start.
#[tokio::test]
async fn a_lease_that_runs_out_kills_everything_and_ends_its_epoch() {
    let rig = Rig::new();
    let client = rig.client_with(Some(1), Lifetime::Lease { ttl_ms: 1_500 });
    let ready = rig.text("ready");
    let stubborn = client
        .spawn(rig.order(&id("a", 1), &["stubborn", &ready]))
        .await
        .unwrap();
    let renewed = Instant::now();
    while renewed.elapsed() < Duration::from_millis(3_000) {
        client.renew(Duration::from_millis(1_500)).await.unwrap();
        assert!(is_alive(pid(&stubborn)), "a lease that is renewed holds");
        sleep(Duration::from_millis(50)).await;
    }
    until_true("it is killed", || !is_alive(pid(&stubborn))).await;
    let refused = client.spawn(rig.order(&id("b", 1), &["wait"])).await;
    assert!(is_stale(&refused), "{refused:?}");
    assert!(is_stale(&client.renew(Duration::from_secs(1)).await));
    let next = rig.client(2);
    let exit = exit_of(&next, &id("a", 1)).await;
    assert_eq!(
        (exit.end, exit.stop),
        (End::Signal(9), Some(StopReason::LeaseExpired))
    );
    next.spawn(rig.order(&id("b", 1), &["wait"])).await.unwrap();
}

/// W13: a lease that is never renewed ends, too.
#[tokio::test]
async fn a_lease_that_nobody_renews_kills_everything() {
    // A busy machine may take longer than a short lease lasts until the shim has spawned anything.
    for ttl_ms in [400, 2_000, 10_000] {
        let rig = Rig::new();
        let client = rig.client_with(Some(1), Lifetime::Lease { ttl_ms });
        let spawned = client.spawn(rig.order(&id("a", 1), &["wait"])).await;
        if is_stale(&spawned) {
            continue;
        }
        let process = spawned.unwrap();
        until_true("it is killed", || !is_alive(pid(&process))).await;
        assert!(is_stale(&client.forget(id("a", 1), false).await));
        return;
    }
    panic!("no process was spawned within ten seconds");
}

/// W13: some time after a `run` died its processes are killed; a connection in time prevents it.
#[tokio::test]
async fn processes_of_a_connection_end_some_time_after_it() {
    let rig = Rig::new();
    let lifetime = Lifetime::Connected { linger_ms: 2_000 };
    let client = rig.client_with(Some(1), lifetime);
    let process = client.spawn(rig.order(&id("a", 1), &["wait"])).await.unwrap();
    drop(client);
    let again = rig.client_with(Some(1), lifetime);
    again.shim().await.unwrap();
    sleep(Duration::from_millis(2_500)).await;
    assert!(is_alive(pid(&process)), "it is held again");
    let left = Instant::now();
    drop(again);
    until_true("it is killed", || !is_alive(pid(&process))).await;
    assert!(
        left.elapsed() >= Duration::from_millis(1_500),
        "{:?}",
        left.elapsed()
    );
    let next = rig.client(2);
    assert_eq!(
        exit_of(&next, &id("a", 1)).await.stop,
        Some(StopReason::HolderGone)
    );
}

/// W13: the lease goes on when the shim was killed, as soon as there is another one.
#[tokio::test]
async fn a_lease_survives_the_shim_that_kept_it() {
    let rig = Rig::new();
    let client = rig.client_with(Some(1), Lifetime::Lease { ttl_ms: 3_000 });
    let process = client.spawn(rig.order(&id("a", 1), &["wait"])).await.unwrap();
    let shim = client.shim().await.unwrap();
    drop(client);
    kill(shim);
    until_true("the shim is gone", || rig.shims().is_empty()).await;
    let reader = rig.client_with(None, Lifetime::Keep);
    let found = find(&reader, &id("a", 1)).await.unwrap();
    assert!(
        matches!(found.phase, Phase::Running { adopted: true, .. }),
        "{found:?}"
    );
    until_true("it is killed", || !is_alive(pid(&process))).await;
    let exit = exit_of(&reader, &id("a", 1)).await;
    assert_eq!(
        (exit.end, exit.stop),
        (End::Unknown, Some(StopReason::LeaseExpired))
    );
}

/// W13: commands with an epoch below the highest seen are refused, and change nothing; also by the next shim.
#[tokio::test]
async fn a_holder_of_an_earlier_epoch_is_refused() {
    let rig = Rig::new();
    let (earlier, later) = (rig.client(4), rig.client(5));
    earlier.spawn(rig.order(&id("a", 1), &["wait"])).await.unwrap();
    later.list().await.unwrap();
    let refused = earlier.spawn(rig.order(&id("b", 1), &["wait"])).await;
    assert!(is_stale(&refused), "{refused:?}");
    assert!(is_stale(&earlier.forget(id("a", 1), true).await));
    kill(later.shim().await.unwrap());
    let late = rig.client(4);
    assert!(is_stale(&late.list().await), "the next shim knows it, too");
    assert_eq!(later.list().await.unwrap().len(), 1);
}

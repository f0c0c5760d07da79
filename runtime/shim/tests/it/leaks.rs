//! Tests of leaks after many starts and stops.

use std::fs;

use watershed_shim::protocol::Then;

use crate::support::{Rig, id, stop, until, until_true};

/// Returns the number of starts and stops: 100 with `WATERSHED_PROOF=ci`, any number with `WATERSHED_LEAKS`.
fn rounds() -> u64 {
    let number = std::env::var("WATERSHED_LEAKS")
        .ok()
        .and_then(|number| number.parse().ok());
    let is_ci = std::env::var("WATERSHED_PROOF").is_ok_and(|proof| proof == "ci");
    number.unwrap_or(if is_ci { 100 } else { 40 })
}

fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

fn children(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default()
}

/// W14: no process, zombie, descriptor, group or log folder remains, and the journal is small.
#[tokio::test]
async fn starts_and_stops_leave_nothing() {
    let rig = Rig::new();
    let client = rig.client(1);
    let shim = client.shim().await.unwrap();
    let before = descriptors(shim);
    let own = descriptors(std::process::id());
    for round in 0..rounds() {
        let first = id(&format!("u{}", round % 7), round);
        let child = rig.text(&format!("child-{round}"));
        let modes = [
            vec!["wait"],
            vec!["exit", "1"],
            vec!["escape", &child],
            vec!["group", &child],
            vec!["hide", &child],
            vec!["spill"],
        ];
        let mut order = rig.order(&first, &modes[usize::try_from(round % 6).unwrap()]);
        order.limits.memory = (round % 3 == 0).then_some(1 << 30);
        order.output = Some(watershed_shim::protocol::Output {
            path: rig.path(&format!("logs-{}/out", first.uid())),
            max_size: 500,
            keep: 2,
        });
        client.spawn(order).await.unwrap();
        client
            .stop(stop(&first, "TERM", 10_000, Then::ForgetWithOutput))
            .await
            .unwrap();
        // The next start of the uid is refused until this one is gone.
        until("it is forgotten", || async {
            let left = client.list().await.unwrap();
            left.is_empty().then_some(())
        })
        .await;
    }
    until_true("no process remains", || rig.processes().is_empty()).await;
    until_true("no zombie remains", || children(shim).is_empty()).await;
    until_true("no descriptor remains", || descriptors(shim) == before).await;
    assert!(descriptors(std::process::id()) <= own);
    let left: Vec<_> = fs::read_dir(rig.path(""))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    let logs: Vec<_> = left
        .iter()
        .filter(|name| name.to_string_lossy().starts_with("logs"))
        .collect();
    assert!(logs.is_empty(), "{logs:?}");
    assert!(fs::metadata(rig.journal()).unwrap().len() < (1 << 20) + (64 << 10));
}

//! Tests of output, which processes write themselves and the shim bounds.

use std::collections::BTreeMap;
use std::fs;

use watershed_shim::protocol::{End, Then};
use watershed_shim::{left_out, written_since};

use crate::support::{PROGRAM, Rig, exit_of, id, kill, stop, until_true};

/// W19: both outputs go to the file, through no hands of ours, so the end of the shim breaks nothing.
#[tokio::test]
async fn output_goes_on_while_no_shim_is_there() {
    let rig = Rig::new();
    let client = rig.client(1);
    let mut order = rig.order(&id("a", 1), &["spill"]);
    order.output = Some(rig.output(1 << 20, 1));
    client.spawn(order).await.unwrap();
    let path = rig.path("logs/out");
    let size = || fs::metadata(&path).map_or(0, |found| found.len());
    until_true("it writes", || size() > 0).await;
    let shim = client.shim().await.unwrap();
    drop(client);
    kill(shim);
    until_true("the shim is gone", || rig.shims().is_empty()).await;
    let before = size();
    until_true("it writes on", || size() > before + 100).await;
}

/// W19: the length of a file is noted while it grows, by the next shim as well, and the notes go with it.
#[tokio::test]
async fn what_was_written_since_a_time_is_noted_beside_the_file() {
    let rig = Rig::new();
    let client = rig.client(1);
    let mut order = rig.order(&id("a", 1), &["spill"]);
    order.output = Some(rig.output(1 << 20, 1));
    let unix_ms = || {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap();
        u64::try_from(since.as_millis()).unwrap()
    };
    let begun = unix_ms();
    client.spawn(order).await.unwrap();
    let path = rig.path("logs/out");
    until_true("there is a note", || written_since(&path, unix_ms()).is_some()).await;
    let first = written_since(&path, unix_ms()).unwrap();
    let between = unix_ms();
    kill(client.shim().await.unwrap());
    until_true("the next shim notes more", || {
        written_since(&path, unix_ms()).is_some_and(|place| place > first)
    })
    .await;
    assert_eq!(written_since(&path, begun.saturating_sub(1)), None);
    let since = written_since(&path, between).unwrap();
    assert!(
        (first..fs::metadata(&path).unwrap().len()).contains(&since),
        "{since}"
    );
    client
        .stop(stop(&id("a", 1), "TERM", 0, Then::ForgetWithOutput))
        .await
        .unwrap();
    until_true("all of it is gone", || !rig.path("logs").exists()).await;
}

/// W19: a file is copied and truncated at its bound, by the next shim as well, and at the end.
#[tokio::test]
async fn a_file_that_grows_is_truncated_and_copies_are_kept() {
    let rig = Rig::new();
    let client = rig.client(1);
    let mut order = rig.order(&id("a", 1), &["spill"]);
    order.output = Some(rig.output(4_000, 2));
    client.spawn(order).await.unwrap();
    until_true("there is a copy", || rig.path("logs/out.1").exists()).await;
    kill(client.shim().await.unwrap());
    until_true("there are two", || rig.path("logs/out.2").exists()).await;
    client
        .stop(stop(&id("a", 1), "TERM", 0, Then::Keep))
        .await
        .unwrap();
    exit_of(&client, &id("a", 1)).await;
    assert!(!rig.path("logs/out.3").exists());

    let mut order = rig.order(&id("b", 1), &["write", "7000"]);
    order.output = Some(watershed_shim::protocol::Output {
        path: rig.path("more/out"),
        max_size: 4_000,
        keep: 1,
    });
    client.spawn(order).await.unwrap();
    assert_eq!(exit_of(&client, &id("b", 1)).await.end, End::Code(0));
    let size = |name: &str| fs::metadata(rig.path(name)).map_or(0, |found| found.len());
    until_true("it is copied whole", || {
        size("more/out.1") + size("more/out") == 7_000
    })
    .await;
    client.forget(id("b", 1), true).await.unwrap();
    assert!(!rig.path("more").exists());
}

/// Returns the sizes of all output files by name.
fn sizes(rig: &Rig) -> BTreeMap<String, u64> {
    let files = fs::read_dir(rig.path("logs")).into_iter().flatten().flatten();
    let size = |file: fs::DirEntry| {
        let name = file.file_name().to_string_lossy().into_owned();
        Some((name, file.metadata().ok()?.len()))
    };
    files.filter_map(size).collect()
}

/// W19: the bound holds whatever the speed, and nobody has to end for it.
#[tokio::test]
async fn a_process_that_writes_as_fast_as_it_can_leaves_no_more_than_its_bound() {
    const BOUND: u64 = 100_000;
    let rig = Rig::new();
    let client = rig.client(1);
    for (uid, bytes) in [("a", 200_000_000_u64), ("b", u64::MAX)] {
        let mut order = rig.order(&id(uid, 1), &["pour", &bytes.to_string()]);
        order.output = Some(rig.output(BOUND, 3));
        client.spawn(order).await.unwrap();
        if bytes == u64::MAX {
            until_true("there are all copies", || rig.path("logs/out.3").exists()).await;
            client
                .stop(stop(&id(uid, 1), "TERM", 0, Then::Keep))
                .await
                .unwrap();
        }
        exit_of(&client, &id(uid, 1)).await;
        until_true("it was looked at once more", || {
            sizes(&rig).get("out").is_some_and(|size| *size < BOUND)
        })
        .await;
        let sizes = sizes(&rig);
        let is_small = |(name, size): (&String, &u64)| name.contains("times") || *size <= 2 * BOUND + 200;
        assert!(sizes.iter().all(is_small), "{sizes:?}");
        // The last copy may hold the end of what was written, with nothing missing.
        let says = |name: &String| {
            let copy = fs::read(rig.path("logs").join(name));
            copy.is_ok_and(|copy| left_out(&copy).is_some())
        };
        assert!(sizes.keys().any(says), "a copy says what is missing: {sizes:?}");
        client.forget(id(uid, 1), true).await.unwrap();
        assert!(!rig.path("logs").exists());
    }
}

/// W19: where no copy can be made, the file is truncated all the same. The shim may write no file of more than two kilobytes
/// here, and the process may.
#[tokio::test]
async fn a_file_is_truncated_where_there_is_no_room_for_a_copy() {
    let rig = Rig::new();
    let client = rig.client_in_shell("trap '' XFSZ; ulimit -S -f 4;");
    let mut order = rig.order(&id("a", 1), &[]);
    let script = format!("ulimit -S -f unlimited; exec {PROGRAM} spill");
    order.command = ["/bin/sh", "-c", &script].map(str::to_owned).into();
    order.output = Some(rig.output(10_000, 2));
    client.spawn(order).await.unwrap();
    let path = rig.path("logs/out");
    until_true("it is truncated and says so", || {
        let text = fs::read(&path).unwrap_or_default();
        left_out(&text).is_some_and(|found| found.bytes >= 10_000)
    })
    .await;
    assert!(!rig.path("logs/out.1").exists() && !rig.path("logs/out.part").exists());
}

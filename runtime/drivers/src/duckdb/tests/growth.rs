//! Tests of the growth of the file.

use super::*;
use crate::duckdb::checkpoint::checkpoint;
use crate::olap::Upkeep as _;

#[tokio::test(flavor = "multi_thread")]
async fn the_file_stays_within_three_times_its_live_size_over_300_rebuilds() {
    let bench = bench();
    let rebuild = |n: u128, round: u32| {
        let rows = 50_000 + (n as u32 * 7_919 + round * 104_729) % 10_000;
        let sql = format!(
            "select hash(i + {round}) as a, hash(i * {n}) as b, hash(i, {n}) as c from range({rows}) t(i)"
        );
        table(n, &format!("t{n}"), &sql)
    };
    for n in 1..=6 {
        bench.build(rebuild(n, 0)).await.unwrap();
    }
    checkpoint(&bench.engine, &bench.cancel).await.unwrap();
    let on_disk = || {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        size(&bench.path()) + size(&super::super::proof::wal_path(&bench.path()))
    };
    let live = on_disk();
    let done = CancellationToken::new();
    let readers = async {
        let mut read = 0_u64;
        while !done.is_cancelled() {
            let sql = format!("select count(*), max(a) from t{}", read % 6 + 1);
            bench.rows(&sql).await.unwrap();
            read += 1;
        }
        read
    };
    let builders = async {
        let mut largest = 0;
        for round in 1..=150 {
            let (a, b) = (u128::from(round % 6), u128::from((round + 3) % 6));
            let (first, second) = futures::join!(
                bench.build(rebuild(a + 1, round)),
                bench.build(rebuild(b + 1, round))
            );
            first.unwrap();
            second.unwrap();
            largest = largest.max(on_disk());
        }
        done.cancel();
        largest
    };
    let (largest, _, _) = futures::join!(builders, readers, async {});
    println!("live {live}, largest {largest}");
    assert!(largest <= 3 * live, "live {live}, largest {largest}");
    bench.engine.close().await.unwrap();
    assert!(on_disk() <= 2 * live, "live {live}, closed {}", on_disk());
}

#[tokio::test]
async fn room_that_a_build_took_which_was_cut_off_is_given_back() {
    let bench = bench();
    bench.build(table(1, "a", "select 7 as x")).await.unwrap();
    let bench = bench.reopened().await;
    // What such a build leaves behind the blocks that the engine knows.
    let file = std::fs::File::options().write(true).open(bench.path()).unwrap();
    file.set_len(64 << 20).unwrap();
    let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    file.set_permissions(owner_only).unwrap();
    let compacted = bench.engine.compact(&bench.cancel).await.unwrap();
    assert_eq!(compacted.before, 64 << 20);
    assert!(compacted.after < 8 << 20, "{compacted:?}");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(bench.path()).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(bench.one("select x from a").await, "7");
    assert_eq!(bench.listed().await, ["a table 1"]);
}

//! Builds that share a transaction of a lake.

use tokio_util::sync::CancellationToken;
use watershed_conform::Scratch as _;
use watershed_drivers::olap::Build;

use super::builds::table;
use super::lake::{Catalog, LakeFolder};

/// Builds that wait at the same time.
const BUILDS: u128 = 60;

/// A transaction is repeated without a build that fails.
pub(crate) async fn repeat_without_one_that_fails(catalog: &Catalog) {
    let lake = LakeFolder::new(catalog);
    let (engine, cancel) = (lake.open(), CancellationToken::new());
    engine
        .build(&table(1_000, "first", "select 1 as x"), &cancel)
        .await
        .unwrap();
    let hand = lake.address.by_hand();
    let snapshots = || {
        hand.lines("SELECT snapshot_id FROM ducklake_snapshots('theirs')")
            .len()
    };
    let before = snapshots();
    let sql = |n: u128| match n {
        30 => "select error('no') as x".to_owned(),
        _ => format!("select {n} as x"),
    };
    let builds: Vec<Build> = (1..=BUILDS)
        .map(|n| table(n, &format!("t{n}"), &sql(n)))
        .collect();
    let ends = engine.build_set(&builds, &cancel).await;
    for (n, end) in (1..).zip(&ends) {
        assert_eq!(end.is_err(), n == 30, "{n}: {end:?}");
    }
    let transactions = snapshots() - before;
    assert!(
        transactions <= 8,
        "{BUILDS} builds in {transactions} transactions"
    );
    let made = "SELECT count(*) FROM information_schema.tables \
                WHERE table_catalog = 'theirs' AND table_schema = 'main'";
    assert_eq!(
        hand.lines(made),
        [BUILDS.to_string()],
        "all but one, and the first"
    );
    drop(hand);
    lake.close().await;
}

/// A build of the same columns keeps the table of before, unless that is so large that another is cheaper.
pub(crate) async fn empty_or_replace(catalog: &Catalog) {
    let lake = LakeFolder::new(catalog);
    let (engine, cancel) = (lake.open(), CancellationToken::new());
    let mut seen = Vec::new();
    for rows in [10, 20, 150_000, 30, 40] {
        let sql = format!("select range as x from range({rows})");
        engine.build(&table(1, "numbers", &sql), &cancel).await.unwrap();
        let hand = lake.address.by_hand();
        assert_eq!(
            hand.lines("SELECT count(*) FROM theirs.main.numbers"),
            [rows.to_string()]
        );
        let id = "SELECT table_id FROM ducklake_table_info('theirs') WHERE table_name = 'numbers'";
        let id = hand.lines(id);
        seen.push(id.concat());
    }
    let same: Vec<bool> = seen.windows(2).map(|pair| pair[0] == pair[1]).collect();
    assert_eq!(same, [true, true, false, true], "{seen:?}");
    lake.close().await;
}

//! Tests of renames.

use watershed_dialect::{DuckDb, Quoting as _};

use super::*;
use crate::duckdb::checkpoint::checkpoint;

#[tokio::test]
async fn a_rename_keeps_rows_tag_and_record() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    bench.build(view(2, "v", "select 2 as x")).await.unwrap();
    bench.rename(1, "b").await.unwrap();
    bench.rename(2, "w").await.unwrap();
    let outputs = bench.outputs().await;
    assert_eq!(bench.listed().await, ["b table 1", "w view 2"]);
    assert!(outputs.iter().all(|output| output.record.is_some()));
    assert_eq!(bench.one("select b.x, w.x from b, w").await, "1|2");
    assert_eq!(bench.after_a_kill().outputs().await, outputs);
    assert_eq!(bench.reopened().await.outputs().await, outputs);
}

#[tokio::test]
async fn a_rename_can_leave_another_record() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    let rename = Rename {
        uid: uid(1),
        to: "b".into(),
        record: Some(b"moved".to_vec()),
    };
    bench.engine.rename(&rename, &bench.cancel).await.unwrap();
    let outputs = bench.outputs().await;
    assert_eq!(
        (outputs[0].record.as_deref(), outputs[0].rows),
        (Some(&b"moved"[..]), Some(1))
    );
}

#[tokio::test]
async fn a_rename_reads_no_rows() {
    let bench = bench();
    bench
        .build(table(
            1,
            "a",
            "select i, md5(i::varchar) as m from range(300000) t(i)",
        ))
        .await
        .unwrap();
    checkpoint(&bench.engine, &bench.cancel).await.unwrap();
    let size = |bench: &Bench| {
        std::fs::metadata(super::super::proof::wal_path(&bench.path())).map_or(0, |m| m.len())
    };
    assert_eq!(size(&bench), 0);
    bench.rename(1, "b").await.unwrap();
    assert!(
        size(&bench) < 4_096,
        "only the new name is written: {}",
        size(&bench)
    );
}

#[tokio::test]
async fn indexes_that_people_made_do_not_stand_in_the_way() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x, 2 as y")).await.unwrap();
    bench
        .by_hand(&["create index \"my ix\" on a(x)", "create unique index iy on a(y)"])
        .await;
    let renamed = bench.rename(1, "b").await.unwrap();
    assert_eq!(renamed.dropped_indexes, ["iy", "my ix"]);
    assert_eq!(bench.one("select x from b").await, "1");
    assert_eq!(bench.after_a_kill().listed().await, ["b table 1"]);
}

#[tokio::test]
async fn what_is_not_there_is_not_renamed() {
    let bench = bench();
    assert_eq!(bench.rename(1, "b").await, Err(RenameError::Absent));
    bench.build(table(1, "a", "select 1")).await.unwrap();
    bench.by_hand(&["drop table a"]).await;
    let bench = bench.reopened().await;
    assert_eq!(bench.rename(1, "b").await, Err(RenameError::Absent));
}

#[tokio::test]
async fn random_histories_of_names_end_as_a_plain_map_says() {
    use proptest::prelude::*;
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::{Config, TestRunner};
    let mut runner = TestRunner::new(Config {
        cases: 12,
        failure_persistence: None,
        ..Config::default()
    });
    let steps = proptest::collection::vec((0_u8..4, 1_u128..5, 0_usize..5, any::<bool>()), 1..25);
    let mut histories = Vec::new();
    for _ in 0..12 {
        histories.push(steps.new_tree(&mut runner).unwrap().current());
    }
    for history in histories {
        let bench = bench();
        let names = ["a", "B", "c", "D d", "é"];
        // Who has which name, and who has something that another's name pushed aside.
        let mut expected = std::collections::BTreeMap::<u128, Option<usize>>::new();
        for &(what, n, to, is_view) in &history {
            let kind = if is_view {
                OutputKind::View
            } else {
                OutputKind::Table
            };
            let took = match what {
                0 => {
                    bench.drop_output(n).await.unwrap();
                    expected.remove(&n);
                    false
                }
                1 => {
                    bench
                        .build(build(n, names[to], kind, &format!("select {n} as x")))
                        .await
                        .unwrap();
                    true
                }
                _ => match bench.rename(n, names[to]).await {
                    Ok(_) => true,
                    Err(RenameError::Absent) => {
                        assert!(!expected.contains_key(&n));
                        false
                    }
                    Err(error) => panic!("{error:?}"),
                },
            };
            if took {
                expected
                    .values_mut()
                    .filter(|at| **at == Some(to))
                    .for_each(|at| *at = None);
                expected.insert(n, Some(to));
            }
        }
        for bench in [&bench, &bench.after_a_kill()] {
            let found: std::collections::BTreeMap<_, _> = bench
                .outputs()
                .await
                .iter()
                .map(|output| {
                    (
                        output.tag.uid.as_u128(),
                        names.iter().position(|name| *name == output.location.name),
                    )
                })
                .collect();
            assert_eq!(found, expected, "{history:?}");
            for output in bench.outputs().await {
                let sql = format!("select x from {}", DuckDb.name(&output.location.name));
                assert_eq!(bench.one(&sql).await, output.tag.uid.as_u128().to_string());
            }
        }
    }
}

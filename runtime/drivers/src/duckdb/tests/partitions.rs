//! Tests of partitions: staging, publishing and giving up.

use super::*;
use crate::olap::{
    NewColumns, Over, Partition, PartitionPhase, PartitionRun, Partitions as _, StageEnd, StageStep,
    stage_table,
};

const STAGE: &str = "a stage";

pub(super) fn step(n: u128, key: &str, sql: &str, number: u64) -> StageStep {
    StageStep {
        uid: uid(n),
        sql: sql.to_owned(),
        hooks: Hooks::default(),
        columns: NewColumns::Refuse,
        key: Vec::new(),
        again: false,
        note: PartitionRun {
            partition: Partition {
                key: key.to_owned(),
                data: "{}".to_owned(),
                watermark: Some(format!("w{number}")),
            },
            phase: PartitionPhase::Staged,
            stage: STAGE.to_owned(),
            number,
            at_ms: 1,
            took_ms: 0,
            rows: None,
            error: None,
        },
    }
}

/// Returns the build that publishes all staged partitions.
pub(super) fn published(n: u128, name: &str) -> Build {
    let sql = format!("select * exclude (_watershed_run) from {}", stage_table(uid(n)));
    let mut build = table(n, name, &sql);
    build.stage = Some(StageEnd {
        stage: STAGE.to_owned(),
        whole: true,
    });
    build
}

/// Returns the build that adds staged partitions to the existing rows.
fn added(n: u128, name: &str) -> Build {
    let mut build = published(n, name);
    build.tag.build = Uuid::from_u128(77);
    build.step = Step::Into {
        over: Over::Partitions,
        columns: NewColumns::Refuse,
    };
    build.stage = Some(StageEnd {
        stage: STAGE.to_owned(),
        whole: false,
    });
    build
}

impl Bench {
    async fn stage(&self, step: &StageStep) -> Result<PartitionRun, BuildError> {
        let staged = self.engine.stage(std::slice::from_ref(step), &self.cancel).await;
        staged.map(|mut notes| notes.remove(0))
    }

    /// Returns the partitions of the first resource: key, phase and watermark.
    async fn notes(&self) -> Vec<String> {
        let runs = self.engine.runs(uid(1), &self.cancel).await.unwrap();
        let line = |run: PartitionRun| {
            let watermark = run.partition.watermark.unwrap_or_default();
            format!("{} {} {watermark}", run.partition.key, run.phase.as_str())
        };
        runs.into_iter().map(line).collect()
    }

    async fn stages(&self) -> String {
        self.one("select count(*) from duckdb_tables() where table_name like 'stage_%'")
            .await
    }
}

#[tokio::test]
async fn partitions_that_are_brief_are_staged_together_or_not_at_all() {
    let bench = bench();
    let three = |number: u64, second: &str| {
        [
            step(1, "a", "select 1 as x", number),
            step(1, "b", second, number + 1),
            step(1, "c", "select 4 as x", number + 2),
        ]
    };
    let failed = bench
        .engine
        .stage(&three(0, "select 'a' as x, 1 as y"), &bench.cancel)
        .await;
    assert!(matches!(failed, Err(BuildError::Columns(_))), "{failed:?}");
    assert_eq!(
        (bench.notes().await, bench.stages().await),
        (Vec::new(), "0".to_owned())
    );

    let staged = bench
        .engine
        .stage(&three(0, "select 2 as x union all select 3"), &bench.cancel)
        .await;
    let rows: Vec<_> = staged.unwrap().into_iter().map(|note| note.rows).collect();
    assert_eq!(rows, [Some(1), Some(2), Some(1)]);
    assert_eq!(bench.notes().await, ["a staged w0", "b staged w1", "c staged w2"]);
    let built = bench.build(published(1, "t")).await.unwrap();
    assert_eq!(built.rows, Some(4));

    // Its second takes long: the third is not begun.
    let long = "select count(*) as x from range(100000) a, range(20000) b";
    let staged = bench.engine.stage(&three(3, long), &bench.cancel).await.unwrap();
    assert_eq!(staged.len(), 2);
    assert_eq!(bench.notes().await, ["c done w2", "a staged w3", "b staged w4"]);
}

#[tokio::test]
async fn a_note_takes_the_place_of_its_own_run_and_of_no_other() {
    let bench = bench();
    for (key, number) in [("a", 0), ("b", 1)] {
        bench.stage(&step(1, key, "select 1 as x", number)).await.unwrap();
    }
    bench.build(published(1, "t")).await.unwrap();
    let note = |key: &str, number: u64, phase| {
        let mut note = step(1, key, "", number).note;
        note.partition.watermark = Some("later".to_owned());
        PartitionRun {
            phase,
            stage: String::new(),
            ..note
        }
    };
    // Whoever asks may take a number that a run has taken meanwhile.
    let notes = vec![
        note("a", 0, PartitionPhase::Done),
        note("c", 1, PartitionPhase::Asked),
    ];
    bench.engine.note(uid(1), notes, &bench.cancel).await.unwrap();
    let mut found = bench.notes().await;
    found.sort();
    assert_eq!(found, ["a done later", "b done w1", "c asked later"]);
    assert_eq!(bench.one("select count(*) from _watershed.partitions").await, "3");
    bench
        .engine
        .note(uid(1), Vec::new(), &bench.cancel)
        .await
        .unwrap();
}

#[tokio::test]
async fn what_is_staged_is_seen_when_it_is_published() {
    let bench = bench();
    let note = bench
        .stage(&step(1, "a", "select 1 as x -- one", 0))
        .await
        .unwrap();
    assert_eq!(note.rows, Some(1));
    bench
        .stage(&step(1, "b", "select 2 as x union all select 3", 1))
        .await
        .unwrap();
    assert_eq!(bench.outputs().await.len(), 0);
    assert_eq!(bench.notes().await, ["a staged w0", "b staged w1"]);
    let built = bench.build(published(1, "t")).await.unwrap();
    assert_eq!(built.rows, Some(3));
    assert_eq!(bench.notes().await, ["a done w0", "b done w1"]);
    assert_eq!(bench.stages().await, "0");

    // Another run of one of them, with fewer rows, and one that has none any more.
    bench.stage(&step(1, "b", "select 5 as x", 2)).await.unwrap();
    bench
        .stage(&step(1, "a", "select 1 as x where false", 3))
        .await
        .unwrap();
    let built = bench.build(added(1, "t")).await.unwrap();
    assert_eq!(built.rows, Some(1));
    assert_eq!(bench.one("select string_agg(x, ' ') from t").await, "5");
    assert_eq!(bench.notes().await, ["b done w2", "a done w3"]);
    assert_eq!(bench.one("select count(*) from _watershed.partitions").await, "2");
}

#[tokio::test]
async fn a_stage_that_is_given_up_leaves_the_notes_of_before() {
    let bench = bench();
    bench.stage(&step(1, "a", "select 1 as x", 0)).await.unwrap();
    bench.build(published(1, "t")).await.unwrap();
    bench.stage(&step(1, "a", "select 2 as x", 1)).await.unwrap();
    assert_eq!(bench.notes().await, ["a staged w1"]);
    bench.engine.give_up(uid(1), &bench.cancel).await.unwrap();
    assert_eq!(bench.notes().await, ["a done w0"]);
    assert_eq!(bench.stages().await, "0");
}

#[tokio::test]
async fn a_partition_that_fails_leaves_nothing_and_points_at_its_own_sql() {
    let bench = bench();
    bench.stage(&step(1, "a", "select 1 as x", 0)).await.unwrap();
    let wrong = bench
        .stage(&step(1, "b", "select nothing as x", 1))
        .await
        .unwrap_err();
    let BuildError::Failed(Failure::Sql(error)) = &wrong else {
        panic!("{wrong:?}")
    };
    assert_eq!(error.offset, Some("select ".len()), "{error:?}");
    let other = bench.stage(&step(1, "b", "select 1 as y", 1)).await.unwrap_err();
    assert!(matches!(other, BuildError::Columns(_)), "{other:?}");
    let mut twice = step(1, "b", "select 7 as x union all select 7", 1);
    twice.key = vec!["x".into()];
    let twice = bench.stage(&twice).await.unwrap_err();
    assert!(matches!(twice, BuildError::SameKey { .. }), "{twice:?}");
    assert_eq!(bench.notes().await, ["a staged w0"]);
}

#[tokio::test]
async fn a_partition_that_is_staged_again_takes_its_own_place() {
    let bench = bench();
    bench.stage(&step(1, "a", "select 1 as x", 0)).await.unwrap();
    let mut again = step(1, "a", "select 2 as x", 1);
    again.again = true;
    bench.stage(&again).await.unwrap();
    bench.build(published(1, "t")).await.unwrap();
    assert_eq!(bench.one("select string_agg(x, ' ') from t").await, "2");
}

#[tokio::test]
async fn partitions_go_with_their_output_and_with_their_owner() {
    let bench = bench();
    bench.stage(&step(1, "a", "select 1 as x", 0)).await.unwrap();
    bench.build(published(1, "t")).await.unwrap();
    bench.stage(&step(1, "b", "select 2 as x", 1)).await.unwrap();
    let (from, to) = (published(1, "t").tag, table(9, "t", "").tag);
    assert!(
        bench
            .engine
            .retag(from, to, b"adopted", &bench.cancel)
            .await
            .unwrap()
    );
    let runs = bench.engine.runs(uid(9), &bench.cancel).await.unwrap();
    assert_eq!(runs.len(), 1, "what was staged is given up");
    assert_eq!(bench.stages().await, "0");
    assert!(bench.drop_output(9).await.unwrap());
    let notes = "select count(*) from _watershed.partitions";
    assert_eq!(
        bench.one(notes).await,
        "1",
        "the one that is in the trash with its rows"
    );

    // Never published, and then built as a whole.
    bench.stage(&step(2, "a", "select 1 as x", 0)).await.unwrap();
    bench.build(table(2, "u", "select 1 as x")).await.unwrap();
    assert_eq!(bench.stages().await, "0");
    assert_eq!(bench.one(notes).await, "1");
}

#[tokio::test]
async fn a_partition_whose_values_the_stage_does_not_hold_is_refused() {
    for (first, second) in [
        ("1::bigint", "2.5::double"),
        ("date '2024-01-01'", "timestamp '2024-01-01 10:30:00'"),
    ] {
        for columns in [NewColumns::Refuse, NewColumns::Leave] {
            let bench = bench();
            let with = |key: &str, value: &str, number: u64| StageStep {
                columns,
                ..step(1, key, &format!("select {value} as x"), number)
            };
            bench.stage(&with("a", first, 0)).await.unwrap();
            let refused = bench.stage(&with("b", second, 1)).await;
            assert!(matches!(refused, Err(BuildError::Columns(_))), "{refused:?}");
            // Those of a narrower type lose nothing.
            bench.stage(&with("c", "null", 2)).await.unwrap();
            assert_eq!(bench.build(published(1, "t")).await.unwrap().rows, Some(2));
        }
    }
}

#[tokio::test]
async fn a_stage_becomes_wider_and_so_does_the_table_although_rows_make_way() {
    let bench = bench();
    let with = |key: &str, sql: &str, number: u64| StageStep {
        columns: NewColumns::Add,
        ..step(1, key, sql, number)
    };
    let publish = |number: u128| {
        let mut build = added(1, "t");
        build.tag.build = Uuid::from_u128(number);
        build.step = Step::Into {
            over: Over::Partitions,
            columns: NewColumns::Add,
        };
        build
    };
    bench.stage(&with("a", "select 1 as x", 0)).await.unwrap();
    bench.build(published(1, "t")).await.unwrap();
    bench.stage(&with("a", "select 2 as x", 1)).await.unwrap();
    // The same partition once more, after a crash, and now with another type and a new column.
    let again = StageStep {
        again: true,
        ..with("a", "select 2.5 as x, 'n' as y", 2)
    };
    bench.stage(&again).await.unwrap();
    bench.stage(&with("b", "select 3::double as x", 3)).await.unwrap();
    let built = bench.build(publish(78)).await.unwrap();
    assert_eq!(built.rows, Some(2));
    assert_eq!(
        bench
            .one("select string_agg(x || coalesce(y, '-'), ' ' order by x) from t")
            .await,
        "2.5n 3.0-"
    );
}

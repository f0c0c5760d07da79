//! Tests of the trash: what enters it, is restored from it, and is removed for good.

use super::*;
use crate::duckdb::checkpoint::checkpoint;
use crate::olap::{
    PartitionRun, Partitions as _, RetrieveError, Trash as _, TrashLimits, Trashed, Upkeep as _,
};

/// Returns build `number` of resource `n`, which keeps the replaced output in the trash.
fn keeping(n: u128, number: u128, name: &str, sql: &str) -> Build {
    let mut build = table(n, name, sql);
    build.tag.build = Uuid::from_u128(number);
    build.record = format!("record {number}").into_bytes();
    build.replaced = Fate::Trash;
    build
}

/// Returns build `number` of resource `n`, which restores an output from the trash.
fn back(n: u128, number: u128, name: &str) -> Build {
    let mut build = keeping(n, number, name, "");
    build.step = Step::TakeBack(build.tag.build);
    build
}

impl Bench {
    async fn trash(&self) -> Vec<Trashed> {
        self.engine.list(&self.cancel).await.unwrap()
    }

    /// Returns a line `build name why` for each output in the trash, ordered by build.
    async fn thrown(&self) -> Vec<String> {
        let line = |it: &Trashed| format!("{} {} {}", it.tag.build.as_u128(), it.name, it.why);
        let mut lines: Vec<String> = self.trash().await.iter().map(line).collect();
        lines.sort();
        lines
    }

    /// Returns the names of the tables in the file that belong to the trash.
    async fn trash_tables(&self) -> String {
        self.one("select count(*) from duckdb_tables() where table_name like '_watershed_trash_%'")
            .await
    }

    async fn guarded(&self, n: u128) -> Dropped {
        let dropped = self.engine.drop_output(uid(n), Guard::Held, &self.cancel);
        dropped.await.unwrap()
    }

    fn bound(&self, bytes: u64) {
        let limits = TrashLimits {
            bytes,
            ..TrashLimits::default()
        };
        self.engine.limit(limits);
    }

    /// Makes everything in the trash this number of days old, with recorded sightings at these ages.
    async fn age(&self, days: i64, looks: &[i64]) {
        let day = 24 * 60 * 60 * 1_000;
        let now = super::super::trash::now_ms();
        let age = format!("update _watershed.trash set at_ms = {}", now - days * day);
        let looks: Vec<String> = looks
            .iter()
            .map(|ago| {
                format!(
                    "insert into _watershed.trash_sightings values ({})",
                    now - ago * day
                )
            })
            .collect();
        self.engine
            .work(&self.cancel, super::super::gate::Company::Alone, move |work| {
                work.run(&age, &[])?;
                work.run("delete from _watershed.trash_sightings", &[])?;
                looks.iter().try_for_each(|sql| work.run(sql, &[]).map(drop))
            })
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_dropped_table_is_no_output_and_comes_back_for_whoever_takes_it() {
    let bench = bench();
    bench.build(keeping(1, 10, "a", "select 1 as x")).await.unwrap();
    bench.build(view(2, "b", "select 2 as x")).await.unwrap();
    assert!(bench.drop_output(1).await.unwrap());
    assert!(bench.drop_output(2).await.unwrap(), "a view is gone");
    assert_eq!(bench.outputs().await, []);
    let bench = bench.reopened().await;
    assert_eq!(bench.outputs().await, []);
    assert_eq!(bench.thrown().await, ["10 a deleted"]);
    assert_eq!(bench.trash().await[0].record.as_deref(), Some(&b"record 10"[..]));
    assert!(
        !bench.drop_output(1).await.unwrap(),
        "what is in the trash is nobody's"
    );
    let built = bench.build(back(7, 10, "A")).await.unwrap();
    assert_eq!((built.rows, built.tag.uid), (Some(1), uid(7)));
    assert_eq!(bench.one("select x from a").await, "1");
    assert_eq!(bench.listed().await, ["A table 7"]);
    assert_eq!(bench.thrown().await, [] as [&str; 0]);
    let again = bench.build(back(7, 10, "a")).await;
    assert_eq!(again, Err(BuildError::Absent));
    assert_eq!(bench.after_a_kill().listed().await, ["A table 7"]);
}

#[tokio::test]
async fn what_a_build_replaces_is_swapped_for_it_and_back() {
    let bench = bench();
    bench.build(keeping(1, 10, "a", "select 1 as x")).await.unwrap();
    bench.build(keeping(1, 11, "a", "select 2 as x")).await.unwrap();
    assert_eq!(bench.thrown().await, ["10 a replaced"]);
    for (number, rows, other) in [(10, "1", "11 a replaced"), (11, "2", "10 a replaced")] {
        bench.build(back(1, number, "a")).await.unwrap();
        assert_eq!(bench.one("select x from a").await, rows);
        assert_eq!(bench.thrown().await, [other]);
        let output = bench.outputs().await.remove(0);
        assert_eq!(output.tag.build, Uuid::from_u128(number));
        assert_eq!(output.record, Some(format!("record {number}").into_bytes()));
    }
    let seen = bench.after_a_kill();
    assert_eq!(seen.one("select x from a").await, "2");
    assert_eq!(seen.thrown().await, ["10 a replaced"]);
}

#[tokio::test]
async fn a_table_that_becomes_a_view_waits_in_the_trash() {
    let bench = bench();
    bench.build(keeping(1, 10, "a", "select 1 as x")).await.unwrap();
    let mut as_view = keeping(1, 11, "a", "select 2 as x");
    as_view.kind = OutputKind::View;
    bench.build(as_view).await.unwrap();
    assert_eq!(bench.listed().await, ["a view 1"]);
    assert_eq!(bench.thrown().await, ["10 a replaced"]);
    bench.build(back(1, 10, "a")).await.unwrap();
    assert_eq!(bench.listed().await, ["a table 1"]);
    assert_eq!(bench.thrown().await, [] as [&str; 0]);
}

#[tokio::test]
async fn only_the_latest_few_of_a_resource_are_kept() {
    let bench = bench();
    for number in 10..30 {
        let sql = format!("select {number} as x");
        bench.build(keeping(1, number, "a", &sql)).await.unwrap();
    }
    let thrown = bench.thrown().await;
    assert_eq!((thrown.len(), thrown[0].as_str()), (10, "19 a replaced"));
    assert_eq!(bench.trash_tables().await, "10");
}

#[tokio::test]
async fn a_failed_build_throws_nothing_away() {
    let bench = bench();
    bench.build(keeping(1, 10, "a", "select 1 as x")).await.unwrap();
    bench
        .build(keeping(1, 11, "a", "select error('no')"))
        .await
        .unwrap_err();
    assert_eq!(bench.thrown().await, [] as [&str; 0]);
    assert_eq!(bench.one("select x from a").await, "1");
}

#[tokio::test]
async fn an_index_that_somebody_made_is_in_nobodys_way() {
    let bench = bench();
    bench.build(keeping(1, 10, "a", "select 1 as x")).await.unwrap();
    bench.by_hand(&["create index i on a(x)"]).await;
    bench.build(keeping(1, 11, "a", "select 2 as x")).await.unwrap();
    assert_eq!(bench.thrown().await, [] as [&str; 0], "as every rebuild did");
    bench.by_hand(&["create index i on a(x)"]).await;
    assert!(bench.drop_output(1).await.unwrap());
    assert_eq!(bench.thrown().await, ["11 a deleted"]);
}

#[tokio::test]
async fn another_resource_that_has_the_name_is_moved_and_not_lost() {
    let bench = bench();
    bench.build(keeping(1, 10, "a", "select 1 as x")).await.unwrap();
    assert!(bench.drop_output(1).await.unwrap());
    bench.build(table(2, "a", "select 2 as x")).await.unwrap();
    bench.build(back(3, 10, "a")).await.unwrap();
    assert_eq!(bench.one("select x from a").await, "1");
    assert_eq!(bench.outputs().await.len(), 2);
}

#[tokio::test]
async fn notes_of_partitions_go_and_come_with_their_rows() {
    let bench = bench();
    let stage = super::partitions::step(1, "k", "select 4 as x", 0);
    bench.engine.stage(&[stage], &bench.cancel).await.unwrap();
    let mut published = super::partitions::published(1, "a");
    published.tag.build = Uuid::from_u128(10);
    bench.build(published).await.unwrap();
    bench.build(keeping(1, 11, "a", "select 5 as x")).await.unwrap();
    let notes = async || -> Vec<PartitionRun> { bench.engine.runs(uid(1), &bench.cancel).await.unwrap() };
    assert_eq!(notes().await, [], "they are those of the table before");
    bench.build(back(1, 10, "a")).await.unwrap();
    assert_eq!(notes().await[0].partition.key, "k");
    bench.build(back(1, 11, "a")).await.unwrap();
    assert_eq!(notes().await, []);
    assert!(bench.drop_output(1).await.unwrap());
    bench.build(back(9, 10, "z")).await.unwrap();
    let runs = bench.engine.runs(uid(9), &bench.cancel).await.unwrap();
    assert_eq!(runs.len(), 1);
    bench.bound(0);
    let bench = bench.at_rest().await;
    assert_eq!(bench.one("select count(*) from _watershed.partitions").await, "1");
    assert_eq!(bench.trash_tables().await, "0");
}

impl Bench {
    async fn at_rest(self) -> Self {
        assert!(self.engine.give_up_file().await);
        self
    }
}

#[tokio::test]
async fn the_trash_stays_within_its_bounds_once_they_are_known() {
    let bench = bench();
    for n in 1..=4 {
        let sql = format!("select hash(i + {n}) as x from range(200000) t(i)");
        bench
            .build(keeping(n, 10 + n, &format!("t{n}"), &sql))
            .await
            .unwrap();
        assert!(bench.drop_output(n).await.unwrap());
    }
    let bench = bench.reopened().await;
    assert_eq!(bench.thrown().await.len(), 4, "nobody knows how much is too much");
    bench.bound(5_000_000);
    let bench = bench.at_rest().await;
    assert_eq!(bench.thrown().await, ["13 t3 deleted", "14 t4 deleted"]);
    assert_eq!(bench.trash_tables().await, "2");
}

#[tokio::test]
async fn what_is_too_old_goes_at_the_second_sight_of_a_later_date() {
    for (days, looks, left) in [
        (6, &[2_i64][..], 1),
        (9, &[][..], 1),
        (9, &[0][..], 1),
        (9, &[2][..], 0),
        // A clock that was wrong once.
        (2, &[-9_000][..], 1),
    ] {
        let bench = bench();
        bench.bound(1 << 40);
        bench.build(keeping(1, 10, "a", "select 1 as x")).await.unwrap();
        assert!(bench.drop_output(1).await.unwrap());
        bench.age(days, looks).await;
        let bench = bench.reopened().await;
        bench.bound(1 << 40);
        assert_eq!(bench.thrown().await.len(), 1);
        let bench = bench.at_rest().await;
        assert_eq!(bench.thrown().await.len(), left, "{days} days, {looks:?}");
    }
}

#[tokio::test]
async fn a_guarded_drop_for_which_there_is_no_room_drops_nothing() {
    let bench = bench();
    bench.bound(3_000_000);
    for n in 1..=3 {
        let sql = format!("select hash(i + {n}) as x from range(200000) t(i)");
        bench
            .build(keeping(n, 10 + n, &format!("t{n}"), &sql))
            .await
            .unwrap();
    }
    checkpoint(&bench.engine, &bench.cancel).await.unwrap();
    assert_eq!(bench.guarded(1).await, Dropped::Done);
    assert!(matches!(bench.guarded(2).await, Dropped::NoRoom { .. }));
    assert_eq!(bench.listed().await.len(), 2);
    let bench = bench.at_rest().await;
    assert_eq!(bench.thrown().await, ["11 t1 deleted"]);
    assert!(bench.drop_output(2).await.unwrap());
    let bench = bench.at_rest().await;
    assert_eq!(bench.thrown().await, ["11 t1 deleted"], "what is protected stays");
    bench.bound(0);
    assert_eq!(
        bench.guarded(3).await,
        Dropped::NoRoom {
            needs: trash_needs(&bench).await,
            room: 0
        }
    );
    assert_eq!(bench.guarded(8).await, Dropped::Nothing);
}

async fn trash_needs(bench: &Bench) -> u64 {
    let bytes = bench
        .engine
        .work(&bench.cancel, super::super::gate::Company::Others, |work| {
            super::super::trash::measure(work, "t3")
        });
    bytes.await.unwrap()
}

#[tokio::test]
async fn a_table_that_a_person_takes_is_the_persons_from_then_on() {
    let bench = bench();
    bench.build(keeping(1, 10, "a", "select 1 as x")).await.unwrap();
    assert!(bench.drop_output(1).await.unwrap());
    bench.build(keeping(2, 20, "b", "select 2 as x")).await.unwrap();
    let retrieve = async |name: &str| {
        bench
            .engine
            .retrieve(Uuid::from_u128(10), name, &bench.cancel)
            .await
    };
    assert!(matches!(
        retrieve("B").await,
        Err(RetrieveError::NameTaken { .. })
    ));
    retrieve("mine").await.unwrap();
    assert_eq!(retrieve("again").await, Err(RetrieveError::Absent));
    assert_eq!(bench.one("select x from mine").await, "1");
    assert_eq!(bench.listed().await, ["b table 2"]);
    let taken = bench.build(keeping(3, 30, "mine", "select 3 as x")).await;
    assert!(matches!(taken, Err(BuildError::NameTaken { .. })));
    assert_eq!(bench.after_a_kill().one("select x from mine").await, "1");
}

#[tokio::test]
async fn what_others_throw_away_during_a_look_is_no_damage() {
    const ROUNDS: u128 = 60;
    let bench = bench();
    bench.build(keeping(1, 10, "a", "select 1 as x")).await.unwrap();
    let (engine, is_over) = (bench.engine.clone(), CancellationToken::new());
    let looking = tokio::spawn({
        let (is_over, cancel) = (is_over.clone(), bench.cancel.clone());
        async move {
            let mut looks = 0;
            while !is_over.is_cancelled() || looks == 0 {
                assert_eq!(engine.damage(&cancel).await, Ok(Vec::new()));
                assert_eq!(engine.verify(&cancel).await, Ok(Vec::new()));
                looks += 1;
            }
        }
    });
    for n in 1..=ROUNDS {
        let build = keeping(1, 10 + n, "a", &format!("select {n} as x"));
        bench.build(build).await.unwrap();
        let all = bench.trash().await.into_iter().map(|it| it.tag.build).collect();
        bench.engine.empty(all, &bench.cancel).await.unwrap();
    }
    is_over.cancel();
    looking.await.unwrap();
}

#[tokio::test]
async fn records_without_tables_and_tables_without_records_are_found_and_mended() {
    let bench = bench();
    for n in 1..=2 {
        bench
            .build(keeping(n, 10 + n, &format!("t{n}"), "select 1 as x"))
            .await
            .unwrap();
        assert!(bench.drop_output(n).await.unwrap());
    }
    assert_eq!(bench.engine.damage(&bench.cancel).await, Ok(Vec::new()));
    bench
        .by_hand(&[
            "drop table _watershed_trash_0000000000000000000000000000000b",
            "delete from _watershed.trash where name = 't2'",
            "create table _watershed_trash_mine as select 3 as x",
        ])
        .await;
    let bench = bench.reopened().await;
    assert_eq!(
        bench.thrown().await,
        [] as [&str; 0],
        "nothing is offered that is not sure"
    );
    let found = bench.engine.damage(&bench.cancel).await.unwrap();
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(bench.engine.mend(&bench.cancel).await.unwrap(), found);
    assert_eq!(bench.engine.damage(&bench.cancel).await, Ok(Vec::new()));
    let names: Vec<String> = bench.trash().await.into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["found", "found"]);
    let all = bench.trash().await.into_iter().map(|it| it.tag.build).collect();
    assert_eq!(bench.engine.empty(all, &bench.cancel).await, Ok(2));
    assert_eq!(bench.trash_tables().await, "0");
}

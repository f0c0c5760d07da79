//! Tests of sharing the file with other programs, and of noticing their changes.

use std::process::{Command, Stdio};
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use crate::duckdb::FileProof;
use crate::duckdb::sys::{Connection, Database};
use crate::olap::{Access, OpenError, OwnFile as _};

/// Environment variable that makes this program the holder of a file, with its path.
const HELD: &str = "WATERSHED_TEST_HELD";

/// Runs a statement as another program that opens the file exclusively.
fn elsewhere(file: &Path, sql: &str) {
    let database = Database::open(Some(file), &[]).unwrap();
    let connection = Connection::new(&database).unwrap();
    drop(
        connection
            .run(sql, &[])
            .and_then(super::super::sys::Answer::collect)
            .unwrap(),
    );
}

fn stamp(bench: &Bench) -> Option<FileProof> {
    FileProof::read(&bench.path()).unwrap()
}

#[tokio::test]
async fn a_file_is_given_up_only_while_nobody_reads_through_it() {
    let bench = bench();
    assert!(bench.engine.give_up_file().await, "it was never opened");
    bench
        .build(table(1, "a", "select range as x from range(100000)"))
        .await
        .unwrap();
    let query = Query::new("select x from a".to_owned());
    let mut rows = bench.engine.query(query, &bench.cancel).await.unwrap();
    assert!(!bench.engine.give_up_file().await && bench.engine.is_open());
    assert_eq!(rows.collect().await.unwrap().len(), 100_000);
    drop(rows);
    while !bench.engine.give_up_file().await {
        tokio::task::yield_now().await;
    }
    assert!(!bench.engine.is_open());
    assert_eq!(stamp(&bench).unwrap().wal, None);
    assert_eq!(bench.one("select count(*) from a").await, "100000");
    assert_eq!(bench.engine.changes_by_others(), 0);
}

#[tokio::test]
async fn a_file_is_given_up_each_time_that_it_was_at_rest() {
    let bench = bench();
    let engine = bench.engine.clone();
    let sharing = tokio::spawn(async move { engine.share_file(Duration::from_millis(1)).await });
    for n in 1..=3 {
        bench.build(table(n, "a", "select 1 as x")).await.unwrap();
        while bench.engine.is_open() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    sharing.abort();
}

#[tokio::test]
async fn a_change_by_another_program_is_counted_before_the_next_work_ends() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    assert!(bench.engine.give_up_file().await);
    elsewhere(&bench.path(), "select * from a");
    assert_eq!(bench.engine.changes_by_others(), 0, "it was only read");
    elsewhere(&bench.path(), "drop table a");
    assert!(bench.listed().await.is_empty());
    assert_eq!(bench.engine.changes_by_others(), 1);
    assert_eq!(bench.engine.changes_by_others(), 1, "once each");
}

#[tokio::test]
async fn a_change_after_the_file_was_given_up_is_not_in_the_proof_of_the_close() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    assert!(bench.engine.give_up_file().await);
    let left = stamp(&bench);
    elsewhere(&bench.path(), "create table mine as select 2 as x");
    let left_as = left.as_ref().map(FileProof::to_stamp);
    assert_eq!(bench.engine.close().await.unwrap(), left_as);
    assert_ne!(stamp(&bench), left);
}

#[tokio::test]
async fn a_file_that_was_removed_or_replaced_meanwhile_is_noticed() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    assert!(bench.engine.give_up_file().await);
    std::fs::remove_file(bench.path()).unwrap();
    assert!(bench.listed().await.is_empty());
    assert_eq!(bench.engine.changes_by_others(), 1);
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    assert!(bench.engine.give_up_file().await);
    std::fs::write(bench.path(), "something else").unwrap();
    let damaged = bench.build(table(1, "a", "select 2 as x")).await;
    assert!(matches!(
        damaged,
        Err(BuildError::Failed(Failure::Open(OpenError::Damaged { .. })))
    ));
    assert_eq!(bench.engine.changes_by_others(), 2);
}

/// Plays random builds, drops, handovers and changes by hand: committed data stay, and exactly the changes by others
/// are counted.
#[test]
fn random_handings_over_lose_nothing_and_miss_no_change() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let steps = proptest::collection::vec((0_u8..6, 1_u128..4, any::<bool>()), 1..30);
    let mut runner = TestRunner::new(Config::default());
    for round in 0..12 {
        let steps = steps.new_tree(&mut runner).unwrap().current();
        let story = format!("round {round}: {steps:?}");
        runtime.block_on(hand_over(&steps, &story));
    }
}

async fn hand_over(steps: &[(u8, u128, bool)], story: &str) {
    let bench = bench();
    let mut tables = std::collections::BTreeMap::new();
    let mut by_hand = 0;
    let mut changes = 0;
    for (number, (step, n, asks)) in steps.iter().enumerate() {
        let name = format!("t{n}");
        match step {
            0 | 1 => {
                let sql = format!("select {number} as x");
                bench.build(table(*n, &name, &sql)).await.unwrap();
                tables.insert(name, number.to_string());
            }
            2 => {
                bench.drop_output(*n).await.unwrap();
                tables.remove(&name);
            }
            3 | 4 => {
                assert!(bench.engine.give_up_file().await, "{story}");
                if bench.path().exists() && *step == 4 {
                    elsewhere(
                        &bench.path(),
                        &format!("create or replace table mine as select {number} as x"),
                    );
                    by_hand = number;
                    changes += 1;
                }
            }
            _ => {
                assert!(bench.engine.give_up_file().await, "{story}");
                if bench.path().exists() {
                    elsewhere(&bench.path(), "select 1");
                }
            }
        }
        if *asks {
            assert_eq!(
                bench.engine.changes_by_others(),
                changes,
                "step {number} of {story}"
            );
        }
        // Changes between two looks are one change.
        changes = bench.engine.changes_by_others();
    }
    for (name, value) in &tables {
        assert_eq!(
            &bench.one(&format!("select x from {name}")).await,
            value,
            "{story}"
        );
    }
    assert_eq!(bench.outputs().await.len(), tables.len(), "{story}");
    if by_hand > 0 {
        assert_eq!(
            bench.one("select x from mine").await,
            by_hand.to_string(),
            "{story}"
        );
    }
}

#[tokio::test]
async fn a_file_that_another_process_has_open_is_waited_for() {
    if let Ok(file) = std::env::var(HELD) {
        return hold(Path::new(&file));
    }
    let bench = bench_with(|options| options.patience = Duration::from_secs(60));
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    assert!(bench.engine.give_up_file().await);
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("duckdb::tests::sharing::a_file_that_another_process_has_open_is_waited_for")
        .env(HELD, bench.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut waiting = bench.engine.watch_holder();
    // Its own pool is closed, so whether the other one holds it is known by trying.
    let impatient = Engine::new(Options {
        patience: Duration::ZERO,
        ..bench.engine.options().clone()
    });
    let locked = loop {
        match impatient.open_now().await {
            Err(Failure::Open(locked @ OpenError::Locked { .. })) => break locked,
            opened => opened.unwrap(),
        }
        assert!(impatient.give_up_file().await);
        tokio::task::yield_now().await;
    };
    let process = format!("process {} (", holder.id());
    assert!(locked.to_string().starts_with(&process), "{locked}");
    assert_eq!(bench.engine.changes_by_others(), 0, "it has not written yet");

    let again = table(1, "a", "select 2 as x");
    let build = bench.build(again);
    tokio::pin!(build);
    tokio::select! {
        done = &mut build => panic!("{done:?} beside another process"),
        told = waiting.wait_for(Option::is_some) => {
            let told = told.unwrap().clone().unwrap();
            assert!(told.starts_with(&process), "{told}");
        }
    }
    // Its input ends, and with that its hold.
    drop(holder.stdin.take());
    build.await.unwrap();
    assert!(holder.wait().unwrap().success());
    assert_eq!(bench.one("select a.x, mine.x from a, mine").await, "2|7");
    assert_eq!(bench.engine.changes_by_others(), 1);
    assert_eq!(*waiting.borrow_and_update(), None);
}

/// Holds the file in another process until its input ends, then leaves a change in the file.
fn hold(file: &Path) {
    let database = loop {
        // The engine of the test may try it at the same moment.
        if let Ok(database) = Database::open(Some(file), &[]) {
            break database;
        }
    };
    std::io::Read::read_to_end(&mut std::io::stdin(), &mut Vec::new()).unwrap();
    let connection = Connection::new(&database).unwrap();
    let sql = "create table mine as select 7 as x";
    drop(
        connection
            .run(sql, &[])
            .and_then(super::super::sys::Answer::collect)
            .unwrap(),
    );
}

#[tokio::test]
async fn a_wait_that_was_given_up_is_not_begun_again_by_the_next_in_line() {
    let bench = bench_with(|options| options.patience = Duration::from_millis(200));
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    assert!(bench.engine.give_up_file().await);
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("duckdb::tests::sharing::a_file_that_another_process_has_open_is_waited_for")
        .env(HELD, bench.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    loop {
        let looking = Engine::new(Options {
            access: Access::ReadOnly,
            ..bench.engine.options().clone()
        });
        if looking.open_now().await.is_err() {
            break;
        }
        looking.close().await.unwrap();
    }
    let is_locked = |result: &Result<Built, BuildError>| {
        matches!(
            result,
            Err(BuildError::Failed(Failure::Open(OpenError::Locked { .. })))
        )
    };
    assert!(is_locked(&bench.build(table(1, "a", "select 2 as x")).await));
    let waiting = bench.engine.watch_holder();
    assert!(is_locked(&bench.build(table(2, "b", "select 2 as x")).await));
    assert!(!waiting.has_changed().unwrap(), "it did not wait");
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
}

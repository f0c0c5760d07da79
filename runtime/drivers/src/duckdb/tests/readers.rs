//! Tests of reads during rebuilds, which see no error and no partial rows.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::*;
use crate::olap::{NewColumns, Over};

/// Number of rebuilds of each table: in an ordinary run, and in proofs.
const ROUNDS: [u64; 2] = [15, 100];
/// Number of rows of a rebuild: several of the engine's chunks.
const ROWS: u64 = 5_000;

fn rounds() -> u64 {
    let [few, all] = ROUNDS;
    match std::env::var_os("WATERSHED_PROOF") {
        Some(_) => all,
        None => few,
    }
}

/// Returns the build of a round, with the round's number in every row.
fn replaced(n: u128, name: &str, round: u64, fate: Fate) -> Build {
    let mut build = table(n, name, &format!("select {round} as round from range({ROWS})"));
    build.tag.build = Uuid::from_u128(n << 64 | u128::from(round + 1));
    build.replaced = fate;
    build
}

/// Returns the build that inserts the rows of a round into a table.
fn put(n: u128, name: &str, round: u64, over: Over) -> Build {
    let select = match over {
        Over::SameKey => format!("select range as k, {round} as round from range({ROWS})"),
        _ => format!("select {round} as round from range({ROWS})"),
    };
    let mut build = replaced(n, name, round, Fate::Gone);
    build.sql = select;
    build.key = match over {
        Over::SameKey => vec!["k".into()],
        _ => Vec::new(),
    };
    build.step = Step::Into {
        over,
        columns: NewColumns::Refuse,
    };
    build
}

/// Queries a table until the end of the test, and checks each answer with `is_whole`.
async fn read(bench: &Bench, sql: &str, is_whole: fn(&str) -> bool, end: &AtomicBool, reads: &AtomicU64) {
    while !end.load(Ordering::Relaxed) {
        let answer = bench.rows(sql).await;
        let answer = answer.unwrap_or_else(|error| panic!("{sql}: {error}")).join("\n");
        assert!(is_whole(&answer), "{sql}: {answer}");
        reads.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_who_take_no_rows_hold_up_neither_readers_nor_builds() {
    let bench = bench();
    let mut answers = Vec::new();
    // More than there are connections at once.
    for _ in 0..3 * std::thread::available_parallelism().map_or(1, usize::from) + 12 {
        let query = Query::new("select range as x from range(100000) order by x");
        answers.push(
            bench
                .engine
                .query(query, &CancellationToken::new())
                .await
                .unwrap(),
        );
    }
    bench.build(replaced(1, "built", 0, Fate::Gone)).await.unwrap();
    for answer in &mut answers {
        assert_eq!(answer.collect().await.unwrap().len(), 100_000);
    }
}

/// Returns true if the answer `rows|rounds` contains exactly the rows of one round.
fn is_one_round(answer: &str) -> bool {
    answer == format!("{ROWS}|1")
}

/// Returns true if the answer `rows|rounds` contains all rows of every round so far.
fn is_all_rounds(answer: &str) -> bool {
    let numbers: Vec<u64> = answer
        .split('|')
        .filter_map(|number| number.parse().ok())
        .collect();
    matches!(numbers.as_slice(), [rows, rounds] if *rows == ROWS * rounds)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_tables_that_are_rebuilt_see_all_rows_of_one_build_and_no_error() {
    let bench = bench();
    let first = put(3, "merged", 0, Over::SameKey);
    let first = Build {
        step: Step::Replace,
        ..first
    };
    bench.build(first).await.unwrap();
    bench.build(replaced(1, "replaced", 0, Fate::Gone)).await.unwrap();
    bench.build(replaced(2, "kept", 0, Fate::Trash)).await.unwrap();
    bench.build(replaced(4, "appended", 0, Fate::Gone)).await.unwrap();
    bench
        .build(view(5, "seen", "select * from replaced"))
        .await
        .unwrap();
    let (end, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    let rebuild = async {
        for round in 1..=rounds() {
            bench
                .build(replaced(1, "replaced", round, Fate::Gone))
                .await
                .unwrap();
            bench
                .build(replaced(2, "kept", round, Fate::Trash))
                .await
                .unwrap();
            bench.build(put(3, "merged", round, Over::SameKey)).await.unwrap();
            bench
                .build(put(4, "appended", round, Over::Nothing))
                .await
                .unwrap();
            bench
                .build(view(5, "seen", "select * from replaced"))
                .await
                .unwrap();
        }
        end.store(true, Ordering::Relaxed);
    };
    let of = |table: &str| format!("select count(*), count(distinct round) from {table}");
    let tables = [
        of("replaced"),
        of("kept"),
        of("merged"),
        of("appended"),
        of("seen"),
    ];
    let [first, second, third, fourth, fifth] = &tables;
    tokio::join!(
        rebuild,
        read(&bench, first, is_one_round, &end, &reads),
        read(&bench, second, is_one_round, &end, &reads),
        read(&bench, third, is_one_round, &end, &reads),
        read(&bench, fourth, is_all_rounds, &end, &reads),
        read(&bench, fifth, is_one_round, &end, &reads),
    );
    let reads = reads.into_inner();
    assert!(reads > rounds(), "{reads} reads beside {} rounds", rounds());
    println!("{reads} reads beside {} rebuilds of 5 outputs", rounds());
}

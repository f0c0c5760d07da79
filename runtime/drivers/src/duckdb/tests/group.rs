//! Tests of builds that share a transaction.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};

use super::*;
use crate::olap::{Check, Gravity, Rows};

/// A query that runs longer than any test.
const SLOW: &str = "select sum(a.i * b.i) as x from range(100000000) a(i), range(100000) b(i)";

/// Returns a bench with this number of connections, and queries that hold all of them.
async fn held(places: usize) -> (Bench, Vec<Rows>) {
    let bench = bench_with(|options| options.connections = NonZeroUsize::new(places).unwrap());
    let mut rows = Vec::new();
    for _ in 0..places {
        let query = Query::new("select * from range(100000000)");
        rows.push(bench.engine.query(query, &bench.cancel).await.unwrap());
    }
    (bench, rows)
}

/// Runs builds that all wait before the first one starts.
async fn together(builds: &[Build]) -> (Bench, Vec<Result<Built, BuildError>>) {
    let (bench, rows) = held(1).await;
    let all = join_all(
        builds
            .iter()
            .map(|build| bench.engine.build(build, &bench.cancel)),
    );
    // Each future of the first is polled before the second runs.
    let release = async { drop(rows) };
    let (done, ()) = futures::join!(all, release);
    (bench, done)
}

/// Returns a build of a table whose single row is the id of its transaction.
fn told(n: u128) -> Build {
    table(n, &format!("t{n}"), "select txid_current() as t")
}

async fn transactions(bench: &Bench, count: u128) -> usize {
    let all: Vec<String> = (0..count).map(|n| format!("select t from t{n}")).collect();
    let sql = format!("select count(distinct t) from ({})", all.join(" union all "));
    bench.one(&sql).await.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn builds_that_wait_share_a_transaction() {
    let builds: Vec<Build> = (0..40).map(told).collect();
    let (bench, done) = together(&builds).await;
    for (build, built) in builds.iter().zip(done) {
        let built = built.unwrap();
        assert_eq!((built.tag, built.rows), (build.tag, Some(1)));
    }
    let transactions = transactions(&bench, 40).await;
    assert!((3..40).contains(&transactions), "{transactions}");
    let outputs = bench.outputs().await;
    assert_eq!(outputs.len(), 40);
    assert!(outputs.iter().all(|output| output.record.is_some()));
    assert_eq!(bench.after_a_kill().outputs().await, outputs);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_build_costs_its_group_nothing() {
    let mut builds: Vec<Build> = (0..8).map(told).collect();
    builds[3].sql = "select error('broken') as t".into();
    builds[5].checks = vec![Check {
        sql: "select 1".into(),
        gravity: Gravity::Undoes,
        otherwise: None,
        keep: 0,
    }];
    let (bench, done) = together(&builds).await;
    for (n, built) in done.iter().enumerate() {
        match n {
            3 => assert!(
                matches!(built, Err(BuildError::Failed(Failure::Sql(error))) if error.message.contains("broken")),
                "{built:?}"
            ),
            5 => assert!(matches!(built, Err(BuildError::Undone(_))), "{built:?}"),
            _ => assert!(built.is_ok(), "{built:?}"),
        }
    }
    assert_eq!(bench.outputs().await.len(), 6);
    assert_eq!(bench.after_a_kill().outputs().await.len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_that_takes_long_holds_up_no_other() {
    let mut builds: Vec<Build> = (0..6).map(told).collect();
    builds[2].sql = SLOW.into();
    let cancel = CancellationToken::new();
    let (bench, rows) = held(2).await;
    let slow = bench.engine.build(&builds[2], &cancel);
    let others = builds.iter().enumerate().filter(|(n, _)| *n != 2);
    let others = others.map(|(_, build)| bench.engine.build(build, &bench.cancel));
    let others = async {
        let done = join_all(others).await;
        cancel.cancel();
        done
    };
    let (slow, others, ()) = futures::join!(slow, others, async { drop(rows) });
    assert_eq!(slow, Err(BuildError::Failed(Failure::Interrupted)));
    assert!(others.iter().all(Result::is_ok), "{others:?}");
    assert_eq!(bench.outputs().await.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_first_to_work_makes_its_own_build() {
    let (bench, rows) = held(2).await;
    let cancel = CancellationToken::new();
    let mut endless = told(0);
    endless.sql = SLOW.into();
    // It waits since before the other, and is not polled while that one comes to work.
    let mut endless = Box::pin(bench.engine.build(&endless, &cancel));
    assert!(futures::poll!(&mut endless).is_pending());
    let brief = told(1);
    let mut brief = Box::pin(bench.engine.build(&brief, &bench.cancel));
    assert!(futures::poll!(&mut brief).is_pending());
    drop(rows);
    brief.await.unwrap();
    cancel.cancel();
    assert_eq!(endless.await, Err(BuildError::Failed(Failure::Interrupted)));
}

/// Creates a named pipe, which blocks a statement that reads it until a writer comes.
fn pipe(bench: &Bench) -> std::path::PathBuf {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let path = bench.folder.path().join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_is_made_in_no_transaction_that_began_before_what_it_reads_was_committed() {
    let bench = bench_with(|options| options.connections = NonZeroUsize::new(2).unwrap());
    let versions = |n| table(1, "read", &format!("select {n} as x"));
    bench.build(versions(1)).await.unwrap();
    let path = pipe(&bench);
    let waits = "select r.x, p.line from read r, read_csv('PATH', header = false, auto_detect = false, \
                 columns = {'line': 'VARCHAR'}) p";
    let first = table(2, "first", &waits.replace("PATH", path.to_str().unwrap()));
    let mut first = Box::pin(bench.engine.build(&first, &bench.cancel));
    assert!(futures::poll!(&mut first).is_pending());
    // It can be opened once the statement reads from it.
    let opened = tokio::task::spawn_blocking(|| std::fs::File::options().write(true).open(path));
    let mut writer = opened.await.unwrap().unwrap();
    let second = Build {
        tag: Tag {
            build: Uuid::from_u128(99),
            ..versions(2).tag
        },
        ..versions(2)
    };
    bench.build(second).await.unwrap();
    // Nobody but the first has a place from here on, until it has ended.
    let rows = bench
        .engine
        .query(Query::new("select * from range(100000000)"), &bench.cancel)
        .await
        .unwrap();
    let reader = table(3, "reader", "select x from read");
    let mut reader = Box::pin(bench.engine.build(&reader, &bench.cancel));
    assert!(futures::poll!(&mut reader).is_pending());
    std::io::Write::write_all(&mut writer, b"line\n").unwrap();
    drop(writer);
    first.await.unwrap();
    drop(rows);
    reader.await.unwrap();
    assert_eq!(bench.one("select x from first").await, "1");
    assert_eq!(bench.one("select x from reader").await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_build_leaves_its_group_alone() {
    let builds: Vec<Build> = (0..6).map(told).collect();
    let (bench, rows) = held(1).await;
    {
        let mut dropped = Box::pin(bench.engine.build(&builds[0], &bench.cancel));
        assert!(futures::poll!(&mut dropped).is_pending());
    }
    let others = builds[1..]
        .iter()
        .map(|build| bench.engine.build(build, &bench.cancel));
    let (others, ()) = futures::join!(join_all(others), async { drop(rows) });
    assert!(others.iter().all(Result::is_ok), "{others:?}");
    assert_eq!(bench.outputs().await.len(), 5);
    bench.build(builds[0].clone()).await.unwrap();
}

/// Builds chains of outputs, each reading the one before and requested as soon as that one is built.
#[tokio::test(flavor = "multi_thread")]
async fn an_output_holds_what_the_last_builds_above_it_made() {
    const ROUNDS: u64 = 12;
    const CHAINS: u128 = 8;
    const LINKS: u128 = 4;
    for seed in 0..3 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let bench = bench();
        for round in 1..=ROUNDS {
            let chains = (0..CHAINS).map(|chain| {
                let builds: Vec<Build> = (0..LINKS)
                    .map(|link| {
                        let (n, kind) = match rng.random_bool(0.7) || link == 0 {
                            true => (chain * LINKS + link, OutputKind::Table),
                            false => (chain * LINKS + link, OutputKind::View),
                        };
                        let sql = match link {
                            0 => format!("select {round} as x"),
                            _ => format!("select x from o{}", n - 1),
                        };
                        let mut build = build(n, &format!("o{n}"), kind, &sql);
                        build.tag.build = Uuid::from_u128(u128::from(round) << 64 | n);
                        build
                    })
                    .collect();
                let engine = &bench.engine;
                let cancel = &bench.cancel;
                async move {
                    for build in &builds {
                        engine.build(build, cancel).await.unwrap();
                    }
                }
            });
            join_all(chains).await;
            for n in 0..CHAINS * LINKS {
                let found = bench.one(&format!("select x from o{n}")).await;
                assert_eq!(found, round.to_string(), "seed {seed}, round {round}, o{n}");
            }
        }
    }
}

/// Expects each output to be that of its last successful build, despite failed and cancelled builds beside it.
#[tokio::test(flavor = "multi_thread")]
async fn outputs_are_those_of_the_builds_that_were_told_to_be_made() {
    const ROUNDS: u64 = 40;
    const OUTPUTS: u128 = 12;
    for seed in 0..3 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let bench = bench();
        let mut expected: BTreeMap<u128, u64> = BTreeMap::new();
        for round in 1..=ROUNDS {
            let chosen: Vec<u128> = (0..OUTPUTS).filter(|_| rng.random_bool(0.6)).collect();
            let cancel = CancellationToken::new();
            let builds = chosen.iter().map(|n| {
                let kind = match rng.random_bool(0.5) {
                    true => OutputKind::Table,
                    false => OutputKind::View,
                };
                let sql = match rng.random_range(0..10) {
                    0 if kind == OutputKind::Table => "select error('broken') as x".to_owned(),
                    1 => "select x from nothing_of_this_name".to_owned(),
                    _ => format!("select {round} as x"),
                };
                let mut build = build(*n, &format!("o{n}"), kind, &sql);
                build.tag.build = Uuid::from_u128(u128::from(seed) << 96 | u128::from(round) << 64 | *n);
                build.took = (!rng.random_bool(0.8)).then_some(Duration::from_secs(1));
                (build, rng.random_bool(0.15))
            });
            let builds: Vec<(Build, bool)> = builds.collect();
            let done = join_all(builds.iter().map(|(build, is_cancelled)| {
                let cancel = if *is_cancelled { &cancel } else { &bench.cancel };
                bench.engine.build(build, cancel)
            }));
            let turns = rng.random_range(0..2_000);
            let cancelling = async {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
                cancel.cancel();
            };
            let (done, ()) = futures::join!(done, cancelling);
            for (n, built) in chosen.iter().zip(&done) {
                match built {
                    Ok(_) => drop(expected.insert(*n, round)),
                    Err(BuildError::Failed(Failure::Interrupted | Failure::Sql(_))) => {}
                    Err(error) => panic!("seed {seed}, round {round}: {error:?}"),
                }
            }
            for (n, round) in &expected {
                let found = bench.one(&format!("select x from o{n}")).await;
                assert_eq!(found, round.to_string(), "seed {seed}, o{n}");
            }
        }
        let outputs = bench.outputs().await;
        assert_eq!(outputs.len(), expected.len(), "seed {seed}");
        assert!(outputs.iter().all(|output| output.record.is_some()));
        assert_eq!(bench.after_a_kill().outputs().await, outputs, "seed {seed}");
    }
}

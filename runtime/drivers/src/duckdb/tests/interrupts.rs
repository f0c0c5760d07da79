//! Tests of interrupting work.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::*;

/// A query that runs longer than any test.
const SLOW: &str = "select sum(a.i * b.i) as x from range(100000000) a(i), range(100000) b(i)";

/// The promised time limit, plus a margin for a busy machine.
const PROMISED: Duration = Duration::from_millis(1_000);

/// Starts `work`, cancels it, and returns how long it ran on.
async fn cancelled<T>(cancel: &CancellationToken, work: impl Future<Output = T>) -> (T, Duration) {
    let cancelling = async {
        // Long enough to be in the midst of it, and nothing depends on that.
        tokio::time::sleep(Duration::from_millis(30)).await;
        cancel.cancel();
        Instant::now()
    };
    let (done, at) = futures::join!(work, cancelling);
    (done, at.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_build_ends_soon_and_changes_nothing() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    for kind in [OutputKind::Table, OutputKind::View] {
        let cancel = CancellationToken::new();
        let mut slow = build(1, "a", kind, SLOW);
        slow.checks = vec![crate::olap::Check {
            sql: format!("{SLOW} having x < 0"),
            gravity: crate::olap::Gravity::Undoes,
            otherwise: None,
            keep: 0,
        }];
        let (done, lasted) = cancelled(&cancel, bench.engine.build(&slow, &cancel)).await;
        assert_eq!(done, Err(BuildError::Failed(Failure::Interrupted)));
        assert!(lasted < PROMISED, "{lasted:?}");
    }
    assert_eq!(bench.one("select x from a").await, "1");
    assert_eq!(bench.listed().await, ["a table 1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_build_is_interrupted() {
    let bench = bench_with(|options| options.connections = NonZeroUsize::MIN);
    let slow = table(1, "a", SLOW);
    let begun = bench.engine.build(&slow, &bench.cancel);
    assert!(
        tokio::time::timeout(Duration::from_millis(30), begun)
            .await
            .is_err()
    );
    let at = Instant::now();
    // The only place in the engine is free again.
    assert_eq!(bench.one("select 1").await, "1");
    assert!(at.elapsed() < PROMISED, "{:?}", at.elapsed());
}

#[tokio::test]
async fn who_waits_for_a_place_can_be_cancelled() {
    let bench = bench_with(|options| options.connections = NonZeroUsize::MIN);
    let query = Query::new("select * from range(100000000)");
    let rows = bench.engine.query(query, &bench.cancel).await.unwrap();
    let cancel = CancellationToken::new();
    let waiting = table(1, "a", "select 1");
    let (done, _) = cancelled(&cancel, bench.engine.build(&waiting, &cancel)).await;
    assert_eq!(done, Err(BuildError::Failed(Failure::Interrupted)));
    drop(rows);
    bench.build(waiting).await.unwrap();
}

#[tokio::test]
async fn a_cancelled_token_does_no_work_at_all() {
    let bench = bench();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let done = bench.engine.build(&table(1, "a", "select 1"), &cancel).await;
    assert_eq!(done, Err(BuildError::Failed(Failure::Interrupted)));
    assert!(!bench.path().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_at_any_moment_leaves_what_is_reported() {
    const ROUNDS: u64 = 60;
    const LASTING: u64 = 12;
    let bench = bench();
    bench.build(table(1, "a", "select 0 as x")).await.unwrap();
    let mut expected = 0;
    let mut interrupted = 0;
    for round in 1..=ROUNDS {
        let cancel = CancellationToken::new();
        // A build that lasts is always cancelled in time, however fast the
        // engine is; the others end at about the moment of their cancel.
        let lasts = round % LASTING == 0;
        let sql = if lasts {
            SLOW.into()
        } else {
            format!("select {round} as x")
        };
        let next = table(1, "a", &sql);
        let pause = Duration::from_micros(round * 150);
        let cancelling = async {
            tokio::time::sleep(pause).await;
            cancel.cancel();
        };
        let (done, ()) = futures::join!(bench.engine.build(&next, &cancel), cancelling);
        match done {
            Ok(_) => expected = round,
            Err(BuildError::Failed(Failure::Interrupted)) => interrupted += 1,
            Err(error) => panic!("{error:?}"),
        }
        assert_eq!(bench.one("select x from a").await, expected.to_string());
    }
    assert_eq!(
        bench.after_a_kill().one("select x from a").await,
        expected.to_string()
    );
    assert!(
        interrupted >= ROUNDS / LASTING,
        "a build that lasts was not cancelled: {interrupted}"
    );
}

/// Creates a named pipe. Returns its path, and an SQL expression of the path that does not contain it as a whole.
fn pipe_path(bench: &Bench) -> (PathBuf, String) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let pipe = bench.folder.path().join("pipe.csv");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let expression = format!("'{}/pipe' || '.csv'", bench.folder.path().display());
    (pipe, expression)
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_waits_for_a_pipe_is_ended_by_a_cancellation_and_by_its_time_limit() {
    let bench = bench();
    let (_, path) = pipe_path(&bench);
    for reader in ["read_csv", "read_text", "read_json"] {
        let cancel = CancellationToken::new();
        let build = table(1, "a", &format!("from {reader}({path})"));
        let (done, _) = cancelled(&cancel, bench.engine.build(&build, &cancel)).await;
        assert_eq!(done, Err(BuildError::Failed(Failure::Interrupted)), "{reader}");
    }
    let timeout = Duration::from_millis(50);
    let query = Query {
        sql: format!("from read_csv({path})"),
        limit: None,
        timeout: Some(timeout),
        ..Query::default()
    };
    let done = match bench.engine.query(query, &bench.cancel).await {
        Ok(mut rows) => rows.collect().await.unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(done, QueryError::Timeout(timeout));
    assert_eq!(bench.one("select 1").await, "1", "the engine goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_waits_for_a_silent_writer_of_a_pipe_is_ended() {
    let bench = bench();
    let (pipe, path) = pipe_path(&bench);
    let cancel = CancellationToken::new();
    let build = table(1, "a", &format!("from read_csv({path})"));
    let opening = async {
        // It can be opened once the statement reads from it.
        let opened = tokio::task::spawn_blocking(|| std::fs::File::options().write(true).open(pipe));
        let writer = opened.await.unwrap().unwrap();
        cancel.cancel();
        writer
    };
    let (done, _writer) = futures::join!(bench.engine.build(&build, &cancel), opening);
    assert_eq!(done, Err(BuildError::Failed(Failure::Interrupted)));
}

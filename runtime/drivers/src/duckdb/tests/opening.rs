//! Tests of opening and closing the file.

use super::*;
use crate::duckdb::FileProof;
use crate::olap::{Access, OpenError, Stamp};

fn stamp(bench: &Bench) -> Option<Stamp> {
    let proof = FileProof::read(&bench.path()).unwrap();
    proof.map(|proof| proof.to_stamp())
}

#[tokio::test]
async fn the_proof_holds_until_somebody_writes() {
    let bench = bench();
    assert_eq!(stamp(&bench), None);
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    let proof = bench.engine.close().await.unwrap().unwrap();
    assert!(proof.as_str().ends_with(r#""wal":null}"#), "{proof:?}");
    assert_eq!(stamp(&bench).as_ref(), Some(&proof));

    let again = Engine::new(bench.engine.options().clone());
    again
        .build(&table(1, "a", "select 2 as x"), &bench.cancel)
        .await
        .unwrap();
    assert_ne!(stamp(&bench).as_ref(), Some(&proof));
    let next = again.close().await.unwrap().unwrap();
    assert_ne!(next, proof);
    assert_eq!(stamp(&bench), Some(next));
}

#[tokio::test]
async fn a_file_that_nobody_needed_is_neither_made_nor_opened() {
    let bench = bench();
    assert_eq!(bench.engine.close().await.unwrap(), None);
    assert!(!bench.path().exists());
    std::fs::write(bench.path(), "not a database").unwrap();
    let engine = Engine::new(bench.engine.options().clone());
    assert_eq!(engine.close().await.unwrap(), stamp(&bench));
}

#[tokio::test]
async fn nothing_is_done_after_closing() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    bench.engine.close().await.unwrap();
    let done = bench.build(table(1, "a", "select 2 as x")).await;
    assert_eq!(done, Err(BuildError::Failed(Failure::Closed)));
    assert!(bench.rows("select 1").await.is_err());
    bench.engine.close().await.unwrap();
}

#[tokio::test]
async fn a_damaged_file_is_left_as_it_is() {
    let bench = bench();
    bench
        .build(table(1, "a", "select range as x from range(100000)"))
        .await
        .unwrap();
    bench.engine.close().await.unwrap();
    let good = std::fs::read(bench.path()).unwrap();
    let spoil = |from: usize, to: usize| {
        let mut bytes = good.clone();
        bytes[from..to].fill(0xa5);
        bytes
    };
    let cases = [
        ("no database", b"hello, this is no database at all".repeat(999)),
        ("spoilt header", spoil(0, 64)),
        ("spoilt headers", spoil(4_096, 12_288)),
        ("spoilt blocks", spoil(12_288, good.len())),
        ("a stub", good[..100].to_vec()),
    ];
    for (case, bytes) in cases {
        std::fs::write(bench.path(), &bytes).unwrap();
        let before = stamp(&bench);
        let engine = Engine::new(bench.engine.options().clone());
        let Err(error) = engine.open(&bench.cancel).await else {
            panic!("{case}: opened")
        };
        assert!(
            matches!(&error, Failure::Open(OpenError::Damaged { .. })),
            "{case}: {error:?}"
        );
        engine.close().await.unwrap();
        assert_eq!(std::fs::read(bench.path()).unwrap(), bytes, "{case}");
        assert_eq!(stamp(&bench), before, "{case}");
    }
}

#[tokio::test]
async fn a_damaged_log_is_left_as_it_is() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    let copy = bench.after_a_kill();
    let wal = super::super::proof::wal_path(&copy.path());
    let mut bytes = std::fs::read(&wal).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 16].fill(0xa5);
    std::fs::write(&wal, &bytes).unwrap();
    let error = copy.engine.open(&copy.cancel).await.unwrap_err();
    assert!(
        matches!(&error, Failure::Open(OpenError::Damaged { .. })),
        "{error:?}"
    );
    assert_eq!(std::fs::read(&wal).unwrap(), bytes);
}

#[tokio::test]
async fn a_file_that_another_process_holds_is_told_apart() {
    // Locks do not hold within one process, so another has to be asked: this test's own program.
    const HOLDER: &str = "WATERSHED_TEST_HOLDS";
    if let Ok(path) = std::env::var(HOLDER) {
        let engine = Engine::new(Options::new(path, "."));
        engine.open(&CancellationToken::new()).await.unwrap();
        println!("held");
        // Until the asking test closes the pipe.
        std::io::stdin().read_line(&mut String::new()).unwrap();
        return;
    }
    let bench = bench();
    let mut holder = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "--nocapture",
            "duckdb::tests::opening::a_file_that_another_process_holds_is_told_apart",
        ])
        .env(HOLDER, bench.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let said = std::io::BufReader::new(holder.stdout.take().unwrap());
    let mut lines = std::io::BufRead::lines(said);
    assert!(lines.any(|line| line.unwrap().contains("held")));
    let error = bench.engine.open(&bench.cancel).await.unwrap_err();
    assert!(
        matches!(&error, Failure::Open(OpenError::Locked { .. })),
        "{error:?}"
    );
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    bench.engine.open(&bench.cancel).await.unwrap();
}

/// Returns a read-only engine on the file of another one.
fn looking_at(bench: &Bench) -> Bench {
    let mut options = bench.engine.options().clone();
    options.access = Access::ReadOnly;
    Bench {
        folder: tempfile::tempdir().unwrap(),
        engine: Engine::new(options),
        cancel: CancellationToken::new(),
    }
}

#[tokio::test]
async fn looking_changes_nothing() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    let outputs = bench.outputs().await;
    let proof = bench.engine.close().await.unwrap();
    let looking = looking_at(&bench);
    assert_eq!(looking.one("select x from a").await, "1");
    assert_eq!(looking.outputs().await, outputs);
    assert!(matches!(
        looking.build(table(1, "a", "select 2")).await,
        Err(BuildError::Failed(Failure::Sql(_)))
    ));
    assert!(looking.drop_output(1).await.is_err());
    assert_eq!(looking.engine.close().await.unwrap(), proof);
    assert_eq!(stamp(&bench), proof);
}

#[tokio::test]
async fn looking_sees_what_a_killed_process_left_in_the_log() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    bench
        .build(view(2, "v", "select x + 1 as y from a"))
        .await
        .unwrap();
    let killed = bench.after_a_kill();
    let before = stamp(&killed);
    let proof = FileProof::read(&killed.path()).unwrap();
    assert!(proof.is_some_and(|proof| proof.wal.is_some()));
    let looking = looking_at(&killed);
    assert_eq!(looking.one("select x, y from a, v").await, "1|2");
    assert_eq!(looking.listed().await, ["a table 1", "v view 2"]);
    assert_eq!(looking.engine.close().await.unwrap(), before);
}

#[tokio::test]
async fn looking_at_nothing_makes_nothing() {
    let bench = bench();
    let looking = looking_at(&bench);
    let error = looking.engine.open(&looking.cancel).await.unwrap_err();
    assert!(
        matches!(&error, Failure::Open(OpenError::Missing { .. })),
        "{error:?}"
    );
    assert_eq!(stamp(&bench), None);
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_said() {
    let bench = bench_with(|options| options.path = options.root.join("nowhere/main.duckdb"));
    let error = bench.engine.open(&bench.cancel).await.unwrap_err();
    assert!(matches!(&error, Failure::Open(OpenError::Io { .. })), "{error:?}");
}

#[tokio::test]
async fn memory_is_sixty_percent_of_what_the_engine_sees() {
    let told = |bench: Bench| async move { bench.one("select current_setting('memory_limit')").await };
    assert_eq!(
        told(bench_with(|options| options.memory_limit = Some(512 << 20))).await,
        "512.0 MiB"
    );
    let default = told(bench_with(|options| options.memory_limit = None)).await;
    assert!(default.ends_with("iB"), "{default}");
}

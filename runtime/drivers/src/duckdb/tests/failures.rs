//! Tests of failures: lack of memory, disk space or extensions.

use super::*;

#[tokio::test]
async fn a_missing_extension_is_named_and_not_fetched() {
    let bench = bench();
    for (sql, extension) in [
        ("from 'https://example.com/a.parquet'", "httpfs"),
        ("select st_point(1, 2)", "spatial"),
        ("from read_xlsx('a.xlsx')", "excel"),
        ("from sqlite_scan('a', 'b')", "sqlite_scanner"),
    ] {
        let error = bench.build(table(1, "a", sql)).await.unwrap_err();
        let BuildError::Failed(failure @ Failure::MissingExtension { .. }) = &error else {
            panic!("{sql}: {error:?}")
        };
        assert!(
            failure.to_string().contains(&format!("`{extension}`")),
            "{failure}"
        );
        assert!(failure.hint().unwrap().contains(extension));
    }
}

#[tokio::test]
async fn a_build_without_enough_memory_is_run_once_more_alone() {
    let bench = bench_with(|options| {
        options.memory_limit = Some(64 << 20);
        options.temp_limit = Some(0);
    });
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    let hungry = "select list(i || repeat('x', 1000)) as l from range(1000000) t(i)";
    let error = bench.build(table(1, "a", hungry)).await.unwrap_err();
    let BuildError::Failed(Failure::OutOfMemory {
        setting, limit, peak, ..
    }) = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!(limit, "64.0 MiB");
    assert!(peak.ends_with("MiB"), "{peak}");
    assert_eq!(*setting, "memory_limit");
    assert_eq!(bench.one("select x from a").await, "1");
}

#[tokio::test]
async fn a_second_try_succeeds_when_the_memory_was_anothers() {
    let bench = bench_with(|options| {
        options.memory_limit = Some(128 << 20);
        options.temp_limit = Some(0);
        options.connections = NonZeroUsize::new(2).unwrap();
    });
    // A reader in the midst of an aggregate holds half of the memory until it is read to its end.
    let holder = "select i, list(repeat('x', 100)) from range(300000) t(i) group by i";
    let query = Query::new(holder);
    let mut rows = bench.engine.query(query, &bench.cancel).await.unwrap();
    let hungry = table(
        1,
        "a",
        "select md5(i::varchar) as m, count(*) as n from range(500000) t(i) group by all",
    );
    let (built, read) = futures::join!(bench.build(hungry), async {
        let mut read = 0;
        while let Some(chunk) = rows.next().await {
            read += chunk.map_or(0, |rows| rows.len());
        }
        read
    });
    // Whether the first try already had room depends on how fast the reader was.
    assert!(built.unwrap().attempts <= 2);
    assert!(read <= 300_000);
}

#[tokio::test]
async fn room_for_what_does_not_fit_into_memory_is_bounded() {
    let bench = bench_with(|options| {
        options.memory_limit = Some(32 << 20);
        options.temp_limit = Some(1 << 20);
    });
    let sorted = "select i, md5(i::varchar) as m, md5(m) as n from range(700000) t(i) order by n";
    let error = bench.build(table(1, "a", sorted)).await.unwrap_err();
    // Which of the two limits is met first depends on the engine's threads.
    assert!(
        matches!(&error, BuildError::Failed(Failure::OutOfMemory { .. })),
        "{error:?}"
    );
    assert_eq!(bench.one("select 1").await, "1");
}

#[tokio::test]
async fn after_a_fatal_error_the_file_is_opened_anew() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    bench.engine.parts.gate.declare_broken();
    assert_eq!(bench.one("select x from a").await, "1");
    bench.build(table(1, "a", "select 2 as x")).await.unwrap();
    assert_eq!(bench.one("select x from a").await, "2");
    assert_eq!(bench.listed().await, ["a table 1"]);
}

/// Requires the right to mount a file system; passes without a check otherwise.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_leaves_the_last_good_tables() {
    let folder = tempfile::tempdir().unwrap();
    let mount = |args: &[&str]| {
        let output = std::process::Command::new(args[0]).args(&args[1..]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let target = folder.path().to_str().unwrap();
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", target]) {
        return;
    }
    let full = async {
        let engine = Engine::new(options(folder.path()));
        let cancel = CancellationToken::new();
        engine
            .build(&table(1, "a", "select 1 as x"), &cancel)
            .await
            .unwrap();
        let big = "select i, md5(i::varchar) as m, md5(m) as n from range(2000000) t(i)";
        let error = engine.build(&table(1, "a", big), &cancel).await.unwrap_err();
        assert!(
            matches!(&error, BuildError::Failed(Failure::DiskFull { .. })),
            "{error:?}"
        );
        let bench = Bench {
            folder: tempfile::tempdir().unwrap(),
            engine,
            cancel,
        };
        assert_eq!(bench.one("select x from a").await, "1");
        bench.build(table(2, "b", "select 2 as x")).await.unwrap();
        let bench = bench.reopened().await;
        assert_eq!(bench.one("select a.x, b.x from a, b").await, "1|2");
        bench.engine.close().await.unwrap();
    };
    let done = futures::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(full)).await;
    assert!(mount(&["umount", "-l", target]));
    if let Err(panic) = done {
        std::panic::resume_unwind(panic);
    }
}

//! Tests of statements around a build, which affect nothing outside its connection.

use super::*;
use crate::olap::Partitions as _;

fn hooked(sql: &str, before: &[&str], after: &[&str]) -> Build {
    let mut build = table(1, "a", sql);
    build.hooks = hooks(before, after);
    build
}

fn hooks(before: &[&str], after: &[&str]) -> Hooks {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Hooks {
        before: owned(before),
        after: owned(after),
    }
}

/// Query for everything that statements could leave to other connections.
const SHARED: &str = "select (select value from duckdb_settings() where name = 'threads'), \
    (select value from duckdb_settings() where name = 'default_null_order'), \
    (select value from duckdb_settings() where name = 'memory_limit'), \
    (select string_agg(database_name, ' ' order by database_name) from duckdb_databases() where not internal), \
    (select count(*) from duckdb_secrets()), \
    (select count(*) from duckdb_tables() where temporary), getvariable('v')";

#[tokio::test]
async fn a_build_sees_what_its_statements_made_and_nobody_else_does() {
    let bench = bench();
    let before = bench.one(SHARED).await;
    let built = hooked(
        "select x, getvariable('v') as v, (select n from side.t) as n, \
         current_setting('threads') as threads from mine",
        &[
            "create temp table mine as select 1 as x; set variable v = 'here; and there'",
            "attach ':memory:' as side; create table side.t as select 7 as n; set threads = 1; \
             set default_null_order = 'nulls_first'; set memory_limit = '500MB'; \
             create secret s (type http, bearer_token 'abc')",
        ],
        &["update main.a set x = x + 1; select count(*) from mine"],
    );
    bench.build(built).await.unwrap();
    assert_eq!(
        bench.one("select x, v, n, threads from a").await,
        "2|here; and there|7|1"
    );
    assert_eq!(bench.one(SHARED).await, before);
    // And once more: nothing stands in the way of the same statements.
    let again = hooked("select 1 as x", &["attach ':memory:' as side"], &[]);
    bench.build(again).await.unwrap();
    assert_eq!(bench.one(SHARED).await, before);
}

#[tokio::test]
async fn a_failure_before_the_build_leaves_the_output_as_it_was() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    for (text, says) in [
        ("set variable v = 1; select nothing", "nothing"),
        ("begin; set variable v = 1", "transaction open"),
        ("attach ':memory:' as side; use side", "another database"),
    ] {
        let failed = bench
            .build(hooked(
                "select 2 as x",
                &["select 1", text],
                &["select 1/0 from none"],
            ))
            .await;
        let Err(BuildError::Before(hook)) = failed else {
            panic!("{text}: {failed:?}")
        };
        assert_eq!(hook.text, 1, "the second text");
        assert!(hook.error.message.contains(says), "{}", hook.error.message);
        assert_eq!(bench.one("select x from a").await, "1");
    }
    let before = bench.one(SHARED).await;
    assert!(!before.contains("side"), "{before}");
}

#[tokio::test]
async fn a_failure_after_the_build_leaves_the_new_rows() {
    let bench = bench();
    let failed = bench
        .build(hooked("select 2 as x", &[], &["select 1; select nothing"]))
        .await;
    let Err(BuildError::After { hook, build: None }) = failed else {
        panic!("{failed:?}")
    };
    assert_eq!((hook.text, hook.error.offset), (0, Some(17)), "{hook:?}");
    assert_eq!(bench.one("select x from a").await, "2");
    assert_eq!(bench.outputs().await.len(), 1);
}

#[tokio::test]
async fn statements_after_a_failed_build_are_run_and_their_error_joins_its() {
    let bench = bench();
    let failed = bench
        .build(hooked(
            "select missing",
            &[],
            &["create table told as select 1 as x"],
        ))
        .await;
    assert!(
        matches!(failed, Err(BuildError::Failed(Failure::Sql(_)))),
        "{failed:?}"
    );
    assert_eq!(bench.one("select x from told").await, "1", "what is stored stays");
    let failed = bench
        .build(hooked(
            "select missing",
            &[],
            &["create table told as select 1 as x"],
        ))
        .await;
    let Err(error @ BuildError::After { build: Some(_), .. }) = failed else {
        panic!("{failed:?}")
    };
    assert!(
        matches!(error.build_error(), BuildError::Failed(Failure::Sql(_))),
        "{error:?}"
    );
    // The table is a person's, though this process made it.
    let taken = bench.build(table(2, "told", "select 2 as x")).await;
    assert!(matches!(taken, Err(BuildError::NameTaken { .. })), "{taken:?}");
}

#[tokio::test]
async fn a_partition_whose_last_statements_fail_is_not_staged() {
    let bench = bench();
    let mut step = super::partitions::step(1, "k", "select getvariable('v') as x", 0);
    step.hooks = hooks(&["set variable v = 5"], &["select nothing"]);
    let failed = bench
        .engine
        .stage(std::slice::from_ref(&step), &bench.cancel)
        .await;
    assert!(
        matches!(failed, Err(BuildError::After { build: None, .. })),
        "{failed:?}"
    );
    assert_eq!(bench.engine.runs(uid(1), &bench.cancel).await.unwrap().len(), 0);
    step.hooks.after.clear();
    bench
        .engine
        .stage(std::slice::from_ref(&step), &bench.cancel)
        .await
        .unwrap();
    bench.build(super::partitions::published(1, "a")).await.unwrap();
    assert_eq!(bench.one("select x from a").await, "5");
}

#[tokio::test]
async fn statements_are_interrupted_before_and_after_a_build() {
    const LONG: &str = "select count(*) from range(100000000000) t(i) where i % 7 = 3";
    for (before, after) in [(&[LONG][..], &[][..]), (&[], &[LONG])] {
        let bench = bench();
        let build = hooked("select 1 as x", before, after);
        let cancel = bench.cancel.child_token();
        let (failed, ()) = tokio::join!(bench.engine.build(&build, &cancel), async {
            bench.engine.open(&bench.cancel).await.unwrap();
            cancel.cancel();
        });
        let interrupted = matches!(failed, Err(BuildError::Failed(Failure::Interrupted)));
        assert!(interrupted, "{failed:?}");
    }
}

#[tokio::test]
async fn builds_with_statements_wait_for_each_other() {
    let bench = bench();
    let mut second = hooked(
        "select n as x from side.t",
        &["attach ':memory:' as side; create table side.t as select 2 as n"],
        &[],
    );
    (second.name, second.tag.uid) = ("b".into(), uid(2));
    let first = hooked(
        "select n as x from side.t",
        &["attach ':memory:' as side; create table side.t as select 1 as n"],
        &[],
    );
    let (first, second) = tokio::join!(bench.build(first), bench.build(second));
    first.unwrap();
    second.unwrap();
    assert_eq!(bench.one("select a.x, b.x from a, b").await, "1|2");
}

#[tokio::test]
async fn rows_are_written_in_the_order_that_is_asked_for() {
    let bench = bench();
    let mut build = table(1, "a", "select range as x from range(5) -- all of them");
    build.order_by = Some("x % 2, x desc".into());
    bench.build(build.clone()).await.unwrap();
    assert_eq!(
        bench
            .one("select string_agg(x, ' ') from (select x from a order by rowid)")
            .await,
        "4 2 0 3 1"
    );
    build.order_by = Some("y".into());
    let failed = bench.build(build.clone()).await;
    assert!(matches!(failed, Err(BuildError::Order(_))), "{failed:?}");
    build.sql = "select nothing".into();
    let failed = bench.build(build).await;
    assert!(
        matches!(failed, Err(BuildError::Failed(Failure::Sql(_)))),
        "{failed:?}"
    );
}

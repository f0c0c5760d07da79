//! Tests of releasing memory.

use super::super::transaction::Work;
use super::*;
use crate::duckdb::checkpoint::checkpoint;
use crate::duckdb::failure::Aftermath;
use crate::olap::OwnFile as _;

/// Number of builds that make a release of memory worthwhile.
const ENOUGH: u128 = 64;

/// Half of the least memory of four tables, in bytes: a table has at least one block.
const SOME: i64 = 2 * (256 << 10);

impl Bench {
    async fn rebuild(&self, builds: u128) {
        for n in 0..builds {
            let name = format!("t{}", n % 4);
            let sql = "select i, hash(i) as h from range(1000) t(i)";
            self.build(table(n % 4 + 1, &name, sql)).await.unwrap();
        }
    }

    /// Returns the memory that caches blocks of the file, in bytes.
    async fn held(&self) -> i64 {
        let rows = self
            .rows("select sum(memory_usage_bytes)::bigint from duckdb_memory()")
            .await;
        rows.unwrap()[0].parse().unwrap()
    }

    async fn limit(&self) -> String {
        let mut rows = self.rows("select current_setting('memory_limit')").await.unwrap();
        rows.remove(0)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_many_builds_the_engine_holds_nothing_and_may_use_what_it_might_before() {
    let bench = bench();
    bench.rebuild(ENOUGH).await;
    checkpoint(&bench.engine, &bench.cancel).await.unwrap();
    let (held, limit) = (bench.held().await, bench.limit().await);
    assert!(held > SOME, "{held}");
    bench.engine.give_back_memory().await;
    assert!(bench.held().await < SOME);
    assert_eq!(bench.limit().await, limit);
    // It can still do what needs memory, and has lost nothing.
    let rows = bench
        .rows("select count(distinct hash(i)) from range(300000) t(i)")
        .await
        .unwrap();
    assert_eq!(rows, ["300000"]);
    assert_eq!(
        bench.rows("select count(distinct h) from t3").await.unwrap(),
        ["1000"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_given_back_after_a_few_builds_or_while_somebody_works() {
    let bench = bench();
    bench.rebuild(ENOUGH - 1).await;
    checkpoint(&bench.engine, &bench.cancel).await.unwrap();
    bench.engine.give_back_memory().await;
    assert!(bench.held().await > SOME, "too few changes");
    bench.rebuild(1).await;
    let others = super::super::gate::Company::Others;
    let pass = bench.engine.enter(&bench.cancel, others).await.unwrap();
    bench.engine.give_back_memory().await;
    drop(pass);
    assert!(bench.held().await > SOME, "somebody works");
    bench.engine.give_back_memory().await;
    assert!(bench.held().await < SOME);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warm_copy_of_large_tables_is_kept() {
    let bench = bench();
    // Noise, so that it can't be stored in less than 24 MB.
    let sql =
        "select hash(i) as a, hash(i + 1) as b, hash(i + 2) as c, hash(i + 3) as d from range(750000) t(i)";
    bench.build(table(9, "large", sql)).await.unwrap();
    bench.rebuild(ENOUGH).await;
    checkpoint(&bench.engine, &bench.cancel).await.unwrap();
    bench
        .rows("select max(a), max(b), max(c), max(d) from large")
        .await
        .unwrap();
    let held = bench.held().await;
    assert!(held > 16 << 20, "{held}");
    bench.engine.give_back_memory().await;
    assert_eq!(bench.held().await, held);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_checkpoint_can_be_made_the_file_stays_open_and_the_limit_what_it_was() {
    let bench = bench();
    bench.rebuild(ENOUGH).await;
    let limit = bench.limit().await;
    // The engine makes none beside a transaction that writes.
    let writing = bench.engine.checkout().unwrap();
    let run = |sql: &str| Work::uninterrupted(&writing).run(sql, &[]).map(drop);
    run("ATTACH ':memory:' AS mark").unwrap();
    run("BEGIN").unwrap();
    run("CREATE TABLE written AS SELECT 7 AS i").unwrap();
    bench.engine.give_back_memory().await;
    run("COMMIT").unwrap();
    bench.engine.put_back(writing, Aftermath::Usable);
    let marks = "select count(*) from duckdb_databases() where database_name = 'mark'";
    assert_eq!(bench.rows(marks).await.unwrap(), ["1"], "it was not opened anew");
    assert_eq!(bench.limit().await, limit);
    assert_eq!(bench.rows("select i from main.written").await.unwrap(), ["7"]);
    // After as many builds again it is tried again.
    bench.rebuild(ENOUGH).await;
    checkpoint(&bench.engine, &bench.cancel).await.unwrap();
    assert!(bench.held().await > SOME);
    bench.engine.give_back_memory().await;
    assert!(bench.held().await < SOME);
}

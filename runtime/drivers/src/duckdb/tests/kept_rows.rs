//! Tests of kept rows that failed data tests.

use super::*;
use crate::olap::{KeptRows, TestedRows as _, Trash as _, TrashLimits};

impl Bench {
    async fn keep(&self, n: u128, table: &str, test: &str, rows: usize) {
        let kept = KeptRows {
            test: test.into(),
            rows: (0..rows).map(|row| format!("{{\"x\":\"it's {row}\"}}")).collect(),
        };
        let done = self.engine.keep(uid(n), table, vec![kept], &self.cancel);
        done.await.unwrap();
    }

    /// Returns a line `table test rows` for all kept rows.
    async fn kept(&self) -> String {
        self.one(
            "select coalesce(string_agg(line, '; ' order by line), '') from \
             (select concat_ws(' ', table_name, test, count(*)) as line from _watershed.failures \
              group by table_name, test)",
        )
        .await
    }
}

#[tokio::test]
async fn what_is_kept_of_an_owner_is_always_that_of_its_last_tests() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    bench.keep(1, "a", "small", 250).await;
    bench.keep(2, "b", "other", 1).await;
    assert_eq!(bench.kept().await, "a small 250; b other 1");
    assert_eq!(
        bench
            .one("select data->>'x' from _watershed.failures where number = 250")
            .await,
        "it's 249"
    );
    bench.keep(1, "a", "large", 2).await;
    assert_eq!(bench.kept().await, "a large 2; b other 1");
    let none = bench.engine.keep(uid(2), "b", Vec::new(), &bench.cancel);
    none.await.unwrap();
    assert_eq!(bench.kept().await, "a large 2");
}

#[tokio::test]
async fn what_is_kept_follows_its_output_and_goes_with_it() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    bench.keep(1, "a", "small", 1).await;
    let rename = Rename {
        uid: uid(1),
        to: "c".into(),
        record: None,
    };
    bench.engine.rename(&rename, &bench.cancel).await.unwrap();
    assert_eq!(bench.kept().await, "c small 1");
    bench
        .engine
        .drop_output(uid(1), Guard::Free, &bench.cancel)
        .await
        .unwrap();
    assert_eq!(bench.kept().await, "");
}

#[tokio::test]
async fn what_is_older_than_the_trash_keeps_tables_goes() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    bench.keep(1, "a", "small", 1).await;
    bench.engine.forget_old(&bench.cancel).await.unwrap();
    assert_eq!(bench.kept().await, "a small 1");
    bench.engine.limit(TrashLimits {
        keep: std::time::Duration::ZERO,
        ..TrashLimits::default()
    });
    // A time that is past by any clock.
    bench
        .by_hand(&["update _watershed.failures set tested_at = '2001-01-01'"])
        .await;
    bench.engine.forget_old(&bench.cancel).await.unwrap();
    assert_eq!(bench.kept().await, "");
}

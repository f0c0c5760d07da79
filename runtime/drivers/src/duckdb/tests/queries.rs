//! Tests of queries.

use std::time::Duration;

use watershed_dialect::{Dialect as _, ENGINE};

use super::*;
use crate::duckdb::checkpoint::checkpoint;
use crate::olap::{Column, SoleError, Value};

fn query(sql: &str) -> Query {
    Query::new(sql)
}

#[tokio::test]
async fn columns_and_rows_come_typed() {
    let bench = bench();
    let mut rows = bench
        .engine
        .query(query("select 1 as a, 'x' as a, [1.5] as l;"), &bench.cancel)
        .await
        .unwrap();
    let column = |name: &str, data_type: &str| Column {
        name: name.into(),
        data_type: data_type.into(),
    };
    let expected = [
        column("a", "INTEGER"),
        column("a", "VARCHAR"),
        column("l", "DECIMAL(2,1)[]"),
    ];
    assert_eq!(rows.columns(), expected);
    let list = Value::List(vec![Value::Decimal { digits: 15, scale: 1 }]);
    assert_eq!(
        rows.collect().await.unwrap(),
        [[Value::Integer(1), Value::Text("x".into()), list]]
    );
}

#[tokio::test]
async fn parameters_are_bound_by_name_and_by_place() {
    let bench = bench();
    let ask = async |sql: &str, values: &[(&str, Value)]| {
        let query = Query {
            parameters: values
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            ..query(sql)
        };
        bench.engine.query(query, &bench.cancel).await?.collect().await
    };
    let huge = Value::Integer(-170_141_183_460_469_231_731_687_303_715_884_105_727);
    let values = [
        Value::Null,
        Value::Boolean(true),
        Value::Integer(i128::from(i64::MIN)),
        huge,
        Value::Double(0.1),
        Value::Text("';--".into()),
        Value::Blob(vec![0, 255]),
    ];
    for value in values {
        let found = ask("select $a as x", &[("a", value.clone())]).await.unwrap();
        assert_eq!(found, [[value]]);
    }
    let both = [("1", Value::Integer(1)), ("2", Value::Integer(2))];
    let found = ask("select ? - ?", &both).await.unwrap();
    assert_eq!(found, [[Value::Integer(-1)]]);
    for (sql, said) in [
        (
            "select $1",
            "the statement has no parameter `$2`, which has a value",
        ),
        (
            "select $1 + $2 + $3",
            "the parameter `$3` of the statement has no value",
        ),
        (
            "select 1",
            "the statement has no parameters, and `$1` has a value",
        ),
    ] {
        assert_eq!(
            ask(sql, &both).await,
            Err(QueryError::Parameters(said.to_owned())),
            "{sql}"
        );
    }
}

#[tokio::test]
async fn a_limit_cuts_the_answer_and_says_so() {
    let bench = bench();
    for (limit, length, truncated) in [
        (0, 0, true),
        (5, 5, true),
        (4_999, 4_999, true),
        (5_000, 5_000, false),
    ] {
        let query = Query {
            limit: Some(limit),
            ..query("select * from range(5000)")
        };
        let mut rows = bench.engine.query(query, &bench.cancel).await.unwrap();
        assert_eq!(rows.collect().await.unwrap().len(), length);
        assert_eq!(rows.truncated(), truncated, "{limit}");
    }
}

#[tokio::test]
async fn an_endless_answer_is_cut_without_being_computed() {
    let bench = bench();
    let query = Query {
        limit: Some(10),
        ..query("select * from range(1000000000000)")
    };
    let mut rows = bench.engine.query(query, &bench.cancel).await.unwrap();
    assert_eq!(rows.collect().await.unwrap().len(), 10);
}

#[tokio::test]
async fn only_what_reads_is_run() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    let file = bench.folder.path().join("out.csv");
    let copy = format!("copy (select 1) to '{}'", file.display());
    for sql in [
        "drop table a",
        "delete from a",
        "insert into a values (2)",
        "create temp table t as select 1",
        "set memory_limit = '1GB'",
        "attach 'x.db'",
        "call pragma_version()",
        "checkpoint",
        "install httpfs",
        "load json",
        "begin",
        "commit",
        "with w as (select 1) insert into a select * from w",
        "export database 'x'",
        "vacuum",
        &copy,
        &format!("explain analyze {copy}"),
        &format!("explain (analyze, format json) {copy}"),
        &format!("/* select */ explain analyze -- select\n {copy}"),
    ] {
        let error = bench.rows(sql).await.unwrap_err();
        let refused = matches!(
            &error,
            QueryError::NotReading | QueryError::Failed(Failure::Sql(_))
        );
        assert!(refused, "{sql}: {error:?}");
    }
    assert!(!file.exists());
    assert_eq!(bench.one("select x from a").await, "1");
}

#[tokio::test]
async fn everything_that_reads_is_run() {
    let bench = bench();
    bench
        .build(table(1, "a", "select 1 as x, 'k' as k"))
        .await
        .unwrap();
    for sql in [
        "from a",
        "table a",
        "values (1)",
        "(select 1)",
        "with w as (select 1 as x) select * from w",
        "describe a",
        "show tables",
        "summarize a",
        "explain select 1",
        "explain analyze select * from a",
        "pivot a on k using sum(x)",
        "unpivot a on x",
    ] {
        let rows = bench
            .rows(sql)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert!(!rows.is_empty(), "{sql}");
    }
}

#[tokio::test]
async fn exactly_one_statement_is_run() {
    let bench = bench();
    assert_eq!(bench.rows("").await, Err(QueryError::NotOne(SoleError::None)));
    let several = bench.rows("select 1; select 2").await;
    assert_eq!(
        several,
        Err(QueryError::NotOne(SoleError::Several { offset: 10 }))
    );
}

#[tokio::test]
async fn an_error_has_its_place() {
    let bench = bench();
    let error = bench.rows("select nope").await.unwrap_err();
    assert!(
        matches!(&error, QueryError::Failed(Failure::Sql(e)) if e.offset == Some(7)),
        "{error:?}"
    );
    let late = "select case when i = 90000 then error('late') end from range(100000) t(i)";
    let error = bench.rows(late).await.unwrap_err();
    assert!(
        matches!(&error, QueryError::Failed(Failure::Sql(e)) if e.message == "late"),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_type_without_a_form_outside_is_named() {
    let bench = bench();
    let error = bench.rows("select 1 as a, 1::BIGNUM as b").await.unwrap_err();
    assert_eq!(
        error,
        QueryError::Unshowable {
            column: "b".into(),
            data_type: "BIGNUM".into()
        }
    );
    assert_eq!(
        bench
            .one("select 12345678901234567890123456789012345678901234567890::BIGNUM::VARCHAR")
            .await
            .len(),
        50
    );
}

#[tokio::test]
async fn a_query_that_takes_too_long_is_ended() {
    let bench = bench();
    let timeout = Duration::from_millis(20);
    let slow = "select count(*) from range(100000000) a, range(100000) b";
    let query = Query {
        timeout: Some(timeout),
        ..query(slow)
    };
    let error = match bench.engine.query(query, &bench.cancel).await {
        Err(error) => error,
        Ok(mut rows) => rows.collect().await.unwrap_err(),
    };
    assert_eq!(error, QueryError::Timeout(timeout));
    assert_eq!(bench.one("select 1").await, "1");
}

#[tokio::test]
async fn a_reader_who_reads_too_slowly_is_ended_too() {
    let bench = bench();
    bench.engine.open(&bench.cancel).await.unwrap();
    let timeout = Duration::from_millis(300);
    let query = Query {
        timeout: Some(timeout),
        ..query("select * from range(10000000)")
    };
    let mut rows = bench.engine.query(query, &bench.cancel).await.unwrap();
    // Alone in the engine only once the reader's transaction has ended.
    checkpoint(&bench.engine, &bench.cancel).await.unwrap();
    let mut last = None;
    while let Some(chunk) = rows.next().await {
        last = Some(chunk);
    }
    assert_eq!(last.unwrap().unwrap_err(), QueryError::Timeout(timeout));
}

#[tokio::test]
async fn a_dropped_answer_frees_its_place() {
    let bench = bench_with(|options| options.connections = NonZeroUsize::MIN);
    for _ in 0..3 {
        let rows = bench
            .engine
            .query(query("select * from range(100000000)"), &bench.cancel)
            .await
            .unwrap();
        drop(rows);
    }
    assert_eq!(bench.one("select 1").await, "1");
}

#[tokio::test]
async fn readers_see_the_old_table_until_the_new_one_is_whole() {
    let bench = bench();
    bench
        .build(table(1, "a", "select i from range(100000) t(i)"))
        .await
        .unwrap();
    let mut rows = bench
        .engine
        .query(query("select i from a"), &bench.cancel)
        .await
        .unwrap();
    let first = rows.next().await.unwrap().unwrap().len();
    bench.build(table(1, "a", "select 'other' as j")).await.unwrap();
    let rest = rows.collect().await.unwrap().len();
    assert_eq!(first + rest, 100_000);
    drop(rows);
    assert_eq!(bench.one("select j from a").await, "other");
}

#[tokio::test]
async fn relative_paths_start_from_the_projects_root() {
    let bench = bench();
    bench.write("data.csv", "a\n1\n2\n");
    bench.write("more.csv", "a\n3\n");
    assert_eq!(bench.one("select sum(a) from 'data.csv'").await, "3");
    assert_eq!(bench.one("select sum(a) from read_csv('*.csv')").await, "6");
}

#[tokio::test]
async fn times_do_not_depend_on_the_machine() {
    let bench = bench();
    assert_eq!(bench.one("select current_setting('TimeZone')").await, "UTC");
    assert_eq!(
        bench.one("select '2013-01-01 05:00:00-05'::timestamptz").await,
        "2013-01-01 10:00:00+00"
    );
}

#[tokio::test]
async fn the_views_that_the_engine_has_by_itself_are_known_by_name() {
    let bench = bench();
    let own =
        "SELECT view_name FROM duckdb_views() WHERE internal AND schema_name = 'main' ORDER BY view_name";
    let mut rows = bench.engine.query(query(own), &bench.cancel).await.unwrap();
    let names = ENGINE.own_views().iter();
    let names: Vec<_> = names.map(|name| vec![Value::Text((*name).into())]).collect();
    assert_eq!(rows.collect().await.unwrap(), names);
}

#[tokio::test]
async fn reading_is_no_change_and_whatever_may_make_a_macro_is_one() {
    let bench = bench();
    bench.by_hand(&["create table t as select 1 as i"]).await;
    // A connection that is made for a query counts, and there are few of them.
    let mut has_stayed = false;
    for _ in 0..64 {
        let before = bench.engine.changes();
        bench.one("select i from t").await;
        has_stayed |= before.is_some() && bench.engine.changes() == before;
    }
    assert!(has_stayed, "queries count as changes");
    let before = bench.engine.changes().unwrap();
    bench.by_hand(&["create macro m() as 1"]).await;
    let made = bench.engine.changes().unwrap();
    assert!(made > before);
    let bench = bench.reopened().await;
    assert_eq!(bench.engine.changes(), None, "others may change the file");
    bench.one("select m()").await;
    assert!(bench.engine.changes().is_some());
    bench.engine.close().await.unwrap();
    assert_eq!(bench.engine.changes(), None);
}

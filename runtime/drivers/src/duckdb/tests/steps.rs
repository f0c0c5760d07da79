//! Putting rows into a table that stands there.

use super::*;
use crate::olap::{Check, ColumnsDiffer, Gravity, NewColumns, Over, StateQuery, Value};

/// A step of the owner that [`table`] builds for, with another build's number.
fn step(sql: &str, over: Over, columns: NewColumns) -> Build {
    let mut step = table(1, "a", sql);
    step.step = Step::Into { over, columns };
    step.tag.build = Uuid::from_u128(77);
    step.record = b"second".to_vec();
    step
}

fn append(sql: &str) -> Build {
    step(sql, Over::Nothing, NewColumns::Refuse)
}

fn merge(sql: &str) -> Build {
    let mut step = step(sql, Over::SameKey, NewColumns::Refuse);
    step.key = vec!["k".into()];
    step
}

/// Two rows: `1, 'one'` and `NULL, 'none'`.
async fn bench_with_rows() -> Bench {
    let bench = bench();
    let rows = "select * from (values (1, 'one'), (null, 'none')) t(k, v)";
    bench.build(table(1, "a", rows)).await.unwrap();
    bench
}

impl Bench {
    async fn pairs(&self) -> String {
        let rows = "select string_agg(concat_ws('=', coalesce(k::text, '-'), v), ' ' order by k, v) from a";
        self.one(rows).await
    }
}

#[tokio::test]
async fn appended_rows_join_those_that_are_there() {
    let bench = bench_with_rows().await;
    let built = bench.build(append("select 'two' as v, 2 as k")).await.unwrap();
    assert_eq!((built.rows, built.tag.build), (Some(3), Uuid::from_u128(77)));
    assert_eq!(
        bench.pairs().await,
        "1=one 2=two -=none",
        "columns go by their names"
    );
    let outputs = bench.outputs().await;
    assert_eq!(outputs[0].record.as_deref(), Some(&b"second"[..]));
    assert_eq!(
        (outputs[0].rows, outputs[0].tag.build),
        (Some(3), Uuid::from_u128(77))
    );
    assert_eq!(bench.after_a_kill().outputs().await, outputs);
}

#[tokio::test]
async fn merged_rows_take_the_place_of_those_with_their_key() {
    let bench = bench_with_rows().await;
    let rows = "select * from (values (1, 'uno'), (null, 'nada'), (3, 'tres')) t(k, v)";
    bench.build(merge(rows)).await.unwrap();
    assert_eq!(
        bench.pairs().await,
        "1=uno 3=tres -=nada",
        "NULL is a key like any other"
    );
}

#[tokio::test]
async fn two_new_rows_with_one_key_are_refused() {
    let bench = bench_with_rows().await;
    let error = bench
        .build(merge("select 5 as k, 'x' as v from range(2)"))
        .await
        .unwrap_err();
    let twice = BuildError::SameKey {
        first: "k = 5".into(),
    };
    assert_eq!(error, twice);
    assert_eq!(bench.pairs().await, "1=one -=none");
    let mut whole = table(1, "a", "select 5 as k, 'x' as v from range(2)");
    whole.key = vec!["k".into()];
    assert_eq!(
        bench.build(whole).await.unwrap_err(),
        twice,
        "in a whole build too"
    );
    assert_eq!(bench.pairs().await, "1=one -=none");
}

#[tokio::test]
async fn rows_of_a_group_take_the_place_of_the_whole_group() {
    let bench = bench();
    bench
        .build(table(1, "a", "select i as k, 'old' as v from range(6) t(i)"))
        .await
        .unwrap();
    let over = Over::SameValue("k % 3".into());
    let sql = "select 10 as k, 'new' as v";
    bench.build(step(sql, over, NewColumns::Refuse)).await.unwrap();
    assert_eq!(bench.pairs().await, "0=old 2=old 3=old 5=old 10=new");
}

#[tokio::test]
async fn a_step_without_rows_leaves_the_build_as_it_was() {
    let bench = bench_with_rows().await;
    let first = table(1, "a", "").tag;
    let empty_file = "select 'x' as another where false";
    for mut build in [append("select 1 as k, '' as v where false"), merge(empty_file)] {
        build.unless_rows = Some((first.build, b"looked again".to_vec()));
        let built = bench.build(build).await.unwrap();
        assert_eq!((built.tag, built.record), (first, b"looked again".to_vec()));
        let output = bench.outputs().await.remove(0);
        assert_eq!(output.tag, first);
        assert_eq!(output.record.as_deref(), Some(&b"looked again"[..]));
    }
    assert_eq!(bench.pairs().await, "1=one -=none");
}

#[tokio::test]
async fn other_columns_are_refused_left_out_or_added() {
    let bench = bench_with_rows().await;
    let sql = "select 2 as k, true as w";
    for over in [Over::Nothing, Over::SameKey] {
        let mut refused = step(sql, over, NewColumns::Refuse);
        refused.key = vec!["k".into()];
        let differ = ColumnsDiffer {
            added: vec!["w".into()],
            missing: vec!["v".into()],
        };
        assert_eq!(
            bench.build(refused).await.unwrap_err(),
            BuildError::Columns(differ)
        );
    }
    assert_eq!(bench.pairs().await, "1=one -=none");
    bench
        .build(step(sql, Over::Nothing, NewColumns::Leave))
        .await
        .unwrap();
    assert_eq!(bench.pairs().await, "1=one 2 -=none");
    bench
        .build(step("select 3 as k, true as w", Over::Nothing, NewColumns::Add))
        .await
        .unwrap();
    assert_eq!(bench.pairs().await, "1=one 2 3 -=none");
    assert_eq!(bench.one("select count(*) from a where w").await, "1");
    assert_eq!(bench.after_a_kill().one("select count(w) from a").await, "1");
}

#[tokio::test]
async fn a_failing_check_undoes_a_step_alone() {
    let bench = bench_with_rows().await;
    let mut build = append("select 2 as k, 'two' as v");
    build.checks = vec![Check {
        sql: "select * from a having count(*) > 2".into(),
        gravity: Gravity::Undoes,
        keep: 0,
    }];
    build.checks[0].sql = "select 1 from a group by all having count(*) > 2".into();
    assert!(matches!(
        bench.build(build).await.unwrap_err(),
        BuildError::Undone(_)
    ));
    assert_eq!(bench.pairs().await, "1=one -=none");
    assert_eq!(bench.outputs().await[0].tag, table(1, "a", "").tag);
}

#[tokio::test]
async fn the_state_is_read_after_the_step_and_kept_in_the_record() {
    fn put(record: &[u8], row: Vec<(String, Value)>) -> Vec<u8> {
        let row: Vec<String> = row
            .iter()
            .map(|(name, value)| format!(" {name}={value}"))
            .collect();
        [record, row.concat().as_bytes()].concat()
    }
    let bench = bench_with_rows().await;
    let mut build = append("select 9 as k, 'nine' as v");
    build.state = Some(StateQuery {
        sql: "select max(k) as top, date '2024-02-29' as day from a;".into(),
        put,
    });
    let built = bench.build(build.clone()).await.unwrap();
    assert_eq!(built.record, b"second top=9 day=2024-02-29");
    assert_eq!(bench.outputs().await[0].record, Some(built.record));
    build.state = Some(StateQuery {
        sql: "select 1 where false".into(),
        put,
    });
    assert_eq!(bench.build(build).await.unwrap().record, b"second");
}

#[tokio::test]
async fn a_table_that_is_gone_or_is_a_view_takes_no_rows() {
    let bench = bench();
    assert_eq!(
        bench.build(append("select 1 as k")).await.unwrap_err(),
        BuildError::Absent
    );
    bench.build(view(1, "a", "select 1 as k")).await.unwrap();
    assert_eq!(
        bench.build(append("select 1 as k")).await.unwrap_err(),
        BuildError::Absent
    );
    assert_eq!(bench.listed().await, ["a view 1"]);
}

#[tokio::test]
async fn places_in_errors_of_steps_are_those_of_the_callers_sql() {
    let bench = bench_with_rows().await;
    let sql = "select 1 as k, nope as v";
    for build in [append(sql), merge(sql)] {
        let Err(BuildError::Failed(Failure::Sql(error))) = bench.build(build).await else {
            panic!("an unknown column is taken")
        };
        assert_eq!(error.offset, Some(15), "{error:?}");
    }
    // What the first statement of a transaction broke does not stay broken.
    bench.build(append("select 2 as k, 'two' as v")).await.unwrap();
    assert_eq!(bench.pairs().await, "1=one 2=two -=none");
}

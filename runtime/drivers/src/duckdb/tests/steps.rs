//! Tests of insertions into an existing table.

use super::*;
use crate::olap::{Check, ColumnsDiffer, Gravity, NewColumns, Over, StateQuery, Value};

/// Returns a second build of the owner of [`table`], which inserts rows.
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

/// Returns a bench with the rows `1, 'one'` and `NULL, 'none'`.
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
            retyped: Vec::new(),
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
        otherwise: None,
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

/// Returns builds for all ways of inserting rows into an existing table, with the key `k`.
fn ways(sql: &str, columns: NewColumns) -> [Build; 3] {
    let by_key = Build {
        key: vec!["k".into()],
        ..step(sql, Over::SameKey, columns)
    };
    [
        step(sql, Over::Nothing, columns),
        by_key,
        step(sql, Over::SameValue("k".into()), columns),
    ]
}

#[tokio::test]
async fn a_value_that_the_columns_type_does_not_hold_is_refused_in_every_way() {
    for (old, new, kinds) in [
        ("10::bigint", "1.5::double", ["BIGINT", "DOUBLE"]),
        ("10::integer", "3000000000::bigint", ["INTEGER", "BIGINT"]),
        (
            "date '2024-01-01'",
            "timestamp '2024-01-03 10:30:00'",
            ["DATE", "TIMESTAMP"],
        ),
        ("1.5", "1.25", ["DECIMAL(2,1)", "DECIMAL(3,2)"]),
        ("7", "'07'", ["INTEGER", "VARCHAR"]),
        ("1.5::double", "9007199254740993", ["DOUBLE", "BIGINT"]),
        (
            "{'a': 1}",
            "{'a': 1, 'b': 2}",
            ["STRUCT(a INTEGER)", "STRUCT(a INTEGER, b INTEGER)"],
        ),
    ] {
        for columns in [NewColumns::Refuse, NewColumns::Leave] {
            for build in ways(&format!("select 1 as k, {new} as v"), columns) {
                let bench = bench();
                let first = table(1, "a", &format!("select 1 as k, {old} as v"));
                bench.build(first).await.unwrap();
                let over = build.step.clone();
                let before = bench.one("select v::varchar from a").await;
                let error = bench.build(build).await.unwrap_err();
                let told = format!(
                    "`v` is {} in the table and {} in the new rows",
                    kinds[0], kinds[1]
                );
                assert!(error.to_string().ends_with(&told), "{over:?}: {error}");
                assert_eq!(
                    bench.one("select string_agg(v::varchar) from a").await,
                    before,
                    "{over:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn values_that_lose_nothing_come_in_as_they_did() {
    for (old, new, kind, value) in [
        ("10::bigint", "1::integer", "BIGINT", "1"),
        ("10::integer", "1::bigint", "INTEGER", "1"),
        ("1.5::double", "3::bigint", "DOUBLE", "3.0"),
        (
            "timestamp '2024-01-01 10:30:00'",
            "date '2024-01-03'",
            "TIMESTAMP",
            "2024-01-03 00:00:00",
        ),
        ("1.25", "1.5", "DECIMAL(3,2)", "1.50"),
        ("'x'", "7", "VARCHAR", "7"),
        ("10", "null::varchar", "INTEGER", "-"),
        ("date '2024-01-01'", "null", "DATE", "-"),
        ("[date '2024-01-01']", "[]", "DATE[]", "[]"),
        (
            "{'a': 1, 'b': 2}",
            "{'b': 3::tinyint}",
            "STRUCT(a INTEGER, b INTEGER)",
            "{'a': NULL, 'b': 3}",
        ),
    ] {
        for build in ways(&format!("select 2 as k, {new} as v"), NewColumns::Refuse) {
            let bench = bench();
            bench
                .build(table(1, "a", &format!("select 1 as k, {old} as v")))
                .await
                .unwrap();
            let over = build.step.clone();
            bench.build(build).await.unwrap();
            let found = bench
                .one("select coalesce(v::varchar, '-') from a where k = 2")
                .await;
            assert_eq!(found, value, "{new} over {old}, {over:?}");
            assert_eq!(bench.one("select typeof(v) from a limit 1").await, kind);
        }
    }
}

#[tokio::test]
async fn a_column_becomes_wider_where_new_columns_are_added() {
    for (old, new, kind, values) in [
        ("10::bigint", "1.5::double", "DOUBLE", "10.0 1.5"),
        ("9007199254740993", "1.5::double", "", ""),
        ("10::integer", "1::bigint", "BIGINT", "10 1"),
        (
            "date '2024-01-01'",
            "timestamp '2024-01-03 10:30:00'",
            "TIMESTAMP",
            "2024-01-01 00:00:00 2024-01-03 10:30:00",
        ),
        ("1.5", "1.25", "DECIMAL(3,2)", "1.50 1.25"),
        ("7", "'07'", "", ""),
        ("null", "'07'", "VARCHAR", "07"),
        (
            "{'a': 1}",
            "{'b': 2, 'a': 5}",
            "STRUCT(a INTEGER, b INTEGER)",
            "{'a': 1, 'b': NULL} {'a': 5, 'b': 2}",
        ),
    ] {
        for mut build in ways(&format!("select 2 as k, {new} as v"), NewColumns::Add) {
            let bench = bench();
            bench
                .build(table(1, "a", &format!("select 1 as k, {old} as v")))
                .await
                .unwrap();
            build.checks.clear();
            let built = bench.build(build).await;
            if kind.is_empty() {
                assert!(
                    matches!(built, Err(BuildError::Columns(_))),
                    "{new} over {old}: {built:?}"
                );
                continue;
            }
            built.unwrap();
            assert_eq!(bench.one("select typeof(v) from a limit 1").await, kind);
            assert_eq!(
                bench.one("select string_agg(v, ' ' order by k) from a").await,
                values
            );
        }
    }
}

#[tokio::test]
async fn a_column_may_have_the_name_of_what_the_engine_hides_and_keys_may_be_null() {
    for name in ["rowid", "_rowid_", "old", "new", "value", "id", "k2"] {
        for over in [Over::SameKey, Over::SameValue(name_of_key(name))] {
            let bench = bench();
            let rows = |rows: &str| format!("select * from (values {rows}) t(k, \"{name}\", v)");
            let first = rows("(1, 7, 'a'), (2, 7, 'b'), (3, 8, 'c'), (null, null, 'n')");
            bench.build(table(1, "a", &first)).await.unwrap();
            let next = rows("(1, 7, 'A'), (null, null, 'N')");
            let mut build = step(&next, over.clone(), NewColumns::Refuse);
            build.key = match over {
                Over::SameKey => vec!["k".into()],
                _ => Vec::new(),
            };
            bench.build(build).await.unwrap();
            let found = bench.one("select string_agg(v, ' ' order by k, v) from a").await;
            assert_eq!(found, "A b c N", "{name}, {over:?}");
        }
    }
}

/// Returns an expression of the key that reads no other column.
fn name_of_key(_: &str) -> String {
    "k".to_owned()
}

#[tokio::test]
async fn keys_are_compared_as_values_of_the_tables_type() {
    let bench = bench();
    let first = "select * from (values ('07', 'a'), ('7', 'b')) t(k, v)";
    bench.build(table(1, "a", first)).await.unwrap();
    bench.build(merge("select 7 as k, 'c' as v")).await.unwrap();
    assert_eq!(bench.pairs().await, "07=a 7=c");
}

#[tokio::test]
async fn a_wide_table_takes_rows_by_their_types_too() {
    let bench = bench();
    let wide = |last: &str| {
        let columns: Vec<String> = (0..300).map(|n| format!("{n} as c{n}")).collect();
        format!("select {}, {last} as v", columns.join(", "))
    };
    bench.build(table(1, "a", &wide("1"))).await.unwrap();
    bench.build(append(&wide("2::smallint"))).await.unwrap();
    assert_eq!(bench.one("select sum(v) from a").await, "3");
    let error = bench.build(append(&wide("2.5"))).await.unwrap_err();
    assert!(matches!(error, BuildError::Columns(_)), "{error}");
}

//! Tests of builds.

use std::fs;

use watershed_dialect::{DuckDb, Quoting as _};

use super::*;
use crate::data_file::Form;
use crate::olap::{Check, Failing, Gravity, Location, Verdict};

#[tokio::test]
async fn a_table_carries_its_tag_and_record_from_the_first_moment() {
    let bench = bench();
    let built = bench
        .build(table(1, "a", "select * from range(3) t(i)"))
        .await
        .unwrap();
    assert_eq!(
        built,
        Built {
            rows: Some(3),
            tag: table(1, "a", "").tag,
            record: b"record of 1".to_vec(),
            attempts: 1,
            took: built.took,
            verdicts: Vec::new(),
        }
    );
    let expected = Output {
        location: Location::named("a"),
        kind: OutputKind::Table,
        tag: table(1, "a", "").tag,
        record: Some(b"record of 1".to_vec()),
        rows: Some(3),
    };
    assert_eq!(bench.outputs().await, std::slice::from_ref(&expected));
    assert_eq!(
        bench.after_a_kill().outputs().await,
        std::slice::from_ref(&expected)
    );
    assert_eq!(bench.reopened().await.outputs().await, [expected]);
}

#[tokio::test]
async fn what_is_not_ours_survives_and_is_named() {
    let bench = bench();
    bench.engine.open(&bench.cancel).await.unwrap();
    bench
        .by_hand(&[
            "create table Theirs as select 42 as x",
            "comment on table theirs is 'mine'",
        ])
        .await;
    let bench = bench.reopened().await;
    for kind in [OutputKind::Table, OutputKind::View] {
        let error = bench
            .build(build(1, "theirs", kind, "select 1"))
            .await
            .unwrap_err();
        assert_eq!(
            error,
            BuildError::NameTaken {
                name: "Theirs".into(),
                kind: OutputKind::Table
            }
        );
    }
    bench.build(table(1, "a", "select 1")).await.unwrap();
    let error = bench.rename(1, "THEIRS").await.unwrap_err();
    assert_eq!(
        error,
        RenameError::NameTaken {
            name: "Theirs".into(),
            kind: OutputKind::Table
        }
    );
    bench.drop_output(1).await.unwrap();
    assert_eq!(bench.one("select x from theirs").await, "42");
    assert_eq!(bench.listed().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_failed_build_leaves_the_last_good_output() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    let error = bench
        .build(view(1, "a", "select 'q'::int from nowhere"))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, BuildError::Failed(Failure::Sql(e)) if e.class == "catalog"),
        "{error:?}"
    );
    assert_eq!(bench.listed().await, ["a table 1"]);
    assert_eq!(bench.one("select x from a").await, "1");
}

#[tokio::test]
async fn a_failed_check_leaves_the_last_good_output() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    let mut next = table(1, "a", "select * from range(5) t(x)");
    next.checks = vec![
        check("select count(*) as n from a having n > 100"),
        check("select x, 'b' as y from a where x > 0; -- so"),
        check("select nope from a"),
        check("drop table a"),
        check("select 'q'::int from a"),
        check("select x from a where x > 3"),
    ];
    let Err(BuildError::Undone(verdicts)) = bench.build(next.clone()).await else {
        panic!("rows came back, and the build stands")
    };
    let first = ["1", "2", "3", "4"].map(|x| format!("x = {x}, y = b")).to_vec();
    let (rows, more, kept) = (4, false, Vec::new());
    assert_eq!(verdicts[0], Verdict::Holds);
    assert_eq!(
        verdicts[1],
        Verdict::Fails(Failing {
            rows,
            more,
            first,
            kept
        })
    );
    assert!(
        matches!(&verdicts[2], Verdict::Broken(error) if error.offset == Some(7)),
        "{verdicts:?}"
    );
    assert!(matches!(&verdicts[3], Verdict::Broken(_)), "{verdicts:?}");
    assert!(
        matches!(&verdicts[4], Verdict::Broken(error) if error.class == "conversion"),
        "{verdicts:?}"
    );
    assert_eq!(
        verdicts[5],
        Verdict::NotRun,
        "the one before it ended the transaction"
    );
    assert_eq!(bench.one("select x from a").await, "1");
}

#[tokio::test]
async fn checks_that_only_warn_leave_the_build_and_count_what_they_find() {
    let bench = bench();
    let mut build = table(1, "a", "select * from range(3000) t(x)");
    build.checks = vec![
        Check {
            gravity: Gravity::Warns,
            keep: 2_500,
            ..check("select x from a")
        },
        check("select x from a where x < 0"),
    ];
    let built = bench.build(build).await.unwrap();
    let Verdict::Fails(failing) = &built.verdicts[0] else {
        panic!("{built:?}")
    };
    assert_eq!((failing.rows, failing.first.len()), (3000, 5));
    assert_eq!(
        (failing.kept.len(), failing.kept[2_499].as_str()),
        (2_500, "{\"x\":2499}")
    );
    assert_eq!(built.verdicts[1], Verdict::Holds);
    assert_eq!(bench.one("select count(*) from a").await, "3000");
}

#[tokio::test]
async fn checks_of_what_stands_go_on_behind_one_that_ends_its_transaction() {
    let bench = bench();
    bench.build(table(1, "a", "select 'q' as x")).await.unwrap();
    let checks = [
        check("select x::int from a"),
        check("select x from a where x = 'z'"),
        check("from a"),
    ];
    let verdicts = bench
        .engine
        .check(&checks, &CancellationToken::new())
        .await
        .unwrap();
    assert!(matches!(&verdicts[0], Verdict::Broken(_)), "{verdicts:?}");
    assert_eq!(verdicts[1], Verdict::Holds);
    assert!(
        matches!(&verdicts[2], Verdict::Fails(failing) if failing.first == ["x = q"]),
        "{verdicts:?}"
    );
}

fn check(sql: &str) -> Check {
    Check {
        sql: sql.into(),
        gravity: Gravity::Undoes,
        otherwise: None,
        keep: 0,
    }
}

#[tokio::test]
async fn another_resources_output_is_moved_aside_and_found_again() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    bench.build(view(2, "b", "select 2 as x")).await.unwrap();
    bench.build(table(3, "a", "select 3 as x")).await.unwrap();
    bench.build(table(4, "b", "select 4 as x")).await.unwrap();
    let aside = |n: u128| format!("_watershed_aside_{}", uid(n).simple());
    let expected = [
        format!("{} table 1", aside(1)),
        format!("{} view 2", aside(2)),
        "a table 3".into(),
        "b table 4".into(),
    ];
    assert_eq!(bench.listed().await, expected);
    assert_eq!(bench.after_a_kill().listed().await, expected);
    bench.rename(1, "c").await.unwrap();
    bench.build(view(2, "d", "select 22 as x")).await.unwrap();
    assert_eq!(
        bench.listed().await,
        ["a table 3", "b table 4", "c table 1", "d view 2"]
    );
    assert_eq!(
        bench.one("select a.x, b.x, c.x, d.x from a, b, c, d").await,
        "3|4|1|22"
    );
}

#[tokio::test]
async fn names_that_nobody_would_choose_work() {
    let bench = bench();
    let names = [
        "select",
        "a b",
        "q\"q",
        "q'q",
        "über",
        "表",
        "; drop table x; --",
        "a.b",
        "%s",
        " ",
    ];
    for (n, name) in (1..).zip(names) {
        bench.build(table(n, name, "select 1 as x")).await.unwrap();
        bench.rename(n, &format!("{name}!")).await.unwrap();
        bench
            .build(view(n, &format!("{name}!"), "select 2 as x"))
            .await
            .unwrap();
        bench.rename(n, name).await.unwrap();
        let sql = format!("select x from {}", DuckDb.name(name));
        assert_eq!(bench.one(&sql).await, "2", "{name}");
    }
    assert_eq!(bench.outputs().await.len(), names.len());
    assert_eq!(bench.reopened().await.outputs().await.len(), names.len());
}

#[tokio::test]
async fn one_statement_is_built_and_never_a_second_one() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    for sql in [
        "select 1; drop table a",
        "select 1 as x;;select 2",
        "",
        "-- nothing",
        "drop table a",
        "select 1\0",
    ] {
        let error = bench.build(table(2, "b", sql)).await.unwrap_err();
        assert!(
            matches!(&error, BuildError::Failed(Failure::Sql(_))),
            "{sql}: {error:?}"
        );
    }
    assert_eq!(bench.listed().await, ["a table 1"]);
}

#[tokio::test]
async fn statements_of_every_shape_are_built() {
    let bench = bench();
    bench.write("data.csv", "a,b\n1,x\n2,y\n");
    let statements = [
        "select 1 as x -- the last line",
        "/* first */ with t as (select 1 as x) select * from t;",
        "from 'data.csv'",
        "values (1, 2)",
        "pivot (select 1 as v, 'k' as k) on k using sum(v)",
        "(select 1 as x) union all (select 2)",
        "select ';' as x",
    ];
    for (n, sql) in (1..).zip(statements) {
        bench
            .build(table(n, &format!("t{n}"), sql))
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    assert_eq!(bench.one("select a, b from t3 order by a").await, "1|x\n2|y");
}

#[tokio::test]
async fn places_in_errors_are_those_of_the_callers_sql() {
    let bench = bench();
    for (sql, offset) in [
        ("select 'ü', nope", 13),
        ("select 'ü' frm x y z", 16),
        ("select\n  'a'::int", 12),
        ("select * from nowhere", 14),
    ] {
        let error = bench.build(table(1, "ü b", sql)).await.unwrap_err();
        let BuildError::Failed(Failure::Sql(error)) = error else {
            panic!("{sql}: {error:?}")
        };
        assert_eq!(error.offset, Some(offset), "{sql}: {error:?}");
    }
}

#[tokio::test]
async fn dropping_takes_the_output_and_its_record() {
    let bench = bench();
    bench.build(table(1, "a", "select 1")).await.unwrap();
    bench.build(view(2, "b", "select 1")).await.unwrap();
    assert!(bench.drop_output(1).await.unwrap());
    assert!(!bench.drop_output(1).await.unwrap());
    assert!(bench.drop_output(2).await.unwrap());
    assert_eq!(bench.one("select count(*) from _watershed.records").await, "0");
    assert_eq!(bench.after_a_kill().listed().await, Vec::<String>::new());
}

#[tokio::test]
async fn an_output_is_adopted_by_another_tag() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    let from = table(1, "a", "").tag;
    let to = Tag {
        uid: uid(5),
        build: Uuid::from_u128(55),
    };
    assert!(
        bench
            .engine
            .retag(from, to, b"adopted", &bench.cancel)
            .await
            .unwrap()
    );
    assert!(
        !bench
            .engine
            .retag(from, to, b"again", &bench.cancel)
            .await
            .unwrap()
    );
    let outputs = bench.outputs().await;
    assert_eq!(outputs.len(), 1);
    assert_eq!((outputs[0].tag, outputs[0].rows), (to, Some(1)));
    assert_eq!(outputs[0].record.as_deref(), Some(&b"adopted"[..]));
    assert_eq!(bench.after_a_kill().outputs().await, outputs);
    assert_eq!(bench.one("select x from a").await, "1");
}

#[tokio::test]
async fn many_build_at_once() {
    let bench = bench();
    let builds = (1..=40).map(|n| {
        let engine = bench.engine.clone();
        async move {
            let build = table(n, &format!("t{}", n % 30), &format!("select {n} as x"));
            engine.build(&build, &CancellationToken::new()).await
        }
    });
    for built in futures::future::join_all(builds).await {
        built.unwrap();
    }
    assert_eq!(bench.outputs().await.len(), 40);
    assert_eq!(bench.after_a_kill().outputs().await, bench.outputs().await);
}

#[tokio::test]
async fn what_a_reader_makes_of_nothing_is_no_answer() {
    let bench = bench();
    let write = |content: &str| fs::write(bench.folder.path().join("d"), content).unwrap();
    let build = |form, reader: &str| Build {
        reads: Some(form),
        put_columns: Some(|record, _| record.to_vec()),
        ..table(
            1,
            "a",
            &format!("from {reader}('{}/d')", bench.folder.path().display()),
        )
    };
    let forms = [
        (Form::Csv, "read_csv", "id\n1\n", ["", "\n\n\n", "  \n \n"]),
        (Form::Json, "read_json", "{\"id\": 1}", ["", "[]", "{}\n{}"]),
    ];
    for (form, reader, good, nothing) in forms {
        write(good);
        bench.build(build(form, reader)).await.unwrap();
        for content in nothing {
            write(content);
            let done = bench.build(build(form, reader)).await;
            assert_eq!(done, Err(BuildError::NoColumns), "{reader} {content:?}");
            assert_eq!(bench.one("select id from a").await, "1");
        }
    }
    // A file without a header, and one of values that are objects of any sort.
    write("x\n\n");
    bench.build(build(Form::Csv, "read_csv")).await.unwrap();
    write("[\"x\"]");
    bench.build(build(Form::Json, "read_json")).await.unwrap();
}

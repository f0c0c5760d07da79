//! Tests of exports to files.

use std::time::Duration;

use jiff::tz::{TimeZone, offset};

use super::*;
use crate::olap::{Existing, Export, ExportError, FileFormat, Layout, Look, Value};

fn export(bench: &Bench, sql: &str, name: &str) -> Export {
    let file = bench.folder.path().join(name);
    Export {
        query: Query::new(sql),
        format: FileFormat::from_path(&file).unwrap(),
        file,
        existing: Existing::Keep,
        layout: Layout::default(),
    }
}

#[tokio::test]
async fn parameters_of_an_exported_query_are_bound_in_every_form() {
    let bench = bench();
    for name in ["a.csv", "a.parquet", "a.xlsx"] {
        let mut export = export(&bench, "select $1 as x, $2 as y from range(3)", name);
        export.layout.guards_formulas = true;
        let values = [Value::Text("it's".into()), Value::Integer(7)];
        export.query.parameters = ["1", "2"].map(str::to_owned).into_iter().zip(values).collect();
        let exported = bench.engine.export(&export, &bench.cancel).await;
        assert_eq!(exported.unwrap().rows, Some(3), "{name}");
    }
    let csv = std::fs::read_to_string(bench.folder.path().join("a.csv")).unwrap();
    assert_eq!(csv, "x,y\nit's,7\nit's,7\nit's,7\n");
}

/// Returns the names of the files in the bench's folder, without the engine's.
fn names(bench: &Bench) -> Vec<String> {
    let entries = std::fs::read_dir(bench.folder.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with("main.duckdb")).collect();
    names.sort();
    names
}

#[tokio::test]
async fn an_answer_is_written_in_the_form_that_the_file_s_name_asks_for() {
    let bench = bench();
    let sql =
        "select i as id, 'a,\"b\"' as text, null as nothing from range(3) t(i) order by i desc -- all of it";
    for name in ["a.csv", "a.PARQUET"] {
        let exported = bench
            .engine
            .export(&export(&bench, sql, name), &bench.cancel)
            .await
            .unwrap();
        let file = bench.folder.path().join(name);
        assert_eq!(exported.rows, Some(3));
        assert_eq!(exported.bytes, file.metadata().unwrap().len());
    }
    let csv = std::fs::read_to_string(bench.folder.path().join("a.csv")).unwrap();
    assert_eq!(
        csv,
        "id,text,nothing\n2,\"a,\"\"b\"\"\",\n1,\"a,\"\"b\"\"\",\n0,\"a,\"\"b\"\"\",\n"
    );
    let parquet = bench
        .one("select id, text, nothing from read_parquet('a.PARQUET')")
        .await;
    assert_eq!(parquet.lines().next(), Some("2|a,\"b\"|NULL"));
    assert_eq!(names(&bench), ["a.PARQUET", "a.csv"], "no part is left");
}

#[tokio::test]
async fn every_statement_that_reads_can_be_written() {
    let bench = bench();
    bench
        .build(table(1, "a", "select range as x from range(10)"))
        .await
        .unwrap();
    let statements = [
        "from a;",
        "table a",
        "values (1), (2)",
        "with b as (from a) from b",
        "describe a",
        "show tables",
        "summarize a",
        "pivot a on x in (1, 2) using count(*)",
    ];
    for (number, sql) in statements.into_iter().enumerate() {
        let export = export(&bench, sql, &format!("{number}.csv"));
        let exported = bench.engine.export(&export, &bench.cancel).await;
        assert!(
            exported.as_ref().is_ok_and(|it| it.rows > Some(0)),
            "{sql}: {exported:?}"
        );
    }
    let mut some = export(&bench, "select x from a order by x desc", "some.csv");
    some.query.limit = Some(2);
    bench.engine.export(&some, &bench.cancel).await.unwrap();
    let text = std::fs::read_to_string(&some.file).unwrap();
    assert_eq!(text, "x\n9\n8\n");
}

#[tokio::test]
async fn what_does_more_than_read_is_refused() {
    let bench = bench();
    bench.build(table(1, "a", "select 1 as x")).await.unwrap();
    for sql in [
        "drop table a",
        "copy a to 'b.csv'",
        "insert into a values (2) returning x",
        "select 1) to 'b.csv'; drop table a; select (1",
        "select 1; select 2",
        "with b as (select 1) insert into a from b",
    ] {
        let refused = bench
            .engine
            .export(&export(&bench, sql, "c.csv"), &bench.cancel)
            .await;
        assert!(
            matches!(refused, Err(ExportError::Query(_))),
            "{sql}: {refused:?}"
        );
    }
    assert_eq!(bench.one("select x from a").await, "1");
    assert!(names(&bench).is_empty());
}

#[tokio::test]
async fn a_file_that_is_there_stays_unless_it_is_to_be_replaced_by_a_whole_one() {
    let bench = bench();
    bench.write("a.csv", "mine");
    let mut again = export(&bench, "select 1 as x", "a.csv");
    let kept = bench.engine.export(&again, &bench.cancel).await;
    assert_eq!(kept, Err(ExportError::Exists(again.file.clone())));
    again.existing = Existing::Replace;
    let failing = Export {
        query: Query::new("select error('no') as x from range(10)"),
        ..again.clone()
    };
    assert!(bench.engine.export(&failing, &bench.cancel).await.is_err());
    assert_eq!(std::fs::read_to_string(&again.file).unwrap(), "mine");
    bench.engine.export(&again, &bench.cancel).await.unwrap();
    assert_eq!(std::fs::read_to_string(&again.file).unwrap(), "x\n1\n");
    assert_eq!(names(&bench), ["a.csv"]);
}

#[tokio::test]
async fn what_a_link_leads_to_is_replaced_and_the_link_stays() {
    let bench = bench();
    bench.write("a.csv", "mine");
    let mut through = export(&bench, "select 1 as x", "link.csv");
    std::os::unix::fs::symlink("a.csv", &through.file).unwrap();
    through.existing = Existing::Replace;
    bench.engine.export(&through, &bench.cancel).await.unwrap();
    assert!(through.file.is_symlink());
    assert_eq!(
        std::fs::read_to_string(bench.folder.path().join("a.csv")).unwrap(),
        "x\n1\n"
    );
}

#[tokio::test]
async fn folders_and_places_that_are_not_there_are_refused_before_anything_runs() {
    let bench = bench();
    std::fs::create_dir(bench.folder.path().join("folder.csv")).unwrap();
    let mut into = export(&bench, "select error('it ran')", "folder.csv");
    into.existing = Existing::Replace;
    let refused = bench.engine.export(&into, &bench.cancel).await;
    assert_eq!(refused, Err(ExportError::NotAFile(into.file.clone())));
    let nowhere = export(&bench, "select error('it ran')", "none/a.csv");
    let refused = bench.engine.export(&nowhere, &bench.cancel).await;
    assert!(matches!(refused, Err(ExportError::Io { .. })), "{refused:?}");
}

#[tokio::test]
async fn an_export_that_is_cancelled_or_takes_too_long_leaves_nothing() {
    let bench = bench();
    let mut long = export(
        &bench,
        "select sum(a.range * b.range) as x from range(1000000) a, range(1000000) b",
        "a.csv",
    );
    long.query.timeout = Some(Duration::from_millis(50));
    let ended = bench.engine.export(&long, &bench.cancel).await;
    assert_eq!(
        ended,
        Err(ExportError::Query(QueryError::Timeout(Duration::from_millis(50))))
    );
    long.query.timeout = None;
    let cancel = CancellationToken::new();
    let (ended, ()) = tokio::join!(bench.engine.export(&long, &cancel), async { cancel.cancel() });
    assert_eq!(
        ended,
        Err(ExportError::Query(QueryError::Failed(Failure::Interrupted)))
    );
    assert!(names(&bench).is_empty());
}

fn in_tokyo() -> Look {
    Look {
        format: Some("yyyy-mm-dd hh:mm".to_owned()),
        zone: Some(TimeZone::fixed(offset(9))),
    }
}

#[tokio::test]
async fn a_workbook_has_typed_cells_under_the_names_of_its_columns() {
    use calamine::{Data, Reader as _};

    let bench = bench();
    let sql = "select 1 as n, 12.50::decimal(9,2) as money, date '2024-02-29' as day, \
        timestamp '2024-02-29 12:00:00' as at, true as flag, '=1+1' as text, 9007199254740993 as big, null as none, \
        [1, 2] as list union all by name select 2 as n";
    let mut export = export(&bench, sql, "a.xlsx");
    export.layout = Layout {
        above: vec!["Weekly".to_owned()],
        columns: vec![
            Look::default(),
            Look {
                format: Some("0.0".to_owned()),
                zone: None,
            },
            in_tokyo(),
            in_tokyo(),
        ],
        guards_formulas: true,
    };
    let exported = bench.engine.export(&export, &bench.cancel).await.unwrap();
    assert_eq!(exported.rows, Some(2));
    assert_eq!(exported.bytes, export.file.metadata().unwrap().len());
    let mut book: calamine::Xlsx<_> = calamine::open_workbook(&export.file).unwrap();
    let sheet = book.worksheet_range_at(0).unwrap().unwrap();
    let rows: Vec<Vec<Data>> = sheet.rows().map(<[Data]>::to_vec).collect();
    assert_eq!(rows[0][0], Data::String("Weekly".to_owned()));
    let names: Vec<String> = rows[1].iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
        ["n", "money", "day", "at", "flag", "text", "big", "none", "list"]
    );
    let row = &rows[2];
    assert_eq!((&row[0], &row[1]), (&Data::Float(1.0), &Data::Float(12.5)));
    assert!(
        matches!(&row[2], Data::DateTime(day) if day.as_f64() == 45351.0),
        "{:?}",
        row[2]
    );
    assert!(
        matches!(&row[3], Data::DateTime(at) if at.as_f64() == 45351.875),
        "by the clock of its zone"
    );
    assert_eq!(row[4], Data::Bool(true));
    assert_eq!(row[5], Data::String("=1+1".to_owned()), "a text, and no formula");
    assert_eq!(row[6], Data::String("9007199254740993".to_owned()), "all digits");
    assert_eq!(
        (&row[7], &row[8]),
        (&Data::Empty, &Data::String("[1,2]".to_owned()))
    );
    assert_eq!(names_of_parts(&bench), Vec::<String>::new());
}

/// Returns the names of part files and buffered rows in the bench's folder.
fn names_of_parts(bench: &Bench) -> Vec<String> {
    let is_part = |name: &String| name != "a.xlsx";
    names(bench).into_iter().filter(is_part).collect()
}

#[tokio::test]
async fn what_does_not_fit_on_a_sheet_is_refused_and_leaves_nothing() {
    let bench = bench();
    let export = export(&bench, "select range as n from range(1048576)", "a.xlsx");
    let refused = bench.engine.export(&export, &bench.cancel).await.unwrap_err();
    assert!(
        matches!(&refused, ExportError::Sheet(said) if said.contains("1048576 rows")),
        "{refused}"
    );
    assert_eq!(names(&bench), Vec::<String>::new());
}

#[tokio::test]
async fn text_that_a_spreadsheet_would_run_is_guarded_in_csv() {
    let bench = bench();
    let sql = "select * from (values ('=1+1', -1), ('plain', 2), ('@x', 3), (null, 4)) t(\"a b\", n)";
    let mut export = export(&bench, sql, "a.csv");
    export.layout = Layout {
        above: vec!["Weekly, by day".to_owned()],
        guards_formulas: true,
        ..Layout::default()
    };
    let exported = bench.engine.export(&export, &bench.cancel).await.unwrap();
    let csv = std::fs::read_to_string(&export.file).unwrap();
    assert_eq!(csv, "\"Weekly, by day\"\na b,n\n'=1+1,-1\nplain,2\n'@x,3\n,4\n");
    assert_eq!(exported.rows, Some(4));
}

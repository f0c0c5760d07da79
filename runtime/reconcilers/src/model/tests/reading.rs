//! Files that have nothing in them for a moment, or are written otherwise than their first rows tell.

use std::{fs, io::Write as _};

use flate2::{Compression, write::GzEncoder};
use watershed_compilers::READER_OPTIONS;
use watershed_proto::{Spot, Value};

use super::world::{World, by_hand, source, table};

/// Contents that are no answer, each of another sort.
const NOTHING: [&[u8]; 6] = [b"", b"\n", b"\r\n", b"\0\0\0\0", b"  \n \t\n", b"\xef\xbb\xbf"];

/// Writes a file, whatever it holds.
fn put(world: &World, path: &str, content: &[u8]) {
    fs::write(world.path(path), content).unwrap();
}

/// Has a file of a built model lose its content in each way, and looks at what becomes of its rows.
async fn keeps_its_rows(world: &mut World, name: &str, path: &str, nothing: &[&[u8]]) {
    let rows = world.rows(&format!("from {name}")).await;
    assert!(!rows.is_empty());
    for content in nothing {
        put(world, path, content);
        world.reconcile(name).await;
        assert_eq!(world.works().await, [format!("failed {name}")], "{content:?}");
        let error = world.error(name);
        assert_eq!(&*error.code, "empty-file", "{error:?}");
        assert!(error.message.contains(path), "{error:?}");
        assert_eq!(world.rows(&format!("from {name}")).await, rows);
    }
}

#[tokio::test]
async fn a_source_that_is_empty_for_a_moment_keeps_its_rows() {
    let mut world = World::new().await;
    world.write("d.csv", "id,v\n1,a\n2,b\n");
    world.declare("a", &source("d.csv", &[])).await;
    assert_eq!(world.works().await, ["built a"]);
    keeps_its_rows(&mut world, "a", "d.csv", &NOTHING).await;
    world.write("d.csv", "id,v\n");
    world.reconcile("a").await;
    assert_eq!(world.works().await, ["built a"]);
    assert_eq!(
        world.rows("select count(*) from a").await,
        ["0"],
        "a header is an answer"
    );
}

#[tokio::test]
async fn a_source_of_json_without_a_value_keeps_its_rows() {
    let mut world = World::new().await;
    world.write("d.json", "[{\"id\": 1}]");
    world.declare("a", &source("d.json", &[])).await;
    assert_eq!(world.works().await, ["built a"]);
    let nothing: Vec<&[u8]> = NOTHING
        .into_iter()
        .chain([b"[]".as_slice(), b"[ ]\n", b"{}", b"null"])
        .collect();
    keeps_its_rows(&mut world, "a", "d.json", &nothing).await;
}

#[tokio::test]
async fn a_file_that_is_read_by_sql_is_no_answer_either_when_it_is_empty() {
    let mut world = World::new().await;
    world.write("d.csv", "id,v\n1,a\n2,b\n");
    let model = table("select count(*) as n from read_csv('d.csv')", &[]).reading("d.csv");
    world.declare("a", &model).await;
    assert_eq!(world.works().await, ["built a"]);
    keeps_its_rows(&mut world, "a", "d.csv", &NOTHING).await;
}

#[tokio::test]
async fn one_empty_file_of_a_pattern_keeps_the_rows_of_all() {
    let mut world = World::new().await;
    world.write("data/a.csv", "id,v\n1,a\n");
    world.write("data/b.csv", "id,v\n2,b\n");
    world.declare("a", &source("data/*.csv", &[])).await;
    assert_eq!(world.works().await, ["built a"]);
    keeps_its_rows(&mut world, "a", "data/b.csv", &NOTHING).await;
    world.write("data/b.csv", "id,v\n3,c\n");
    world.reconcile("a").await;
    assert_eq!(world.works().await, ["built a"]);
    assert_eq!(world.rows("select id from a order by id").await, ["1", "3"]);
}

#[tokio::test]
async fn a_partition_whose_file_is_empty_fails_alone() {
    let mut world = World::new().await;
    world.write("data/a.csv", "id\n1\n");
    world.write("data/b.csv", "id\n2\n");
    let sql = "select count(*) as n from read_csv('{{ .partition.path }}')";
    world
        .declare("a", &table(sql, &[]).partition_files("data/*.csv"))
        .await;
    assert_eq!(world.works().await, ["built a"]);
    put(&world, "data/a.csv", b"");
    world.reconcile("a").await;
    assert_eq!(world.works().await, ["failed a"]);
    let error = world.error("a");
    assert!(error.message.contains("data/a.csv"), "{error:?}");
    assert_eq!(world.rows("from a").await, ["1", "1"]);
}

#[tokio::test]
async fn a_file_whose_columns_are_said_may_be_empty() {
    let mut world = World::new().await;
    world.write("d.json", "");
    let columns = Value::from(std::collections::BTreeMap::from([(
        "id".to_owned(),
        "INTEGER".into(),
    )]));
    world
        .declare("a", &source("d.json", &[("columns", columns)]))
        .await;
    assert_eq!(world.works().await, ["built a"]);
    let model = table("select content from read_text('VERSION')", &[]).reading("VERSION");
    let mut model = model;
    model.spec.uses = vec!["read_text".into()];
    world.write("VERSION", "");
    world.declare("b", &model).await;
    assert_eq!(world.works().await, ["built b"]);
}

#[tokio::test]
async fn quotes_behind_the_sample_are_no_part_of_values() {
    let world = World::new().await;
    for (delimiter, name) in [(",", "a"), (";", "b")] {
        let line = format!("a{delimiter}b\n");
        let late = format!(
            "\"plain\"{delimiter}\"q\"\n\"he said \"\"no\"\"\"{delimiter}x\n\"two\nlines\"{delimiter}y\n"
        );
        let path = format!("{name}.csv");
        world.write(
            &path,
            &format!("name{delimiter}note\n{}{late}", line.repeat(25_000)),
        );
        world.declare(name, &source(&path, &[])).await;
        world.settle().await;
        let rows = world
            .rows(&format!(
                "select name || '|' || note from {name} where name <> 'a' order by all"
            ))
            .await;
        assert_eq!(rows, ["he said \"no\"|x", "plain|q", "two\nlines|y"]);
    }
}

#[tokio::test]
async fn a_file_that_quotes_otherwise_is_read_as_its_sample_tells_or_refused() {
    let world = World::new().await;
    world.write("single.csv", "name,note\n'a, b','c'\n");
    world.declare("a", &source("single.csv", &[])).await;
    world.settle().await;
    assert_eq!(world.rows("select name, note from a").await, ["a, b|c"]);
    let late = format!("name,note\n{}\"a,x\n", "a,b\n".repeat(25_000));
    world.write("odd.csv", &late);
    world.declare("b", &source("odd.csv", &[])).await;
    world.settle().await;
    let error = world.error("b");
    assert_eq!(
        error.place.as_ref().map(|place| place.line),
        Some(25_002),
        "{error:?}"
    );
    assert!(
        error.hint.as_ref().is_some_and(|hint| hint.contains("`quote`")),
        "{error:?}"
    );
    world
        .declare("b", &source("odd.csv", &[("quote", "".into())]))
        .await;
    world.settle().await;
    assert_eq!(world.rows("select name from b where name <> 'a'").await, ["\"a"]);
}

#[tokio::test]
async fn a_file_in_utf_16_is_known_by_its_mark() {
    let world = World::new().await;
    let text = "\u{feff}id\tname\n1\tM\u{fc}ller\n2\t5 \u{20ac}\n";
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    put(&world, "d.txt", &bytes);
    world.declare("a", &source("d.txt", &[])).await;
    world.settle().await;
    assert_eq!(
        world.rows("select name from a order by id").await,
        ["M\u{fc}ller", "5 \u{20ac}"]
    );
}

/// Compresses a text.
fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_file_that_is_cut_off_keeps_the_rows_of_before() {
    let rows: String = (0..50_000)
        .map(|n| format!("{n},{}\n", n * 7_919 % 10_007))
        .collect();
    let lines: String = (0..3).map(|n| format!("{{\"id\": {n}}}\n")).collect();
    let csv = gzip(&format!("id,v\n{rows}"));
    let cut = |whole: &[u8]| whole[..whole.len() / 2].to_vec();
    for (path, whole, cut, code) in [
        ("d.csv.gz", csv.clone(), cut(&csv), "file-cut-off"),
        ("d.json.gz", gzip(&lines), cut(&gzip(&lines)), "file-cut-off"),
        (
            "d.json",
            b"[{\"id\": 1}]".to_vec(),
            b"[{\"id\": 1},\n{\"id\": 2},\n".to_vec(),
            "file-cut-off",
        ),
        (
            "e.json",
            b"[{\"id\": 1}]".to_vec(),
            b"[{\"id\": 1}, {\"id\"".to_vec(),
            "file-cut-off",
        ),
        (
            "f.json",
            b"[{\"id\": 1}]".to_vec(),
            b"[{\"id\": 1}] and more".to_vec(),
            "sql-invalid-input",
        ),
        (
            "d.ndjson",
            lines.clone().into_bytes(),
            format!("{lines}{{\"id\"").into_bytes(),
            "sql-invalid-input",
        ),
    ] {
        let mut world = World::new().await;
        put(&world, path, &whole);
        world.declare("a", &source(path, &[])).await;
        assert_eq!(world.works().await, ["built a"], "{path}");
        let before = world.rows("select count(*) from a").await;
        put(&world, path, &cut);
        world.reconcile("a").await;
        assert_eq!(world.works().await, ["failed a"], "{path}");
        let error = world.error("a");
        assert_eq!(&*error.code, code, "{error:?}");
        assert!(error.message.contains(path), "{error:?}");
        if !path.ends_with(".gz") {
            let place = error.place.as_ref().map(|place| (&*place.path, place.line));
            let line = u32::try_from(cut.split(|byte| *byte == b'\n').count()).unwrap();
            assert_eq!(place, Some((path, line)), "{error:?}");
        }
        assert_eq!(world.rows("select count(*) from a").await, before, "{path}");
    }
}

#[tokio::test]
async fn parquet_that_is_cut_off_keeps_the_rows_of_before() {
    let mut world = World::new().await;
    let path = world.path("d.parquet");
    let other = tempfile::tempdir().unwrap();
    by_hand(
        other.path(),
        &format!(
            "copy (select range as id from range(1000)) to '{}'",
            path.display()
        ),
    );
    world.declare("a", &source("d.parquet", &[])).await;
    assert_eq!(world.works().await, ["built a"]);
    let whole = fs::read(&path).unwrap();
    for length in [whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        world.reconcile("a").await;
        assert_eq!(world.works().await, ["failed a"], "{length}");
        assert!(
            world.error("a").message.contains("d.parquet"),
            "{:?}",
            world.error("a")
        );
        assert_eq!(world.rows("select count(*) from a").await, ["1000"]);
    }
}

#[tokio::test]
async fn utf_16_with_the_high_byte_first_is_refused_by_its_name() {
    let mut world = World::new().await;
    let text = "\u{feff}id,name\n1,M\u{fc}ller\n";
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    put(&world, "d.csv", &bytes);
    world.declare("a", &source("d.csv", &[])).await;
    let mut said = source("d.csv", &[("encoding", "utf-16".into())]);
    said.spec.encoding_at = Some(Spot { line: 4, column: 1 });
    world.declare("b", &said).await;
    let by_sql = table("select * from read_csv('d.csv',\n  encoding = 'utf-16')", &[]).reading("d.csv");
    world.declare("c", &by_sql).await;
    world.works().await;
    let line = |name: &str| world.error(name).place.as_ref().map(|place| place.line);
    for name in ["a", "b", "c"] {
        let error = world.error(name);
        assert_eq!(&*error.code, "encoding-unsupported", "{name}: {error:?}");
        assert!(error.message.contains("big endian"), "{error:?}");
        assert!(
            error.hint.as_ref().is_some_and(|hint| hint.contains("iconv")),
            "{error:?}"
        );
    }
    assert_eq!((line("b"), line("a")), (Some(4), None));
}

#[tokio::test]
async fn json_that_is_nested_too_deep_fails_its_source_alone() {
    let world = World::new().await;
    let nested = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    world.write("deep.json", &nested(5_000));
    world.write("flat.json", &nested(5));
    world.declare("deep", &source("deep.json", &[])).await;
    world.declare("flat", &source("flat.json", &[])).await;
    let by_sql = table("from read_json('deep.json')", &[]).reading("deep.json");
    world.declare("by_sql", &by_sql).await;
    world.settle().await;
    for name in ["deep", "by_sql"] {
        assert_eq!(&*world.error(name).code, "nested-too-deep");
    }
    assert_eq!(world.rows("select count(*) from flat").await, ["1"]);
    world.write("deep.json", &nested(900));
    let bounded = source("deep.json", &[("maximum_depth", Value::from(3_i64))]);
    world.declare("deep", &bounded).await;
    world.settle().await;
    assert_eq!(world.rows("select count(*) from deep").await, ["1"]);
}

#[tokio::test]
async fn every_option_of_the_engines_readers_may_stand_beside_a_path() {
    /// Those that are no options of a file: the path, the sort of reader, and what is for the engine's makers.
    const OTHERS: [&str; 3] = ["col0", "format", "debug_use_openssl"];
    let world = World::new().await;
    let named = "select distinct unnest(parameters) from duckdb_functions() \
                 where function_name in ('read_csv', 'read_json', 'read_parquet')";
    let known = world.rows(named).await;
    assert!(known.len() > 40, "{known:?}");
    for option in known.iter().filter(|option| !OTHERS.contains(&option.as_str())) {
        assert!(READER_OPTIONS.contains(&option.as_str()), "{option}");
    }
}

#[tokio::test]
async fn a_line_may_be_as_long_as_its_source_says() {
    let world = World::new().await;
    world.write("d.csv", &format!("a,b\n{},1\n", "x".repeat(3_000_000)));
    world
        .declare(
            "a",
            &source("d.csv", &[("max_line_size", Value::from(4_000_000_i64))]),
        )
        .await;
    world.settle().await;
    assert_eq!(world.rows("select length(a) from a").await, ["3000000"]);
}

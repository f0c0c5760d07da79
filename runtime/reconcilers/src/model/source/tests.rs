//! Statements that sources are read by, and refusals of those that can't be read.

use super::*;

fn spec<const N: usize>(properties: [(&str, Value); N]) -> ModelSpec {
    let fields = properties
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    ModelSpec {
        input_connector: "local_file".into(),
        input_properties: Some(MapValue { fields }),
        ..ModelSpec::default()
    }
}

fn sql_of(spec: &ModelSpec) -> Result<String, SourceError> {
    let variables = BTreeMap::from([("folder".to_owned(), "data".to_owned())]);
    sql(
        spec,
        &Scope {
            variables,
            ..Scope::default()
        },
    )
}

#[test]
fn templates_are_executed_and_several_paths_are_read_as_one() {
    let template = spec([("path", "{{ .env.folder }}/a.csv".into())]);
    assert_eq!(sql_of(&template).unwrap(), "SELECT * FROM read_csv('data/a.csv')");
    let paths = Value::from(vec!["a.csv".into(), "b.csv".into()]);
    let expected = "SELECT * FROM read_csv(['a.csv', 'b.csv'])";
    assert_eq!(sql_of(&spec([("path", paths)])).unwrap(), expected);
    let unset = sql_of(&spec([("path", "{{ .env.unset }}".into())])).unwrap_err();
    assert_eq!((unset.code(), unset.hint().is_some()), ("template", true));
}

#[test]
fn the_reader_follows_from_the_format_or_the_extension() {
    for (path, reader) in [
        ("a.csv", "read_csv"),
        ("data/*.CSV.gz", "read_csv"),
        ("a.parquet", "read_parquet"),
        ("a.ndjson", "read_json"),
    ] {
        assert_eq!(
            sql_of(&spec([("path", path.into())])),
            Ok(format!("SELECT * FROM {reader}('{path}')"))
        );
    }
    // An empty row would end the sheet.
    let workbook = sql_of(&spec([("path", "report.xlsx".into())])).unwrap();
    let all = "SELECT * FROM read_xlsx('report.xlsx', stop_at_empty = false) WHERE concat(*COLUMNS(*)) <> ''";
    assert_eq!(workbook, all);
    let explicit = spec([("path", "a.dat".into()), ("format", "parquet".into())]);
    assert_eq!(sql_of(&explicit).unwrap(), "SELECT * FROM read_parquet('a.dat')");
    let unknown = sql_of(&spec([("path", "a.dat".into())])).unwrap_err();
    assert_eq!(unknown.to_string(), "can't tell the format of \"a.dat\"");
}

#[test]
fn options_are_passed_on_quoted() {
    let types = Value::from(BTreeMap::from([("a".to_owned(), Value::from("it's"))]));
    let spec = spec([
        ("path", "o'neil.csv".into()),
        ("delim", ";".into()),
        ("header", true.into()),
        ("skip", Value::from(2_i64)),
        ("types", types),
        ("description", "not an option".into()),
    ]);
    let expected = "SELECT * FROM read_csv('o''neil.csv', delim = ';', header = true, skip = 2, \
                    types = {'a': 'it''s'})";
    assert_eq!(sql_of(&spec).unwrap(), expected);
}

#[test]
fn options_by_other_names_reach_the_reader_by_its_own() {
    let sql = |option: &str, value: &str| {
        let path = ("path", Value::from("a.csv"));
        sql_of(&spec([path, (option, value.into())])).unwrap()
    };
    let expected = |option: &str| format!("SELECT * FROM read_csv('a.csv', {option})");
    assert_eq!(sql("delimiter", ";"), expected("delim = ';'"));
    assert_eq!(sql("encoding", "Windows-1252"), expected("encoding = 'cp1252'"));
    assert_eq!(sql("encoding", "latin-1"), expected("encoding = 'latin-1'"));
    assert_eq!(
        sql("format", "newline_delimited"),
        "SELECT * FROM read_json('a.csv', format = 'newline_delimited')"
    );
}

#[test]
fn options_of_the_engine_stand_as_they_are() {
    let duckdb = Value::from(BTreeMap::from([("delim".to_owned(), Value::from("'|'"))]));
    let expected = "SELECT * FROM read_csv('a.csv', \"delim\" = '|')";
    assert_eq!(
        sql_of(&spec([("path", "a.csv".into()), ("duckdb", duckdb)])).unwrap(),
        expected
    );
}

#[test]
fn what_can_not_be_read_is_said() {
    assert_eq!(sql_of(&spec([])), Err(SourceError::NoPath));
    let of = |connector: &str, path: &str| ModelSpec {
        input_connector: connector.into(),
        ..spec([("path", path.into())])
    };
    assert_eq!(
        sql_of(&of("snowflake", "x/y.csv")).unwrap_err().to_string(),
        "connector \"snowflake\" is not supported yet"
    );
    for path in ["y.csv", "gs://x/y.csv", "https://x/y.csv", "s3:///y.csv"] {
        let said = sql_of(&of("s3", path)).unwrap_err();
        assert_eq!(said.code(), "bad-address", "{path}");
    }
}

#[test]
fn objects_of_stores_are_read_by_their_addresses() {
    let of = |connector: &str, path: &str| {
        let input_connector = connector.into();
        sql_of(&ModelSpec {
            input_connector,
            ..spec([("path", path.into())])
        })
        .unwrap()
    };
    assert_eq!(
        of("s3", "s3://b/{{ .env.folder }}/*.parquet"),
        "SELECT * FROM read_parquet('s3://b/data/*.parquet')"
    );
    assert_eq!(
        of("https", "https://host/a.csv?day=1.json"),
        "SELECT * FROM read_csv('https://host/a.csv?day=1.json')"
    );
}

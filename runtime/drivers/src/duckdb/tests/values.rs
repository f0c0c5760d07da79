//! Tests of reading values through the C API, compared with the engine's own text forms.

use crate::duckdb::sys::{Connection, Database};
use crate::olap::Value;

fn rows(sql: &str) -> Vec<Vec<Value>> {
    let database = Database::open(None, &[]).unwrap();
    let connection = Connection::new(&database).unwrap();
    connection.run(sql, &[]).unwrap().collect().unwrap()
}

#[test]
fn texts_are_those_of_the_engine_for_every_plain_type() {
    let expressions = [
        "'2013-01-01'::DATE",
        "'0044-03-15 (BC)'::DATE",
        "'-infinity'::DATE",
        "'12345-01-31'::DATE",
        "'2000-02-29'::DATE",
        "'1900-03-01'::DATE",
        "'23:59:59.999999'::TIME",
        "'01:02:03.5'::TIME",
        "'01:02:03+05:30'::TIMETZ",
        "'01:02:03-15:59:59'::TIMETZ",
        "'2013-01-01 05:06:07'::TIMESTAMP",
        "'1969-12-31 23:59:59.000001'::TIMESTAMP",
        "'0044-03-15 (BC) 01:02:03'::TIMESTAMP",
        "'infinity'::TIMESTAMP",
        "'2013-01-01 05:06:07'::TIMESTAMP_S",
        "'2013-01-01 05:06:07.12'::TIMESTAMP_MS",
        "'2013-01-01 05:06:07.123456789'::TIMESTAMP_NS",
        "'1 year 2 months -3 days 04:05:06.7'::INTERVAL",
        "'-14 months'::INTERVAL",
        "'-1 day -00:00:00.5'::INTERVAL",
        "'0 days'::INTERVAL",
        "1.50::DECIMAL(4,2)",
        "-0.05::DECIMAL(9,2)",
        "-12345678901234567890.123::DECIMAL(38,3)",
        "7::DECIMAL(18,0)",
        "0.5::DECIMAL(4,3)",
        "'5c8cb1c0-6d2f-4f8b-9b52-7d3c50c15b8e'::UUID",
        "'ffffffff-6d2f-4f8b-9b52-7d3c50c15b8e'::UUID",
        "'b'::ENUM('a', 'b')",
        "'1010011'::BIT",
        "'{\"a\": 1}'::JSON",
        "340282366920938463463374607431768211455::UHUGEINT",
        "(-170141183460469231731687303715884105728)::HUGEINT",
        "18446744073709551615::UBIGINT",
        "'ein längerer Text, der nicht mehr hineinpasst'",
        "''",
        "'kurz'",
        "true",
        "'a\\x00\\xFFb'::BLOB",
    ];
    for expression in expressions {
        let found = rows(&format!("select {expression}, ({expression})::VARCHAR"));
        assert_eq!(found[0][0].to_string(), found[0][1].to_string(), "{expression}");
    }
}

#[test]
fn numbers_days_and_times_keep_their_types() {
    let one = |expression: &str| rows(&format!("select {expression}")).remove(0).remove(0);
    assert_eq!(
        one("-12.50::DECIMAL(9,2)"),
        Value::Decimal {
            digits: -1_250,
            scale: 2
        }
    );
    assert_eq!(one("'1970-01-02'::DATE"), Value::Date { days: 1 });
    assert_eq!(one("'00:00:01'::TIME"), Value::Time { nanos: 1_000_000_000 });
    let second = |is_instant| Value::Timestamp {
        nanos: 1_000_000_000,
        is_instant,
    };
    for plain in ["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"] {
        assert_eq!(
            one(&format!("'1970-01-01 00:00:01'::{plain}")),
            second(false),
            "{plain}"
        );
    }
    assert_eq!(one("'1970-01-01 01:00:01+01'::TIMESTAMPTZ"), second(true));
    let [first, last] = ["-infinity", "infinity"].map(|end| one(&format!("'{end}'::TIMESTAMPTZ")));
    assert_eq!([&first, &last].map(Value::instant), [None, None]);
    assert_eq!(
        [&first, &last].map(ToString::to_string),
        ["-infinity", "infinity"]
    );
}

#[test]
fn nested_values_keep_their_structure() {
    let json = |sql: &str| rows(sql)[0][0].to_json().to_string();
    assert_eq!(json("select [1, null, 3]"), "[1,null,3]");
    assert_eq!(json("select [[1], [], null, [2, 3]]"), "[[1],[],null,[2,3]]");
    assert_eq!(json("select {'b': 1.5, 'a': ['x']}"), r#"{"a":["x"],"b":"1.5"}"#);
    assert_eq!(json("select map {'k': 1, 'l': 2}"), r#"{"k":1,"l":2}"#);
    assert_eq!(json("select [1, 2]::INTEGER[2]"), "[1,2]");
    assert_eq!(json("select union_value(n := 7)"), "7");
    assert_eq!(json("select null::STRUCT(a INTEGER)"), "null");
}

#[test]
fn a_row_is_read_from_its_own_place_in_nested_vectors() {
    let found = rows("select [i, i + 1], {'i': i}, map {i: -i} from range(5000) t(i)");
    assert_eq!(found.len(), 5_000);
    for (i, row) in (0..).zip(&found) {
        assert_eq!(
            row[0],
            Value::List(vec![Value::Integer(i), Value::Integer(i + 1)])
        );
        assert_eq!(row[1], Value::Struct(vec![("i".to_owned(), Value::Integer(i))]));
        assert_eq!(row[2], Value::Map(vec![(Value::Integer(i), Value::Integer(-i))]));
    }
}

#[test]
fn types_are_named_as_the_engine_names_them() {
    let database = Database::open(None, &[]).unwrap();
    let connection = Connection::new(&database).unwrap();
    for expression in [
        "1",
        "1.5::DECIMAL(9,2)",
        "[1]",
        "[1, 2]::INTEGER[2]",
        "{'a': 1, 'B c': [true]}",
        "map {'a': 1}",
        "union_value(n := 7)",
        "now()",
        "'1'::JSON",
        "1::UHUGEINT",
        "'01:00:00+00'::TIMETZ",
    ] {
        let answer = connection
            .run(&format!("select {expression}, typeof({expression})"), &[])
            .unwrap();
        let name = answer.columns()[0].1.name.clone();
        assert_eq!(Value::Text(name), answer.collect().unwrap()[0][1], "{expression}");
    }
}

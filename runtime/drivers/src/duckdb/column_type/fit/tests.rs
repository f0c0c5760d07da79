//! Tests that compare the fit of types with the engine's own casts, at the limits of each type.

use std::sync::Arc;

use super::*;
use crate::duckdb::sys::{Connection, Database};
use crate::olap::Value;

/// Types with sample values: the limits of the type, and values that casts easily lose.
const SAMPLES: &[(&str, &[&str])] = &[
    ("BOOLEAN", &["true", "false"]),
    ("TINYINT", &["-128", "127", "0"]),
    ("UTINYINT", &["255", "0"]),
    ("SMALLINT", &["-32768", "32767"]),
    ("USMALLINT", &["65535", "0"]),
    ("INTEGER", &["-2147483648", "2147483647", "16777217"]),
    ("UINTEGER", &["4294967295", "0"]),
    (
        "BIGINT",
        &["-9223372036854775808", "9223372036854775807", "9007199254740993"],
    ),
    ("UBIGINT", &["18446744073709551615", "0"]),
    (
        "HUGEINT",
        &[
            "-170141183460469231731687303715884105727",
            "170141183460469231731687303715884105727",
        ],
    ),
    ("UHUGEINT", &["340282366920938463463374607431768211455", "0"]),
    ("FLOAT", &["0.1", "16777216", "3.4e38", "-0.0", "nan", "inf"]),
    (
        "DOUBLE",
        &["0.1", "9007199254740993", "1.7e308", "-0.0", "nan", "-inf"],
    ),
    ("DECIMAL(2,0)", &["99", "-99"]),
    ("DECIMAL(4,1)", &["999.9", "-0.1"]),
    ("DECIMAL(6,3)", &["999.999", "-0.001"]),
    ("DECIMAL(6,0)", &["999999", "-999999"]),
    ("DECIMAL(15,2)", &["9999999999999.99", "0.01"]),
    ("DECIMAL(18,3)", &["999999999999999.999"]),
    ("DECIMAL(38,0)", &["-1", "99999999999999999999999999999999999999"]),
    ("DECIMAL(38,10)", &["9999999999999999999999999999.9999999999"]),
    ("VARCHAR", &["07", "x", "2024-01-01", " 1", "1e1", "TRUE", "'"]),
    ("JSON", &["{\"a\": [1]}", "7", "null"]),
    ("UUID", &["5c8cb1c0-6d2f-4f8b-9b52-7d3c50c15b8e"]),
    ("BLOB", &["a\\x41\\x00", "\\xFF"]),
    ("BIT", &["0101"]),
    (
        "DATE",
        &["2024-02-29", "1700-01-01", "0044-03-15 (BC)", "infinity"],
    ),
    ("TIME", &["23:59:59.999999"]),
    ("TIMESTAMP_S", &["2024-01-01 10:30:01", "infinity"]),
    ("TIMESTAMP_MS", &["2024-01-01 10:30:00.001", "-infinity"]),
    (
        "TIMESTAMP",
        &[
            "2024-01-01 10:30:00.000001",
            "0044-03-15 (BC) 01:02:03",
            "infinity",
        ],
    ),
    ("TIMESTAMP_NS", &["2024-01-01 10:30:00.000000001"]),
    ("TIMESTAMP WITH TIME ZONE", &["2024-01-01 10:30:00+03"]),
    ("INTERVAL", &["1 month 30 days 25:00:00"]),
    ("ENUM('a', 'b')", &["a", "b"]),
    ("ENUM('b', 'c', 'a')", &["c", "a"]),
    ("INTEGER[]", &["[1, NULL]", "[]"]),
    ("BIGINT[]", &["[9007199254740993]"]),
    ("DOUBLE[]", &["[1.5]"]),
    ("VARCHAR[]", &["[07, x]"]),
    ("INTEGER[2]", &["[1, 2]"]),
    ("STRUCT(a INTEGER)", &["{'a': 1}", "{'a': NULL}"]),
    (
        "STRUCT(a BIGINT, b VARCHAR)",
        &["{'a': 9007199254740993, 'b': x}"],
    ),
    ("STRUCT(b VARCHAR, a DOUBLE)", &["{'b': y, 'a': 0.5}"]),
    ("STRUCT(a STRUCT(x INTEGER)[])", &["{'a': [{'x': 1}]}"]),
    (
        "STRUCT(a STRUCT(x BIGINT, y DATE)[])",
        &["{'a': [{'x': 1, 'y': 2024-01-01}]}"],
    ),
    ("MAP(VARCHAR, INTEGER)", &["{k=1}"]),
    ("MAP(VARCHAR, BIGINT)", &["{k=9007199254740993}"]),
];

/// Types whose casts may be refused although the engine reverses them: similar values have other meanings in JSON, and
/// the text forms of intervals, lists and bytes are not read back as such.
const CAUTIOUS: [&str; 7] = [
    "BOOLEAN",
    "JSON",
    "INTERVAL",
    "BIT",
    "BLOB",
    "TIMESTAMP WITH TIME ZONE",
    "VARCHAR",
];

struct Bench(Arc<Database>);

impl Bench {
    fn new() -> Self {
        Self(Database::open(None, &[]).unwrap())
    }

    fn is_true(&self, sql: &str) -> bool {
        let connection = Connection::new(&self.0).unwrap();
        let rows = connection.run(sql, &[]).and_then(|answer| answer.collect());
        rows.is_ok_and(|rows| rows[0][0] == Value::Boolean(true))
    }

    /// Returns true if a value survives a cast there and back, to the last digit of its text.
    fn keeps(&self, value: &str, from: &str, into: &str) -> bool {
        let value = format!("CAST('{}' AS {from})", value.replace('\'', "''"));
        let back = format!("CAST(CAST({value} AS {into}) AS {from})");
        self.is_true(&format!(
            "SELECT {back} IS NOT DISTINCT FROM {value} AND {back}::VARCHAR IS NOT DISTINCT FROM {value}::VARCHAR"
        ))
    }
}

fn fit_of(into: &str, from: &str) -> Fit {
    fit(&ColumnType::parse(into), &ColumnType::parse(from))
}

#[test]
fn a_type_that_holds_another_gives_every_value_back_as_it_was() {
    let bench = Bench::new();
    for (into, _) in SAMPLES {
        for (from, values) in SAMPLES {
            let all = values.iter().all(|value| bench.keeps(value, from, into));
            match fit_of(into, from) {
                Fit::Always => assert!(all, "{from} into {into}"),
                // It is looked at which of them it keeps.
                Fit::Looked => assert!(!all, "{from} into {into}: looked at for nothing"),
                Fit::Never => {
                    let named = |cautious: &&str| from.starts_with(*cautious) || into.starts_with(*cautious);
                    assert!(
                        !all || CAUTIOUS.iter().any(named),
                        "{from} into {into}: refused for nothing"
                    );
                }
            }
        }
    }
}

#[test]
fn a_common_type_holds_both_and_numbers_are_made_no_texts() {
    for (old, _) in SAMPLES {
        for (new, _) in SAMPLES {
            let (old, new) = (ColumnType::parse(old), ColumnType::parse(new));
            let Some(both) = common(&old, &new) else { continue };
            assert_eq!(fit(&both, &old), Fit::Always, "{both} of {old} and {new}");
            assert_eq!(fit(&both, &new), Fit::Always, "{both} of {old} and {new}");
            assert_eq!(ColumnType::parse(&both.to_string()).to_string(), both.to_string());
        }
    }
    let both = |old: &str, new: &str| {
        common(&ColumnType::parse(old), &ColumnType::parse(new)).map(|both| both.to_string())
    };
    for (old, new, expected) in [
        ("INTEGER", "BIGINT", Some("BIGINT")),
        ("UBIGINT", "INTEGER", Some("HUGEINT")),
        ("INTEGER", "DECIMAL(3,2)", Some("DECIMAL(12,2)")),
        ("DECIMAL(6,1)", "DECIMAL(6,3)", Some("DECIMAL(8,3)")),
        ("DECIMAL(38,0)", "DECIMAL(3,2)", None),
        ("INTEGER", "DOUBLE", Some("DOUBLE")),
        ("BIGINT", "DOUBLE", None),
        ("FLOAT", "INTEGER", Some("DOUBLE")),
        ("DATE", "TIMESTAMP", Some("TIMESTAMP")),
        ("TIMESTAMP_S", "TIMESTAMP_MS", Some("TIMESTAMP")),
        ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE", None),
        ("BIGINT", "VARCHAR", None),
        ("DATE", "VARCHAR", None),
        ("VARCHAR", "BIGINT", Some("VARCHAR")),
        ("ENUM('a')", "VARCHAR", Some("VARCHAR")),
        ("ENUM('a', 'b')", "ENUM('c', 'a')", Some("ENUM('a', 'b', 'c')")),
        ("INTEGER[]", "BIGINT[2]", Some("BIGINT[]")),
        (
            "STRUCT(a INTEGER, b DATE)",
            "STRUCT(c VARCHAR, A BIGINT)",
            Some(r#"STRUCT("a" BIGINT, "b" DATE, "c" VARCHAR)"#),
        ),
        ("STRUCT(a INTEGER)", "STRUCT(b INTEGER)", None),
        (
            "MAP(VARCHAR, INTEGER)",
            "MAP(VARCHAR, SMALLINT)",
            Some("MAP(VARCHAR, INTEGER)"),
        ),
    ] {
        assert_eq!(both(old, new).as_deref(), expected, "{old} and {new}");
    }
}

#[test]
fn a_field_that_would_be_cut_off_does_not_fit_and_one_that_is_missing_does() {
    assert_eq!(
        fit_of("STRUCT(a INTEGER)", "STRUCT(a INTEGER, b DATE)"),
        Fit::Never
    );
    assert_eq!(
        fit_of("STRUCT(a BIGINT, b DATE)", "STRUCT(A INTEGER)"),
        Fit::Always
    );
    assert_eq!(fit_of("UNION(n INTEGER, s VARCHAR)", "INTEGER"), Fit::Always);
    assert_eq!(
        fit_of("UNION(n INTEGER)", "UNION(n INTEGER, s VARCHAR)"),
        Fit::Never
    );
    assert_eq!(fit_of("DATE[]", "\"NULL\"[]"), Fit::Always);
    assert_eq!(fit_of("GEOMETRY", "VARCHAR"), Fit::Never);
}

//! DuckDB's dialect.

mod checks;
mod words;

use std::fmt::Write as _;

use crate::data_type::decimal;
use crate::quoting::put_quoted;
use crate::{DataFormat, Dialect, Integer, Literal, Quoting, SqlType};

/// DuckDB's dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DuckDb;

const INTEGERS: [(&str, Integer); 9] = [
    ("TINYINT", Integer::new(8, true)),
    ("SMALLINT", Integer::new(16, true)),
    ("INTEGER", Integer::new(32, true)),
    ("BIGINT", Integer::new(64, true)),
    ("HUGEINT", Integer::new(128, true)),
    ("UTINYINT", Integer::new(8, false)),
    ("USMALLINT", Integer::new(16, false)),
    ("UINTEGER", Integer::new(32, false)),
    ("UBIGINT", Integer::new(64, false)),
];

impl Quoting for DuckDb {
    fn put_name(&self, name: &str, out: &mut String) {
        put_quoted(name, '"', out);
    }

    fn put_text(&self, text: &str, out: &mut String) {
        // Statements end at a zero byte on their way into the engine, so none stands in the text itself.
        if !text.contains('\0') {
            return put_quoted(text, '\'', out);
        }
        // One call, however many there are: the engine bounds how deep expressions are.
        out.push_str("concat_ws(chr(0)");
        for part in text.split('\0') {
            out.push_str(", ");
            put_quoted(part, '\'', out);
        }
        out.push(')');
    }
}

impl Dialect for DuckDb {
    fn fold(&self, name: &str) -> String {
        name.to_ascii_lowercase()
    }

    fn put_type(&self, data_type: SqlType, out: &mut String) {
        let name = match data_type {
            SqlType::Boolean => "BOOLEAN",
            SqlType::Integer(integer) => {
                let found = INTEGERS.iter().find(|(_, known)| *known == integer);
                found.map_or("HUGEINT", |(name, _)| name)
            }
            SqlType::Decimal(width, scale) => {
                // Writing to a string can't fail.
                let _ = write!(out, "DECIMAL({width}, {scale})");
                return;
            }
            SqlType::Float => "FLOAT",
            SqlType::Double => "DOUBLE",
            SqlType::Text => "VARCHAR",
            SqlType::Date => "DATE",
            SqlType::Timestamp => "TIMESTAMP",
            SqlType::Instant => "TIMESTAMP WITH TIME ZONE",
        };
        out.push_str(name);
    }

    fn read_type(&self, name: &str) -> Option<SqlType> {
        let name = name.trim().to_ascii_uppercase();
        if let Some((_, integer)) = INTEGERS.iter().find(|(known, _)| *known == name) {
            return Some(SqlType::Integer(*integer));
        }
        if let Some(brackets) = name.strip_prefix("DECIMAL") {
            return decimal(brackets);
        }
        Some(match name.as_str() {
            "BOOLEAN" => SqlType::Boolean,
            "FLOAT" => SqlType::Float,
            "DOUBLE" => SqlType::Double,
            "VARCHAR" => SqlType::Text,
            "DATE" => SqlType::Date,
            "TIMESTAMP" => SqlType::Timestamp,
            "TIMESTAMP WITH TIME ZONE" => SqlType::Instant,
            _ => return None,
        })
    }

    fn put_constant(&self, text: &str, data_type: SqlType, out: &mut String) {
        out.push_str("CAST(");
        match data_type {
            SqlType::Instant => self.put_text(&format!("{text}+00"), out),
            _ => self.put_text(text, out),
        }
        out.push_str(" AS ");
        self.put_type(data_type, out);
        out.push(')');
    }

    fn double(&self, value: f64) -> String {
        match value.is_finite() {
            true => value.to_string(),
            false => format!("'{value}'::DOUBLE"),
        }
    }

    fn timestamp(&self, micros: i64) -> String {
        format!("make_timestamp({micros})")
    }

    fn map(&self, values: &[(String, Literal)]) -> String {
        let entry = |(name, value): &(String, Literal)| {
            // A name of a field is no expression.
            let mut entry = String::new();
            put_quoted(name, '\'', &mut entry);
            format!("{entry}: {}", self.literal(value))
        };
        format!("{{{}}}", Literal::joined(values, entry))
    }

    fn rows(&self, rows: &[Vec<String>], name: &str, columns: &[&str]) -> String {
        let rows: Vec<String> = rows.iter().map(|row| format!("({})", row.join(", "))).collect();
        let columns: Vec<String> = columns.iter().map(|column| self.name(column)).collect();
        format!("(VALUES {}) AS {name}({})", rows.join(", "), columns.join(", "))
    }

    fn reader(&self, format: DataFormat) -> Option<&'static str> {
        Some(match format {
            DataFormat::Csv => "read_csv",
            DataFormat::Json => "read_json",
            DataFormat::Parquet => "read_parquet",
            DataFormat::Xlsx => "read_xlsx",
            DataFormat::Delta => "delta_scan",
            DataFormat::Iceberg => "iceberg_scan",
        })
    }

    fn set(&self, name: &str, value: Option<&str>) -> String {
        match value {
            Some(value) => format!("SET {} = {}", self.name(name), self.text(value)),
            None => format!("RESET {}", self.name(name)),
        }
    }

    fn in_zone(&self, zone: &str) -> String {
        format!("SET GLOBAL TimeZone = {}", self.text(zone))
    }

    fn own_views(&self) -> &'static [&'static str] {
        &[
            "duckdb_columns",
            "duckdb_constraints",
            "duckdb_databases",
            "duckdb_indexes",
            "duckdb_logs",
            "duckdb_schemas",
            "duckdb_tables",
            "duckdb_types",
            "duckdb_views",
            "pragma_database_list",
            "sqlite_master",
            "sqlite_schema",
            "sqlite_temp_master",
            "sqlite_temp_schema",
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_as_they_are_written() {
        let plain = [
            SqlType::Boolean,
            SqlType::Decimal(18, 3),
            SqlType::Float,
            SqlType::Double,
            SqlType::Text,
            SqlType::Date,
            SqlType::Timestamp,
            SqlType::Instant,
        ];
        let integers = INTEGERS.iter().map(|(_, integer)| SqlType::Integer(*integer));
        for data_type in integers.chain(plain) {
            let mut name = String::new();
            DuckDb.put_type(data_type, &mut name);
            assert_eq!(DuckDb.read_type(&name), Some(data_type), "{name}");
        }
        for other in ["DECIMAL", "DECIMAL(1)", "UUID", ""] {
            assert_eq!(DuckDb.read_type(other), None, "{other}");
        }
    }

    #[test]
    fn values_of_documents_are_constants() {
        let value = Literal::Map(vec![
            (
                "it's".into(),
                Literal::List(vec![Literal::Null, Literal::Integer(-1)]),
            ),
            ("b".into(), Literal::Text("x'y".into())),
            ("c".into(), Literal::Float(0.5)),
            ("d".into(), Literal::Boolean(true)),
        ]);
        let written = "{'it''s': [NULL, -1], 'b': 'x''y', 'c': 0.5, 'd': true}";
        assert_eq!(DuckDb.literal(&value), written);
        assert_eq!(DuckDb.literal(&Literal::Float(f64::NAN)), "'NaN'::DOUBLE");
    }

    #[test]
    fn rows_of_constants_are_a_table() {
        let rows = [
            vec!["1".to_owned(), "'a'".to_owned()],
            vec!["2".to_owned(), "NULL".to_owned()],
        ];
        let written = r#"(VALUES (1, 'a'), (2, NULL)) AS given("n", "a ""b""")"#;
        assert_eq!(DuckDb.rows(&rows, "given", &["n", r#"a "b""#]), written);
    }
}

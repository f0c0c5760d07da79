//! ClickHouse's dialect: backslashes escape, in names too.

use std::fmt::Write as _;

use crate::data_type::decimal;
use crate::{DataFormat, Dialect, Integer, Literal, Quoting, SqlType};

/// ClickHouse's dialect. No engine speaks it yet: it proves that [`Dialect`] mirrors no one engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClickHouse;

fn put_escaped(text: &str, quote: char, out: &mut String) {
    out.push(quote);
    for letter in text.chars() {
        match letter {
            '\0' => out.push_str(r"\0"),
            _ => {
                if letter == '\\' || letter == quote {
                    out.push('\\');
                }
                out.push(letter);
            }
        }
    }
    out.push(quote);
}

impl Quoting for ClickHouse {
    fn put_name(&self, name: &str, out: &mut String) {
        put_escaped(name, '"', out);
    }

    fn put_text(&self, text: &str, out: &mut String) {
        put_escaped(text, '\'', out);
    }
}

impl Dialect for ClickHouse {
    fn fold(&self, name: &str) -> String {
        name.to_owned()
    }

    fn put_type(&self, data_type: SqlType, out: &mut String) {
        // Writing to a string can't fail.
        let _ = match data_type {
            SqlType::Boolean => out.write_str("Bool"),
            SqlType::Integer(Integer { bits, signed: true }) => write!(out, "Int{bits}"),
            SqlType::Integer(Integer { bits, signed: false }) => write!(out, "UInt{bits}"),
            SqlType::Decimal(width, scale) => write!(out, "Decimal({width}, {scale})"),
            SqlType::Float => out.write_str("Float32"),
            SqlType::Double => out.write_str("Float64"),
            SqlType::Text => out.write_str("String"),
            SqlType::Date => out.write_str("Date32"),
            SqlType::Timestamp => out.write_str("DateTime64(6)"),
            SqlType::Instant => out.write_str("DateTime64(6, 'UTC')"),
        };
    }

    fn read_type(&self, name: &str) -> Option<SqlType> {
        let integer = |bits: &str, signed| {
            let bits = bits.parse().ok()?;
            let known = [8, 16, 32, 64].contains(&bits) || (signed && bits == 128);
            known.then_some(SqlType::Integer(Integer::new(bits, signed)))
        };
        let name = name.trim();
        if let Some(bits) = name.strip_prefix("Int") {
            return integer(bits, true);
        }
        if let Some(bits) = name.strip_prefix("UInt") {
            return integer(bits, false);
        }
        if let Some(brackets) = name.strip_prefix("Decimal") {
            return decimal(brackets);
        }
        Some(match name {
            "Bool" => SqlType::Boolean,
            "Float32" => SqlType::Float,
            "Float64" => SqlType::Double,
            "String" => SqlType::Text,
            "Date32" => SqlType::Date,
            "DateTime64(6)" => SqlType::Timestamp,
            "DateTime64(6, 'UTC')" => SqlType::Instant,
            _ => return None,
        })
    }

    fn put_constant(&self, text: &str, data_type: SqlType, out: &mut String) {
        out.push_str("CAST(");
        self.put_text(text, out);
        out.push_str(", ");
        let mut name = String::new();
        self.put_type(data_type, &mut name);
        self.put_text(&name, out);
        out.push(')');
    }

    fn double(&self, value: f64) -> String {
        value.to_string().to_lowercase()
    }

    fn timestamp(&self, micros: i64) -> String {
        format!("fromUnixTimestamp64Micro({micros}, 'UTC')")
    }

    fn map(&self, values: &[(String, Literal)]) -> String {
        let entry =
            |(name, value): &(String, Literal)| format!("{}, {}", self.text(name), self.literal(value));
        format!("map({})", Literal::joined(values, entry))
    }

    fn rows(&self, rows: &[Vec<String>], name: &str, columns: &[&str]) -> String {
        let row = |row: &Vec<String>| {
            let named = row.iter().zip(columns);
            let named = named.map(|(value, column)| format!("{value} AS {}", self.name(column)));
            format!("SELECT {}", named.collect::<Vec<_>>().join(", "))
        };
        let rows: Vec<String> = rows.iter().map(row).collect();
        format!("({}) AS {name}", rows.join(" UNION ALL "))
    }

    /// Returns the function for tables of lakes; none for plain files, which the client reads and sends to the server.
    fn reader(&self, format: DataFormat) -> Option<&'static str> {
        match format {
            DataFormat::Delta => Some("deltaLake"),
            DataFormat::Iceberg => Some("iceberg"),
            DataFormat::Csv | DataFormat::Json | DataFormat::Parquet | DataFormat::Xlsx => None,
        }
    }

    fn set(&self, name: &str, value: Option<&str>) -> String {
        let value = value.map_or_else(|| "DEFAULT".to_owned(), |value| self.text(value));
        format!("SET {name} = {value}", name = self.name(name))
    }

    fn in_zone(&self, zone: &str) -> String {
        format!("SET session_timezone = {}", self.text(zone))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_as_they_are_written() {
        let integer = |bits, signed| SqlType::Integer(Integer::new(bits, signed));
        for data_type in [
            SqlType::Boolean,
            integer(8, true),
            integer(64, false),
            Integer::WIDEST.into(),
            SqlType::Decimal(18, 3),
            SqlType::Float,
            SqlType::Double,
            SqlType::Text,
            SqlType::Date,
            SqlType::Timestamp,
            SqlType::Instant,
        ] {
            let mut name = String::new();
            ClickHouse.put_type(data_type, &mut name);
            assert_eq!(ClickHouse.read_type(&name), Some(data_type), "{name}");
        }
        for other in ["Int", "Int7", "UInt128", "Nullable(String)"] {
            assert_eq!(ClickHouse.read_type(other), None, "{other}");
        }
    }

    #[test]
    fn the_type_of_a_constant_is_a_text_beside_it() {
        let mut out = String::new();
        ClickHouse.put_constant("2024-01-01 00:00:00", SqlType::Instant, &mut out);
        assert_eq!(out, r"CAST('2024-01-01 00:00:00', 'DateTime64(6, \'UTC\')')");
    }

    #[test]
    fn rows_of_constants_are_joined_statements() {
        let rows = [
            vec!["1".to_owned(), "'a'".to_owned()],
            vec!["2".to_owned(), "NULL".to_owned()],
        ];
        let written = r#"(SELECT 1 AS "n", 'a' AS "t" UNION ALL SELECT 2 AS "n", NULL AS "t") AS given"#;
        assert_eq!(ClickHouse.rows(&rows, "given", &["n", "t"]), written);
    }
}

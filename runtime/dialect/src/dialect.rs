//! The words of an engine: how it quotes names and texts, and what it calls types.

use std::fmt::Write as _;

use crate::data_type::SqlType;

/// The way in which an engine writes names, texts and types.
pub trait Dialect: Sync {
    /// Appends a name that stays one name whatever it holds.
    fn identifier(&self, name: &str, out: &mut String);

    /// Appends a constant of text.
    fn text(&self, text: &str, out: &mut String);

    /// Appends the name of a type.
    fn data_type(&self, data_type: SqlType, out: &mut String);
}

/// DuckDB's dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DuckDb;

impl Dialect for DuckDb {
    fn identifier(&self, name: &str, out: &mut String) {
        quoted(name, '"', out);
    }

    fn text(&self, text: &str, out: &mut String) {
        // Statements end at a zero byte on their way into the engine, so none stands in the text itself.
        let mut parts = text.split('\0');
        let first = parts.next().unwrap_or_default();
        if !text.contains('\0') {
            return quoted(first, '\'', out);
        }
        out.push('(');
        quoted(first, '\'', out);
        for part in parts {
            out.push_str(" || chr(0) || ");
            quoted(part, '\'', out);
        }
        out.push(')');
    }

    fn data_type(&self, data_type: SqlType, out: &mut String) {
        let name = match data_type {
            SqlType::Boolean => "BOOLEAN",
            SqlType::Integer(integer) => integer.name,
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
}

fn quoted(text: &str, quote: char, out: &mut String) {
    out.push(quote);
    for c in text.chars() {
        if c == quote {
            out.push(quote);
        }
        out.push(c);
    }
    out.push(quote);
}

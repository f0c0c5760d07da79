//! Values that text forms write.

use std::fmt::Display;
use std::io::Write as _;

use serde::Serialize;
use serde_json::Value as Json;
use watershed_drivers::olap::Value;

/// The largest integer up to which JSON readers agree on every value.
const MAX_SAFE_INTEGER: u128 = 1 << 53;

/// A value that can be written as JSON and as plain text.
pub trait Cell {
    /// Writes the value as JSON.
    fn write_json(&self, out: &mut Vec<u8>);

    /// Writes the value as text without quotes: nothing for NULL, nested values as JSON.
    fn write_plain(&self, out: &mut Vec<u8>);
}

impl Cell for Json {
    fn write_json(&self, out: &mut Vec<u8>) {
        json(self, out);
    }

    fn write_plain(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::String(text) => out.extend_from_slice(text.as_bytes()),
            other => json(other, out),
        }
    }
}

/// Writes the same text as the document of [`Value::to_json`], without making one for simple values.
impl Cell for Value {
    fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Boolean(flag) => json(flag, out),
            Self::Integer(number) if number.unsigned_abs() <= MAX_SAFE_INTEGER => integer(*number, out),
            Self::Float(number) if number.is_finite() => json(number, out),
            Self::Double(number) if number.is_finite() => json(number, out),
            Self::Text(text) => json(text, out),
            // Digits and signs alone, which need no escape.
            Self::Integer(_)
            | Self::Float(_)
            | Self::Double(_)
            | Self::Decimal { .. }
            | Self::Date { .. }
            | Self::Time { .. }
            | Self::Timestamp { .. } => {
                out.push(b'"');
                self.write_plain(out);
                out.push(b'"');
            }
            Self::Blob(_) | Self::Struct(_) | Self::Map(_) => json(&self.to_json(), out),
            Self::List(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write_json(out);
                }
                out.push(b']');
            }
        }
    }

    fn write_plain(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::Text(text) => out.extend_from_slice(text.as_bytes()),
            Self::Integer(number) => integer(*number, out),
            Self::Float(number) if number.is_finite() => json(number, out),
            Self::Double(number) if number.is_finite() => json(number, out),
            Self::List(_) | Self::Struct(_) | Self::Map(_) => self.write_json(out),
            other => display(other, out),
        }
    }
}

/// Writes an integer, most of which fit into 64 bits and are written faster so.
fn integer(number: i128, out: &mut Vec<u8>) {
    match i64::try_from(number) {
        Ok(number) => display(&number, out),
        Err(_) => display(&number, out),
    }
}

fn json(value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    // Writing values without maps of odd keys to memory can't fail.
    let _ = serde_json::to_writer(out, value);
}

fn display(value: &impl Display, out: &mut Vec<u8>) {
    // Writing to memory can't fail.
    let _ = write!(out, "{value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Vec<Value> {
        let timestamp = |nanos, is_instant| Value::Timestamp { nanos, is_instant };
        let simple = vec![
            Value::Null,
            Value::Boolean(true),
            Value::Integer(0),
            Value::Integer(-(1 << 53)),
            Value::Integer((1 << 53) + 1),
            Value::Integer(i128::MIN),
            Value::Float(0.1),
            Value::Float(1e30),
            Value::Float(f32::MIN_POSITIVE),
            Value::Float(16_777_216.0),
            Value::Float(f32::NAN),
            Value::Double(-0.0),
            Value::Double(1e300),
            Value::Double(5e-324),
            Value::Double(f64::NEG_INFINITY),
            Value::Decimal { digits: -5, scale: 2 },
            Value::Date { days: 19_782 },
            Value::Date { days: i32::MAX },
            Value::Time { nanos: 1_500 },
            timestamp(1_709_208_000_123_456_000, true),
            timestamp(i128::MIN, true),
            timestamp(-1, false),
            Value::Text("NULL".into()),
            Value::Text(String::new()),
            Value::Text("a\"b\\c\n\u{1}é".into()),
            Value::Blob(vec![0, b'a', b'\\', 255]),
        ];
        let nested = [
            Value::List(simple.clone()),
            Value::List(Vec::new()),
            Value::Struct(vec![("b".into(), Value::Integer(1)), ("a".into(), Value::Null)]),
            Value::Map(vec![(Value::Integer(7), Value::List(vec![Value::Float(0.1)]))]),
        ];
        simple.into_iter().chain(nested).collect()
    }

    #[test]
    fn values_are_written_as_their_documents_are() {
        for value in values() {
            let (mut own, mut its) = (Vec::new(), Vec::new());
            value.write_json(&mut own);
            value.to_json().write_json(&mut its);
            assert_eq!(String::from_utf8(own), String::from_utf8(its), "{value:?}");
            let (mut own, mut its) = (Vec::new(), Vec::new());
            value.write_plain(&mut own);
            value.to_json().write_plain(&mut its);
            assert_eq!(String::from_utf8(own), String::from_utf8(its), "{value:?}");
        }
    }
}

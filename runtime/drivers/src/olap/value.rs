//! Values of answers, in the form that documents and people see.

pub(crate) mod moment;

use std::fmt;

use jiff::{Timestamp, civil};

/// The largest integer up to which JSON readers agree on every value.
const MAX_SAFE_INTEGER: u128 = 1 << 53;

/// A value of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// SQL `NULL`.
    Null,
    /// A truth value.
    Boolean(bool),
    /// An integer of any width.
    Integer(i128),
    /// A floating-point number of 32 bits.
    Float(f32),
    /// A floating-point number of 64 bits.
    Double(f64),
    /// A decimal number with a fixed scale.
    Decimal {
        /// All digits as an integer.
        digits: i128,
        /// Number of digits after the decimal point.
        scale: u8,
    },
    /// A calendar day.
    Date {
        /// Days since 1970-01-01; `i32::MAX` and `-i32::MAX` are infinite.
        days: i32,
    },
    /// A time of day, without an offset.
    Time {
        /// Nanoseconds since midnight.
        nanos: i64,
    },
    /// A date with time of day; with a time zone, an instant.
    Timestamp {
        /// Nanoseconds since 1970-01-01, in UTC for an instant; `i128::MAX` and `i128::MIN` are infinite.
        nanos: i128,
        /// True for an instant, false without a time zone.
        is_instant: bool,
    },
    /// A text, or a type without its own variant: intervals, times with an offset, UUIDs, enums, bit strings.
    Text(String),
    /// A sequence of bytes.
    Blob(Vec<u8>),
    /// A list or an array.
    List(Vec<Value>),
    /// Named fields in order.
    Struct(Vec<(String, Value)>),
    /// Keys and values in the engine's order.
    Map(Vec<(Value, Value)>),
}

impl Value {
    /// Returns a number of any type as the nearest 64-bit float; none for other values.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Float(number) => Some(f64::from(*number)),
            Self::Double(number) => Some(*number),
            // The nearest number is that of the text: a division would round twice.
            Self::Decimal { .. } => self.to_string().parse().ok(),
            _ => None,
        }
    }

    /// Returns a timestamp as an instant, taken as UTC if without a time zone; none for other values, and outside the
    /// range of [`Timestamp`].
    pub fn instant(&self) -> Option<Timestamp> {
        match self {
            Self::Timestamp { nanos, .. } => Timestamp::from_nanosecond(*nanos).ok(),
            _ => None,
        }
    }

    /// Returns a date; none for other values, and outside the range of [`civil::Date`].
    pub fn day(&self) -> Option<civil::Date> {
        match self {
            Self::Date { days } => {
                let epoch = civil::date(1970, 1, 1);
                epoch.checked_add(jiff::Span::new().try_days(*days).ok()?).ok()
            }
            _ => None,
        }
    }

    /// Converts the value to JSON as in documents: a string if JSON can't represent it exactly.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match self {
            Self::Null => Json::Null,
            Self::Boolean(b) => Json::Bool(*b),
            Self::Integer(n) if n.unsigned_abs() <= MAX_SAFE_INTEGER => {
                i64::try_from(*n).map_or_else(|_| Json::String(n.to_string()), Json::from)
            }
            Self::Integer(n) => Json::String(n.to_string()),
            // By way of its shortest text, so that 0.1 does not become 0.10000000149011612.
            Self::Float(x) => number(x.to_string().parse().unwrap_or(f64::NAN), self),
            Self::Double(x) => number(*x, self),
            Self::Text(text) => Json::String(text.clone()),
            Self::Decimal { .. }
            | Self::Date { .. }
            | Self::Time { .. }
            | Self::Timestamp { .. }
            | Self::Blob(_) => Json::String(self.to_string()),
            Self::List(items) => Json::Array(items.iter().map(Self::to_json).collect()),
            Self::Struct(fields) => Json::Object(
                fields
                    .iter()
                    .map(|(name, value)| (name.clone(), value.to_json()))
                    .collect(),
            ),
            Self::Map(entries) => Json::Object(
                entries
                    .iter()
                    .map(|(key, value)| (key.to_string(), value.to_json()))
                    .collect(),
            ),
        }
    }
}

/// Returns a JSON number; for NaN and infinities the text of `value`.
fn number(x: f64, value: &Value) -> serde_json::Value {
    serde_json::Number::from_f64(x).map_or_else(
        || serde_json::Value::String(value.to_string()),
        serde_json::Value::Number,
    )
}

/// Formats the value as in tables and CSV, with nested values as JSON.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Boolean(b) => b.fmt(f),
            Self::Integer(n) => n.fmt(f),
            Self::Float(x) => x.fmt(f),
            Self::Double(x) => x.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Decimal { digits, scale } => f.write_str(&moment::decimal(*digits, *scale)),
            Self::Date { days } => f.write_str(&moment::date(*days)),
            Self::Time { nanos } => f.write_str(&moment::time((*nanos).into())),
            Self::Timestamp { nanos, is_instant } => {
                f.write_str(&moment::timestamp(*nanos))?;
                match *is_instant && !matches!(*nanos, i128::MIN | i128::MAX) {
                    true => f.write_str("+00"),
                    false => Ok(()),
                }
            }
            Self::Blob(bytes) => bytes.iter().try_for_each(|byte| match byte {
                b'\\' => f.write_str("\\x5C"),
                0x20..=0x7e => write!(f, "{}", char::from(*byte)),
                _ => write!(f, "\\x{byte:02X}"),
            }),
            Self::List(_) | Self::Struct(_) | Self::Map(_) => write!(f, "{}", self.to_json()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn integers_that_json_readers_would_round_are_strings() {
        assert_eq!(Value::Integer(1 << 53).to_json(), json!(9007199254740992_i64));
        assert_eq!(Value::Integer((1 << 53) + 1).to_json(), json!("9007199254740993"));
        assert_eq!(
            Value::Integer(i128::MIN + 1).to_json(),
            json!((i128::MIN + 1).to_string())
        );
    }

    #[test]
    fn numbers_keep_their_shortest_form_and_odd_ones_become_text() {
        assert_eq!(Value::Float(0.1).to_json(), json!(0.1));
        assert_eq!(Value::Double(f64::NAN).to_json(), json!("NaN"));
        assert_eq!(Value::Double(f64::INFINITY).to_json(), json!("inf"));
    }

    #[test]
    fn numbers_days_and_instants_keep_their_types() {
        let decimal = |digits, scale| Value::Decimal { digits, scale };
        assert_eq!(decimal(-5, 2).to_string(), "-0.05");
        assert_eq!(decimal(1_250, 2).number(), Some(12.5));
        assert_eq!(Value::Text("12.5".into()).number(), None);
        let leap_day = Value::Date { days: 19_782 };
        assert_eq!(leap_day.day(), Some(civil::date(2024, 2, 29)));
        assert_eq!(leap_day.instant(), None);
        assert_eq!(Value::Date { days: i32::MAX }.day(), None);
        let noon = |is_instant| Value::Timestamp {
            nanos: 1_709_208_000_000_000_000,
            is_instant,
        };
        assert_eq!(noon(true).instant(), "2024-02-29T12:00:00Z".parse().ok());
        assert_eq!(noon(true).to_string(), "2024-02-29 12:00:00+00");
        assert_eq!(noon(false).to_json(), json!("2024-02-29 12:00:00"));
        let never = Value::Timestamp {
            nanos: i128::MAX,
            is_instant: true,
        };
        assert_eq!(
            (never.instant(), never.to_string()),
            (None, "infinity".to_owned())
        );
        assert_eq!(size_of::<Value>(), 32, "answers have many");
    }

    #[test]
    fn nested_values_are_nested_json() {
        let value = Value::Struct(vec![
            ("a".into(), Value::List(vec![Value::Integer(1), Value::Null])),
            (
                "b".into(),
                Value::Map(vec![(Value::Integer(7), Value::Text("x".into()))]),
            ),
        ]);
        assert_eq!(value.to_json(), json!({"a": [1, null], "b": {"7": "x"}}));
        assert_eq!(value.to_string(), r#"{"a":[1,null],"b":{"7":"x"}}"#);
    }
}

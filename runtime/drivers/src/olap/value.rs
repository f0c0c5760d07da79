//! Values of an answer, in the form in which documents and people see them.

use std::fmt;

/// The largest integer up to which JSON readers agree on every value.
const MAX_SAFE_INTEGER: u128 = 1 << 53;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// Truth.
    Boolean(bool),
    /// Any integer type.
    Integer(i128),
    /// A 32-bit number.
    Float(f32),
    /// A 64-bit number.
    Double(f64),
    /// Text, and what reads best as text: decimals, dates, times, intervals, UUIDs, enums, bits.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
    /// A list or an array.
    List(Vec<Value>),
    /// Named fields in order.
    Struct(Vec<(String, Value)>),
    /// Keys and values in the engine's order.
    Map(Vec<(Value, Value)>),
}

impl Value {
    /// As in documents: what JSON can't hold exactly is a string.
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
            Self::Blob(_) => Json::String(self.to_string()),
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

/// A JSON number, or the text of `value` where JSON has none (not a number, infinite).
fn number(x: f64, value: &Value) -> serde_json::Value {
    serde_json::Number::from_f64(x).map_or_else(
        || serde_json::Value::String(value.to_string()),
        serde_json::Value::Number,
    )
}

/// As in tables and CSV; what is nested is written as JSON.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Boolean(b) => b.fmt(f),
            Self::Integer(n) => n.fmt(f),
            Self::Float(x) => x.fmt(f),
            Self::Double(x) => x.fmt(f),
            Self::Text(text) => f.write_str(text),
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

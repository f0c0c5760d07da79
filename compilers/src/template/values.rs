//! Conversions of values that template functions take and return.

use gotmpl::Value;

/// A template function; returns none if its arguments have wrong types.
pub(super) type Function = fn(&[Value]) -> Option<Value>;

/// Returns the text of a value; empty for nil.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Nil => String::new(),
        other => other.to_string(),
    }
}

/// Returns a value as an integer, truncated or parsed if it has another type.
pub(super) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(value) => Some(*value),
        Value::Float(value) => Some(*value as i64),
        Value::Bool(value) => Some(i64::from(*value)),
        other => text(other).trim().parse().ok(),
    }
}

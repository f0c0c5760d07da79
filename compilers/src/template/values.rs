//! Values of templates, as functions take and return them.

use gotmpl::Value;

/// A function of templates. Returns nothing where its arguments don't fit.
pub(super) type Function = fn(&[Value]) -> Option<Value>;

/// The value as it is printed; nothing is an empty text.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Nil => String::new(),
        other => other.to_string(),
    }
}

/// The value as a whole number, cut or read where it has another type.
pub(super) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(value) => Some(*value),
        Value::Float(value) => Some(*value as i64),
        Value::Bool(value) => Some(i64::from(*value)),
        other => text(other).trim().parse().ok(),
    }
}

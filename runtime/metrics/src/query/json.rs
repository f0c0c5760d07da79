//! Strict reading of JSON: unknown keys are refused with the nearest known one.

use serde_json::{Map, Value};

use super::error::{At, Code, QueryError};

/// A JSON object all of whose keys are known.
pub(super) struct Block<'v> {
    map: &'v Map<String, Value>,
}

impl<'v> Block<'v> {
    /// Reads an object; returns an error if it has keys other than `keys`.
    pub(super) fn new(value: &'v Value, keys: &[&str], at: &At<'_>) -> Result<Self, QueryError> {
        let Value::Object(map) = value else {
            return Err(at.error(
                Code::WrongType,
                format!("expected a mapping, not {}", kind(value)),
            ));
        };
        for key in map.keys() {
            if !keys.contains(&key.as_str()) {
                let message = format!("unknown key \"{key}\"");
                return Err(at.unknown(Code::UnknownKey, message, key, keys.iter().copied()));
            }
        }
        Ok(Self { map })
    }

    /// Returns the value of a key, unless it is missing or null.
    pub(super) fn get(&self, key: &str) -> Option<&'v Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// Returns the value of a key, unless it is missing, null, or an empty object or list.
    pub(super) fn said(&self, key: &str) -> Option<&'v Value> {
        let is_empty = |value: &Value| match value {
            Value::Object(map) => map.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        self.get(key).filter(|value| !is_empty(value))
    }

    /// Returns the value of a key, even if it is null.
    pub(super) fn raw(&self, key: &str) -> Option<&'v Value> {
        self.map.get(key)
    }

    /// Returns the text of a key; none if it is missing.
    pub(super) fn text(&self, key: &str, at: &At<'_>) -> Result<Option<String>, QueryError> {
        let text = |value: &Value| match value {
            Value::String(text) => Ok(text.clone()),
            other => Err(wrong("text", other, &at.key(key))),
        };
        self.get(key).map(text).transpose()
    }

    /// Returns the text of a key; an error if it is missing or empty.
    pub(super) fn required(&self, key: &str, at: &At<'_>) -> Result<String, QueryError> {
        match self.text(key, at)? {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err(at.error(Code::MissingKey, format!("`{key}` is missing"))),
        }
    }

    /// Returns the name of a required field: a text, or an object with `name` (Q1).
    pub(super) fn field(&self, key: &str, at: &At<'_>) -> Result<String, QueryError> {
        match self.get(key) {
            None => Err(at.error(Code::MissingKey, format!("`{key}` is missing"))),
            Some(value) => field(value, &at.key(key)),
        }
    }

    /// Returns the names of the fields in a list.
    pub(super) fn fields(&self, key: &str, at: &At<'_>) -> Result<Vec<String>, QueryError> {
        self.list(key, at, field)
    }

    /// Returns the boolean of a key; false if it is missing.
    pub(super) fn flag(&self, key: &str, at: &At<'_>) -> Result<bool, QueryError> {
        match self.get(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(wrong("true or false", other, &at.key(key))),
        }
    }

    /// Returns the count of a key; none if it is missing.
    pub(super) fn count(&self, key: &str, at: &At<'_>) -> Result<Option<u64>, QueryError> {
        let count = |value: &Value| {
            let wrong = || wrong("a whole number from 0", value, &at.key(key));
            value.as_u64().ok_or_else(wrong)
        };
        self.get(key).map(count).transpose()
    }

    /// Reads each item of a list; empty if the list is missing.
    pub(super) fn list<T>(
        &self,
        key: &str,
        at: &At<'_>,
        mut read: impl FnMut(&'v Value, &At<'_>) -> Result<T, QueryError>,
    ) -> Result<Vec<T>, QueryError> {
        let at = at.key(key);
        match self.said(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                let items = items.iter().enumerate();
                items.map(|(index, item)| read(item, &at.item(index))).collect()
            }
            Some(other) => Err(wrong("a list", other, &at)),
        }
    }
}

/// Reads the name of a field: a text, which is short for an object with `name`.
fn field(value: &Value, at: &At<'_>) -> Result<String, QueryError> {
    match value {
        Value::Object(_) => Block::new(value, &["name"], at)?.required("name", at),
        Value::String(name) if !name.is_empty() => Ok(name.clone()),
        Value::String(_) => Err(at.error(Code::MissingKey, "a name is missing")),
        other => Err(wrong("text", other, at)),
    }
}

/// Creates the error for a value of the wrong type.
pub(super) fn wrong(expected: &str, found: &Value, at: &At<'_>) -> QueryError {
    at.error(
        Code::WrongType,
        format!("expected {expected}, not {}", kind(found)),
    )
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

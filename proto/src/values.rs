//! Making and reading [`Value`]s.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::v1::{ListValue, MapValue, SqlSource, Value, value::Kind};

impl Value {
    /// The null value.
    pub const NULL: Value = Value { kind: None };

    /// The text, if it is text.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Some(Kind::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The truth value, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self.kind {
            Some(Kind::Bool(value)) => Some(value),
            _ => None,
        }
    }

    /// The whole number, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self.kind {
            Some(Kind::Int(value)) => Some(value),
            _ => None,
        }
    }

    /// The mapping, if it is one.
    pub fn as_map(&self) -> Option<&BTreeMap<String, Value>> {
        match &self.kind {
            Some(Kind::Map(map)) => Some(&map.fields),
            _ => None,
        }
    }

    /// The sequence, if it is one.
    pub fn as_list(&self) -> Option<&[Value]> {
        match &self.kind {
            Some(Kind::List(list)) => Some(&list.values),
            _ => None,
        }
    }

    /// Returns whether it is null.
    pub fn is_null(&self) -> bool {
        self.kind.is_none()
    }
}

impl MapValue {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.fields.get(key)
    }

    /// The text of a key, if it has one.
    pub fn str(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value {
            kind: Some(Kind::Bool(value)),
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value {
            kind: Some(Kind::Int(value)),
        }
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Value {
            kind: Some(Kind::Float(value)),
        }
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value {
            kind: Some(Kind::String(value.to_owned())),
        }
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value {
            kind: Some(Kind::String(value)),
        }
    }
}

impl From<Vec<Value>> for Value {
    fn from(values: Vec<Value>) -> Self {
        Value {
            kind: Some(Kind::List(ListValue { values })),
        }
    }
}

impl From<BTreeMap<String, Value>> for Value {
    fn from(fields: BTreeMap<String, Value>) -> Self {
        Value {
            kind: Some(Kind::Map(MapValue { fields })),
        }
    }
}

impl From<&Value> for serde_json::Value {
    fn from(value: &Value) -> Self {
        match &value.kind {
            None => Self::Null,
            Some(Kind::Bool(value)) => Self::Bool(*value),
            Some(Kind::Int(value)) => Self::from(*value),
            Some(Kind::Float(value)) => Self::from(*value),
            Some(Kind::String(value)) => Self::from(value.as_str()),
            Some(Kind::List(list)) => list.values.iter().map(Self::from).collect(),
            Some(Kind::Map(map)) => Self::from(map),
        }
    }
}

impl From<serde_json::Value> for Value {
    fn from(value: serde_json::Value) -> Self {
        use serde_json::Value as Json;
        let kind = match value {
            Json::Null => None,
            Json::Bool(value) => Some(Kind::Bool(value)),
            Json::Number(number) => Some(match number.as_i64() {
                Some(whole) => Kind::Int(whole),
                None => Kind::Float(number.as_f64().unwrap_or(f64::NAN)),
            }),
            Json::String(text) => Some(Kind::String(text)),
            Json::Array(items) => return items.into_iter().map(Self::from).collect::<Vec<_>>().into(),
            Json::Object(fields) => {
                let fields = fields.into_iter().map(|(key, value)| (key, Self::from(value)));
                return fields.collect::<BTreeMap<_, _>>().into();
            }
        };
        Value { kind }
    }
}

impl From<&MapValue> for serde_json::Value {
    fn from(map: &MapValue) -> Self {
        Self::Object(
            map.fields
                .iter()
                .map(|(key, value)| (key.clone(), Self::from(value)))
                .collect(),
        )
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::Value::from(self).serialize(serializer)
    }
}

impl Serialize for MapValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::Value::from(self).serialize(serializer)
    }
}

/// Of SQL people see the text: where it stands is told with what is wrong there.
impl Serialize for SqlSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    #[test]
    fn whole_numbers_stay_apart_from_fractions() {
        let values = Value::from(vec![Value::from(1_i64), Value::from(1.0), Value::NULL]);
        let read = Value::decode(values.encode_to_vec().as_slice()).expect("bytes of our own making");
        assert_eq!(read, values);
        assert_eq!(serde_json::Value::from(&read).to_string(), "[1,1.0,null]");
    }

    #[test]
    fn equal_mappings_have_equal_bytes() {
        let entries = [("b", 1_i64), ("a", 2), ("c", 3)];
        let forward: BTreeMap<_, _> = entries
            .iter()
            .map(|(k, v)| ((*k).to_owned(), Value::from(*v)))
            .collect();
        let backward: BTreeMap<_, _> = entries
            .iter()
            .rev()
            .map(|(k, v)| ((*k).to_owned(), Value::from(*v)))
            .collect();
        assert_eq!(
            Value::from(forward).encode_to_vec(),
            Value::from(backward).encode_to_vec()
        );
    }
}

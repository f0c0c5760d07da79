//! A YAML value with its place.

use std::collections::BTreeMap;

use watershed_proto::Value;

use crate::diagnostics::At;

/// The style of a scalar; decides where its text stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// On its own, or not a scalar.
    Plain,
    /// Between quotes.
    Quoted,
    /// A block whose lines are kept (`|`).
    Literal,
    /// A block whose lines are joined (`>`).
    Folded,
    /// As an annotation in SQL: a text that stands for any scalar.
    Annotation,
}

/// A value with its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: At,
    pub(crate) style: Style,
    /// The written form, when that is no text: `007` is seven to a number and itself to a name.
    pub(crate) raw: Option<Box<str>>,
    pub(crate) data: Data,
}

/// A mapping by key.
pub(crate) type Map = BTreeMap<String, Entry>;

/// A key's place and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key_at: At,
    pub(crate) value: Node,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Data {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(String),
    List(Vec<Node>),
    Map(Map),
}

impl Data {
    /// The type's name for people.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Data::Null => "nothing",
            Data::Bool(_) => "a boolean",
            Data::Int(_) => "a whole number",
            Data::Float(_) => "a number",
            Data::String(_) => "text",
            Data::List(_) => "a list",
            Data::Map(_) => "a mapping",
        }
    }
}

impl Node {
    pub(crate) fn new(at: At, data: Data) -> Self {
        Self {
            at,
            style: Style::Plain,
            raw: None,
            data,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.data, Data::Null)
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match &self.data {
            Data::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_map(&self) -> Option<&Map> {
        match &self.data {
            Data::Map(map) => Some(map),
            _ => None,
        }
    }

    pub(crate) fn as_list(&self) -> Option<&[Node]> {
        match &self.data {
            Data::List(list) => Some(list),
            _ => None,
        }
    }

    /// The text of a scalar as a person reads it; `None` for lists, mappings and null.
    pub(crate) fn scalar_text(&self) -> Option<String> {
        if let Some(raw) = &self.raw {
            return Some(raw.to_string());
        }
        match &self.data {
            Data::Bool(value) => Some(value.to_string()),
            Data::Int(value) => Some(value.to_string()),
            Data::Float(value) => Some(value.to_string()),
            Data::String(value) => Some(value.clone()),
            Data::Null | Data::List(_) | Data::Map(_) => None,
        }
    }

    /// The value without places.
    pub(crate) fn to_value(&self) -> Value {
        match &self.data {
            Data::Null => Value::NULL,
            Data::Bool(value) => Value::from(*value),
            Data::Int(value) => Value::from(*value),
            Data::Float(value) => Value::from(*value),
            Data::String(value) => Value::from(value.as_str()),
            Data::List(list) => Value::from(list.iter().map(Node::to_value).collect::<Vec<_>>()),
            Data::Map(map) => Value::from(
                map.iter()
                    .map(|(key, entry)| (key.clone(), entry.value.to_value()))
                    .collect::<BTreeMap<_, _>>(),
            ),
        }
    }
}

/// Lays `over` on `base`: mappings merge key by key, anything else replaces.
pub(crate) fn overlay(base: &mut Map, over: &Map) {
    for (key, entry) in over {
        match (
            base.get_mut(key).map(|there| &mut there.value.data),
            &entry.value.data,
        ) {
            (Some(Data::Map(below)), Data::Map(above)) => overlay(below, above),
            _ => {
                base.insert(key.clone(), entry.clone());
            }
        }
    }
}

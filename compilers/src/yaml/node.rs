//! YAML values with their places.

use std::collections::BTreeMap;

use watershed_proto::Value;

use crate::diagnostics::At;

/// The style of a scalar, which decides where its text stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A scalar without quotes, or a value that is no scalar.
    Plain,
    /// A scalar in single or double quotes.
    Quoted,
    /// A block scalar with line breaks kept (`|`).
    Literal,
    /// A block scalar with lines joined (`>`).
    Folded,
    /// An annotation in SQL, whose text may stand for any scalar.
    Annotation,
}

/// A YAML value with its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: At,
    pub(crate) style: Style,
    /// The text as written, if the value is not a text: `007` is 7 as a number and `007` as a name.
    pub(crate) raw: Option<Box<str>>,
    pub(crate) data: Data,
}

/// A mapping from keys to entries.
pub(crate) type Map = BTreeMap<String, Entry>;

/// The value of a key, with the place of the key.
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
    /// Returns the name of the type for messages, with its article.
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

    /// Returns the text of a scalar as written; none for lists, mappings and null.
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

    /// Returns the value without places.
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

/// Merges `over` into `base`: mappings key by key, other values by replacement.
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

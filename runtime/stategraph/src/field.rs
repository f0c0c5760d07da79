//! Paths to the fields of a value.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// A path to a field: names and, for lists, positions, written `a.b.0`. Empty for the whole value.
///
/// ```
/// use serde_json::json;
/// use watershed_stategraph::FieldPath;
/// let table = json!({"columns": [{"name": "day"}]});
/// assert_eq!(FieldPath::new("columns.0.name").find(&table), Some(&json!("day")));
/// assert_eq!(FieldPath::new("columns.1").find(&table), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FieldPath(String);

impl FieldPath {
    /// Creates a path from a text such as `listen.port`; every text is valid.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the value at the path in a JSON value.
    pub fn find<'a>(&self, whole: &'a Json) -> Option<&'a Json> {
        self.0
            .split('.')
            .filter(|part| !part.is_empty())
            .try_fold(whole, |at, part| match at {
                Json::Object(fields) => fields.get(part),
                Json::Array(entries) => entries.get(part.parse::<usize>().ok()?),
                _ => None,
            })
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "value" } else { &self.0 })
    }
}

//! The name of a resource in documents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind and name of a resource, written as in project files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ResourceName {
    /// The kind: `model`, `metrics_view`, ...
    pub kind: String,
    /// The name, in the case in which it was declared.
    pub name: String,
}

impl ResourceName {
    /// Returns the name of a resource of a kind.
    pub fn new(kind: &str, name: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl std::fmt::Display for ResourceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

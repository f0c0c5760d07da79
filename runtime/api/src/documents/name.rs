//! The kind and name of a resource, as documents identify it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind and name of a resource, spelled as in project files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ResourceName {
    /// Kind of the resource, such as `model` or `metrics_view`.
    pub kind: String,
    /// Name of the resource, in the case in which it was declared.
    pub name: String,
}

impl ResourceName {
    /// Returns the identifier of a resource from its kind and name.
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

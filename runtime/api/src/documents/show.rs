//! The document of `show` for a resource that has no rows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ResourceDocument;

/// A resource with what is wanted of it and what was achieved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShowDocument {
    /// Name and version of this form: `watershed.show/1`.
    pub schema: String,
    /// The resource.
    pub resource: ResourceDocument,
    /// The desired spec, keys named as in project files.
    pub spec: Value,
    /// The stored state.
    pub state: Value,
}

impl ShowDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.show/1";
}

//! The document of `show` for a resource without rows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ResourceDocument;

/// A resource without rows, with its desired spec and stored state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShowDocument {
    /// Name and version of this form: `watershed.show/1`.
    pub schema: String,
    /// Kind, name and status of the resource.
    pub resource: ResourceDocument,
    /// Desired spec, with the keys of project files.
    pub spec: Value,
    /// State that the reconciler stored; null if there is none.
    pub state: Value,
}

impl ShowDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.show/1";
}

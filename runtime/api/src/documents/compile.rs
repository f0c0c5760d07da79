//! The document of `compile`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ResourceName;

/// The SQL of a resource as it is sent to the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompileDocument {
    /// Name and version of this form: `watershed.compile/1`.
    pub schema: String,
    /// Kind and name of the resource.
    pub resource: ResourceName,
    /// Name of the connector that the SQL runs on.
    pub connector: String,
    /// Compiled SQL statement.
    pub sql: String,
}

impl CompileDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.compile/1";
}

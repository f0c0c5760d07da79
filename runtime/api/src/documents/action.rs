//! An operation that a hint proposes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ResourceName;

/// An operation that a hint proposes, for programs that offer it as a button or a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Action {
    /// The name of the operation.
    pub operation: String,
    /// The resource that the operation is about; null where there is none, or the hint names no kind.
    pub resource: Option<ResourceName>,
    /// The other words of the hint's command, options by their names. One without a value is true.
    pub arguments: Map<String, Value>,
    /// The call that carries the operation out; null where HTTP has none, or a person has to fill something in first.
    pub call: Option<ActionCall>,
}

/// A call of the HTTP API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActionCall {
    /// The verb.
    pub method: String,
    /// The path below the instance, its query included.
    pub path: String,
    /// The body; null for a look.
    pub body: Option<Map<String, Value>>,
}

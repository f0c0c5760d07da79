//! Operations that hints propose.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ResourceName;

/// An operation that a hint proposes, for programs that offer it as a button or a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Action {
    /// Name of the operation, such as `refresh`.
    pub operation: String,
    /// Resource that the operation applies to; null if there is none, or the hint names no kind.
    pub resource: Option<ResourceName>,
    /// Other arguments of the hint's command, by name. An option without a value is `true`.
    pub arguments: Map<String, Value>,
    /// HTTP call that carries out the operation; null if there is none, or a person must fill in an argument first.
    pub call: Option<ActionCall>,
}

/// A call of the HTTP API that carries out an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActionCall {
    /// HTTP method, such as `POST`.
    pub method: String,
    /// Path relative to the instance, with the query.
    pub path: String,
    /// JSON body of the call; null for a call that only reads.
    pub body: Option<Map<String, Value>>,
}

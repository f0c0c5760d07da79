//! The document of `status --engine`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The guarantees and capabilities of the engine that models are built in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineDocument {
    /// Name and version of this form: `watershed.engine/1`.
    pub schema: String,
    /// Name of the project.
    pub project: String,
    /// Name of the driver, as connectors spell it, such as `duckdb`.
    pub driver: String,
    /// Guarantees of the engine, in display order.
    pub promises: Vec<EnginePromise>,
    /// Capabilities that an engine may lack, each with its presence.
    pub parts: Vec<EnginePart>,
}

/// A guarantee of the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnginePromise {
    /// Stable name of the guarantee, such as `appears`, `record` or `fence`.
    pub name: String,
    /// Subject of the guarantee, for people.
    pub title: String,
    /// Description of how the engine keeps the guarantee.
    pub how: String,
    /// True if the engine keeps only a weaker form of the guarantee.
    pub weaker: bool,
}

/// A capability that an engine may lack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnginePart {
    /// Stable name of the capability, such as `trash` or `partitions`.
    pub name: String,
    /// Title of the capability, for people.
    pub title: String,
    /// True if the engine has the capability.
    pub present: bool,
}

impl EngineDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.engine/1";
}

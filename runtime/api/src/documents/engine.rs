//! The document of `status --engine`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The engine that models are built in: what it promises, and the parts that it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineDocument {
    /// Name and version of this form: `watershed.engine/1`.
    pub schema: String,
    /// Name of the project.
    pub project: String,
    /// The driver, as connectors name it: `duckdb`.
    pub driver: String,
    /// Its promises, in the order in which they are shown.
    pub promises: Vec<EnginePromise>,
    /// Parts that an engine may lack.
    pub parts: Vec<EnginePart>,
}

/// A promise of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnginePromise {
    /// A stable name: `appears`, `record`, `fence`, ...
    pub name: String,
    /// The matter.
    pub title: String,
    /// The way in which it is kept.
    pub how: String,
    /// True if it is kept less than whole.
    pub weaker: bool,
}

/// A part that an engine may lack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnginePart {
    /// A stable name: `trash`, `partitions`, ...
    pub name: String,
    /// The part.
    pub title: String,
    /// True if the engine has it.
    pub present: bool,
}

impl EngineDocument {
    /// The schema of this form.
    pub const SCHEMA: &str = "watershed.engine/1";
}

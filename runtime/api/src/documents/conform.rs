//! The document of `debug conform`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of holding the project's engine to what it promises, on data of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConformDocument {
    /// Name and version of this form: `watershed.conform/1`.
    pub schema: String,
    /// Version of the program that wrote the document.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Name of the project's environment.
    pub environment: String,
    /// Name of the driver, as connectors spell it, such as `duckdb`.
    pub driver: String,
    /// Guarantees of the engine, with the number of cases that lean on each by their ends, in display order.
    pub guarantees: Vec<ConformGuarantee>,
    /// Cases in the order in which they were tried.
    pub cases: Vec<ConformCase>,
    /// Data of the trial that could not be removed; empty if nothing is left.
    pub left: Vec<String>,
    /// Exit code of the command.
    pub exit_code: u8,
}

impl ConformDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.conform/1";
}

/// A guarantee of the engine, with the ends of its cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConformGuarantee {
    /// Stable name of the guarantee, as in `status --engine`.
    pub name: String,
    /// Subject of the guarantee, for people.
    pub title: String,
    /// True if the engine keeps only a weaker form of the guarantee.
    pub weaker: bool,
    /// Number of cases that passed.
    pub passed: u64,
    /// Number of cases that failed.
    pub failed: u64,
    /// Number of cases that were left out or not tried, of which nothing is said.
    pub untried: u64,
}

/// A behaviour of the engine, and how its trial ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConformCase {
    /// The behaviour as a sentence, with `_` between its words.
    pub name: String,
    /// Names of the guarantees that the behaviour leans on.
    pub guarantees: Vec<String>,
    /// End of the trial.
    pub end: ConformEnd,
    /// Difference that was found, or the reason why nothing was tried; null of a case that passed.
    pub message: Option<String>,
}

/// The end of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConformEnd {
    /// The engine does what it promises.
    Passed,
    /// The engine does something else.
    Failed,
    /// Left out, as the engine promises less.
    Weaker,
    /// Not tried, as the command has no means for it.
    NotTried,
}

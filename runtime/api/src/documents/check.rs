//! The document of `debug check`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ResourceName;

/// The result of a consistency check of the controller and its catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckDocument {
    /// Name and version of this form: `watershed.check/1`.
    pub schema: String,
    /// Version of the program that wrote the document.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Path of the project's folder.
    pub root: String,
    /// Name of the project's environment.
    pub environment: String,
    /// True if a running process checked itself; false if the stored catalog was loaded and checked.
    pub live: bool,
    /// Revision of the checked catalog.
    pub revision: u64,
    /// Number of checked resources, including hidden resources.
    pub resources: u64,
    /// Names of the rules that were checked.
    pub rules: Vec<String>,
    /// Extent to which the stored catalog was compared with the catalog in memory.
    pub compared: Compared,
    /// Violations of the rules; at most 20 for each rule.
    pub findings: Vec<CheckFinding>,
    /// Exit code of the command.
    pub exit_code: u8,
}

impl CheckDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.check/1";
}

/// The extent to which the stored catalog was compared with the catalog in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compared {
    /// The catalogs were not compared.
    Not,
    /// Only unchanged rows were compared, since the catalog changed during the check.
    Partly,
    /// All rows were compared.
    Whole,
}

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckFinding {
    /// Violated rule: the number of a controller's rule, `stored`, or `file` for the catalog's file.
    pub rule: String,
    /// Resource that violates the rule; null if the violation concerns no single resource.
    pub resource: Option<ResourceName>,
    /// Description of the violation.
    pub message: String,
}

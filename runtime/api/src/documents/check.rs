//! The document of `debug check`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ResourceName;

/// Tells whether the controller and its catalog hold together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckDocument {
    /// Name and version of this form: `watershed.check/1`.
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Folder of the project.
    pub root: String,
    /// The environment.
    pub environment: String,
    /// True if a process runs the project and checked itself; otherwise what is stored was loaded and checked.
    pub live: bool,
    /// The catalog's revision.
    pub revision: u64,
    /// The resources that were looked at, hidden ones included.
    pub resources: u64,
    /// The rules that were checked.
    pub rules: Vec<String>,
    /// The extent to which the stored catalog was compared with the loaded one.
    pub compared: Compared,
    /// Broken rules; at most 20 findings of each.
    pub findings: Vec<CheckFinding>,
    /// The exit code of the program.
    pub exit_code: u8,
}

impl CheckDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.check/1";
}

/// The extent to which a stored catalog was compared with the loaded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compared {
    /// It was not.
    Not,
    /// Only rows that neither had changed since; the catalog moved on between the two looks.
    Partly,
    /// Whole.
    Whole,
}

/// Something that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckFinding {
    /// The broken rule: one of the controller by its number, `stored`, or `file` for the catalog's file.
    pub rule: String,
    /// The resource that it is about.
    pub resource: Option<ResourceName>,
    /// A description.
    pub message: String,
}

//! Diagnostics of the project's files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ResourceName;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something can't be built.
    Error,
    /// Something is most likely not what was meant.
    Warning,
    /// Something could be better.
    Hint,
}

/// A finding in a file, with its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// Stable name of the finding.
    pub code: String,
    /// The file, relative to the project; the manifest where no file is at fault.
    pub path: String,
    /// First line, from 1.
    pub line: u32,
    /// First column in characters, from 1.
    pub column: u32,
    /// Last line.
    pub end_line: u32,
    /// Column behind the last character.
    pub end_column: u32,
    /// A description.
    pub message: String,
    /// A hint.
    pub hint: Option<String>,
    /// The lines that it was found in: the first rows of a failing test, for example.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// All that the engine said, where that is more than the message and the hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// The resource that it concerns.
    pub resource: Option<ResourceName>,
    /// Other places that it speaks of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<RelatedPlace>,
}

/// Another place that a finding speaks of: where something was declared first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RelatedPlace {
    /// The file, relative to the project.
    pub path: String,
    /// First line, from 1.
    pub line: u32,
    /// First column in characters, from 1.
    pub column: u32,
    /// Last line.
    pub end_line: u32,
    /// Column behind the last character.
    pub end_column: u32,
    /// A few words about that place.
    pub message: String,
}

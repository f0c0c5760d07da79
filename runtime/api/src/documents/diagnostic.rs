//! Findings in the project's files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ResourceName;

/// The severity of a finding: error, warning or hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// An error: something can't be built.
    Error,
    /// A warning: something is most likely a mistake.
    Warning,
    /// A suggestion for improvement.
    Hint,
}

/// A finding in a file, with its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// Severity of the finding.
    pub severity: Severity,
    /// Stable code of the finding, for programs.
    pub code: String,
    /// Path of the file, relative to the project; the manifest's if no file is at fault.
    pub path: String,
    /// First line of the place, counted from 1.
    pub line: u32,
    /// First column of the place, in characters, counted from 1.
    pub column: u32,
    /// Last line of the place, counted from 1.
    pub end_line: u32,
    /// Column after the last character of the place, counted from 1.
    pub end_column: u32,
    /// Description of the finding, for people.
    pub message: String,
    /// Suggested fix; null if none is known.
    pub hint: Option<String>,
    /// Evidence of the finding, one line each, such as the first rows of a failed test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Complete message of the engine; absent if message and hint already say all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// Resource that the finding concerns; null if there is none.
    pub resource: Option<ResourceName>,
    /// Related places, such as the first declaration of a duplicate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<RelatedPlace>,
}

/// A place that is related to a finding, such as the first declaration of a duplicate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RelatedPlace {
    /// Path of the file, relative to the project.
    pub path: String,
    /// First line of the place, counted from 1.
    pub line: u32,
    /// First column of the place, in characters, counted from 1.
    pub column: u32,
    /// Last line of the place, counted from 1.
    pub end_line: u32,
    /// Column after the last character of the place, counted from 1.
    pub end_column: u32,
    /// Short description of the place.
    pub message: String,
}

//! The error of a resource in documents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The error of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceError {
    /// Stable code of the error, for programs.
    pub code: String,
    /// Message for people: what was attempted, and what prevented it.
    pub message: String,
    /// Suggested fix; null if none is known.
    pub hint: Option<String>,
    /// Complete message of the engine; absent if message and hint already say all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// Place in the project's files; null if no place is known.
    pub at: Option<At>,
    /// True if another attempt may succeed without an edit.
    pub retryable: bool,
}

/// A place in a file of the project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct At {
    /// Path of the file, relative to the project.
    pub path: String,
    /// Line of the place, counted from 1.
    pub line: u32,
    /// Column of the place, in characters, counted from 1.
    pub column: u32,
}

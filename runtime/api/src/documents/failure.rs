//! The error of a resource in documents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A resource's own failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceError {
    /// Stable name of what went wrong.
    pub code: String,
    /// The attempt, and the obstacle.
    pub message: String,
    /// A hint.
    pub hint: Option<String>,
    /// All that the engine said, where that is more than the message and the hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// The place in the project's files.
    pub at: Option<At>,
    /// True if the same attempt may succeed later without an edit.
    pub retryable: bool,
}

/// A place in a file of the project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct At {
    /// The file, relative to the project.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

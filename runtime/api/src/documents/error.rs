//! The document of a command that fails without a result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::At;

/// The reason why a command could not be carried out: wrong usage, a mistake in a statement, or an unusable folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorDocument {
    /// Name and version of this form: `watershed.error/1`.
    pub schema: String,
    /// Version of the program that wrote the document.
    pub version: String,
    /// Exit code of the command.
    pub exit_code: u8,
    /// Error that ended the command.
    pub error: CommandError,
}

/// An error that ends a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandError {
    /// Stable code, for programs: `usage`, `project`, `not-now`, `state-folder`, or the code of a mistake in a statement.
    pub code: String,
    /// Message for people: what was attempted, and what prevented it.
    pub message: String,
    /// Suggested fix; null if none is known.
    pub hint: Option<String>,
    /// Place in the statement, whose path is the file that it was read from, or `query`; null if no place is known.
    pub at: Option<At>,
}

impl ErrorDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.error/1";
}

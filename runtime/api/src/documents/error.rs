//! The document of a command that ends without a result of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::At;

/// The reason why a command could not be carried out: a mistake in its usage or in a statement, or a folder that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorDocument {
    /// Name and version of this form: `watershed.error/1`.
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// The code that the program ends with.
    pub exit_code: u8,
    /// The mistake.
    pub error: CommandError,
}

/// A mistake that ends a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandError {
    /// Stable name: `usage`, `project`, `not-now`, `state-folder`, or the code of a mistake in a statement.
    pub code: String,
    /// The message.
    pub message: String,
    /// A remedy to try.
    pub hint: Option<String>,
    /// The place in the statement; its path is the file that it was read from, or `query`.
    pub at: Option<At>,
}

impl ErrorDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.error/1";
}

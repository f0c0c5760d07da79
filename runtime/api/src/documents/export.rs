//! The document of `query --out` and `show --out`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A file to which rows were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExportDocument {
    /// Name and version of this form: `watershed.export/1`.
    pub schema: String,
    /// Absolute path of the file.
    pub file: String,
    /// Number of rows in the file; null if the engine does not report it.
    pub rows: Option<u64>,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// True if a limit has cut rows off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

impl ExportDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.export/1";
}

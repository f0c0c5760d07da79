//! The document of `query --out` and `show --out`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A file that rows were written to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExportDocument {
    /// Name and version of this form: `watershed.export/1`.
    pub schema: String,
    /// The file, with its whole path.
    pub file: String,
    /// The rows in it, if the engine says.
    pub rows: Option<u64>,
    /// Its size.
    pub bytes: u64,
}

impl ExportDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.export/1";
}

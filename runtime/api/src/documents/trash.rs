//! The document of `trash`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Time;

/// The contents of the trash, or the result of an action on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrashDocument {
    /// Name and version of this form: `watershed.trash/1`.
    pub schema: String,
    /// Version of the program that wrote the document.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Path of the project's folder.
    pub root: String,
    /// Name of the project's environment.
    pub environment: String,
    /// Action of the command on the trash.
    pub action: TrashAction,
    /// True if nothing was done and the document says what would be done.
    pub dry_run: bool,
    /// Listed, restored or deleted tables, latest first.
    pub tables: Vec<TrashedTable>,
    /// Name of the restored table; null unless a table is restored.
    pub restored_as: Option<String>,
    /// Maximum size of the trash, in bytes.
    pub limit_bytes: u64,
    /// Time for which the trash keeps tables, in milliseconds.
    pub keep_ms: u64,
}

impl TrashDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.trash/1";
}

/// An action on the trash: list, restore or empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrashAction {
    /// The trash was listed.
    List,
    /// A table was restored.
    Restore,
    /// Tables were deleted for good.
    Empty,
}

/// A table in the trash, with the reason and the time of its removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrashedTable {
    /// Id of the table, which `restore` and `empty` accept instead of a name.
    pub id: String,
    /// Name of the table before it was moved to the trash.
    pub name: String,
    /// Reason why the table is in the trash.
    pub why: WhyTrashed,
    /// Time at which the table was moved to the trash.
    pub at: Time,
    /// Time at which the table's retention ends.
    pub until: Time,
    /// Number of rows in the table; null if unknown.
    pub rows: Option<u64>,
    /// Size of the table in the engine's file, in bytes; null if unknown.
    pub bytes: Option<u64>,
    /// True if other tables can't displace this table from the trash before `until`.
    pub protected: bool,
}

/// The reason why a table is in the trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhyTrashed {
    /// The table's resource was deleted.
    Deleted,
    /// A build replaced the table.
    Replaced,
}

impl WhyTrashed {
    /// Returns the name in documents, such as `deleted`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Replaced => "replaced",
        }
    }
}

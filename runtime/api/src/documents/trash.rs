//! The document of `trash`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Time;

/// The trash, or what was done to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrashDocument {
    /// Name and version of this form: `watershed.trash/1`.
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Folder of the project.
    pub root: String,
    /// The environment.
    pub environment: String,
    /// The thing that was done.
    pub action: TrashAction,
    /// Nothing was done: it was asked what would be.
    pub dry_run: bool,
    /// The tables that this is about, the latest first.
    pub tables: Vec<TrashedTable>,
    /// The name of the table that was restored.
    pub restored_as: Option<String>,
    /// The most that the trash may hold, in bytes.
    pub limit_bytes: u64,
    /// The time for which tables are kept, in milliseconds.
    pub keep_ms: u64,
}

impl TrashDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.trash/1";
}

/// A thing that is done with the trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrashAction {
    /// It was looked at.
    List,
    /// A table was given back.
    Restore,
    /// Tables were thrown away for good.
    Empty,
}

/// A table in the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrashedTable {
    /// Its id, which `restore` and `empty` take in place of a name.
    pub id: String,
    /// The name that it had.
    pub name: String,
    /// The reason why it is here.
    pub why: WhyTrashed,
    /// The time when it came here.
    pub at: Time,
    /// The time from which it is no longer kept.
    pub until: Time,
    /// Its rows.
    pub rows: Option<u64>,
    /// Its size in the engine's file.
    pub bytes: Option<u64>,
    /// Nothing else takes its room before that time.
    pub protected: bool,
}

/// The reason why a table is in the trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhyTrashed {
    /// Its resource is gone.
    Deleted,
    /// A build took its place.
    Replaced,
}

impl WhyTrashed {
    /// The word, as it is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Replaced => "replaced",
        }
    }
}

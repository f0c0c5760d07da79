//! The document of `backup` and `restore`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Time;

/// A backup that was written, or restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackupDocument {
    /// Name and version of this form: `watershed.backup/1`.
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
    pub action: BackupAction,
    /// Nothing was done: it was asked what would be.
    pub dry_run: bool,
    /// The backup's file.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// The time of the backup.
    pub created_at: Time,
    /// The project and the environment that it is of.
    pub of: String,
    /// State that was there before was, or would be, replaced.
    pub replaced: bool,
}

impl BackupDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.backup/1";
}

/// A thing that is done with a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackupAction {
    /// It was written.
    Backup,
    /// It was put in the place of what was there.
    Restore,
}

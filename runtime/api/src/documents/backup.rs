//! The document of `backup` and `restore`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Time;

/// A backup that was written or restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackupDocument {
    /// Name and version of this form: `watershed.backup/1`.
    pub schema: String,
    /// Version of the program that wrote the document.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Path of the project's folder.
    pub root: String,
    /// Name of the project's environment.
    pub environment: String,
    /// Action of the command: a backup or a restore.
    pub action: BackupAction,
    /// True if nothing was done and the document says what would be done.
    pub dry_run: bool,
    /// Path of the backup file.
    pub file: String,
    /// Size of the backup file, in bytes.
    pub bytes: u64,
    /// Time at which the backup was made.
    pub created_at: Time,
    /// Project and environment that the backup was made of, as text.
    pub of: String,
    /// True if existing state was, or would be, replaced.
    pub replaced: bool,
    /// Tables of a lake that are left out of what was restored, since files of theirs are gone; the next run builds them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
}

impl BackupDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.backup/1";
}

/// An action on a backup: to write or to restore it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackupAction {
    /// The backup was written.
    Backup,
    /// The project's state was replaced with the backup.
    Restore,
}

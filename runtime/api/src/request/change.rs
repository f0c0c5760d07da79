//! Changes by hand.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Resources that something is done to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamesRequest {
    /// The resources.
    pub names: Vec<String>,
}

/// Another number of replicas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaleRequest {
    /// The services.
    pub names: Vec<String>,
    /// The number of replicas; none for that of the file.
    pub replicas: Option<u32>,
}

/// A start of services anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestartRequest {
    /// The services.
    pub names: Vec<String>,
    /// True for all replicas at once, false for as many as may be missing.
    pub now: bool,
}

/// An earlier release of services.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    /// The services.
    pub names: Vec<String>,
    /// The number of the release; none for the one before the active one.
    pub to: Option<u64>,
}

/// Another stage of a managed resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetRequest {
    /// The resource.
    pub name: String,
    /// The stage that is desired.
    pub desired: String,
}

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventRequest {
    /// A CloudEvent in its JSON form, or a list of them.
    pub body: String,
}

/// A time during which nobody is told of an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnoozeRequest {
    /// The alert.
    pub name: String,
    /// The end, in milliseconds since 1970; none ends a snooze that there is.
    pub until_ms: Option<i64>,
}

/// A table that is given back from the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrashRestoreRequest {
    /// The name of the table, or the beginning of its id.
    pub name: String,
    /// The name that the table is to have; none for its own.
    pub to: Option<String>,
    /// True to say only what would be done.
    pub dry_run: bool,
}

/// Tables that are thrown away for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrashEmptyRequest {
    /// Names of tables, or beginnings of ids; empty for all.
    pub names: Vec<String>,
    /// True to say only what would be done.
    pub dry_run: bool,
}

/// A copy of everything that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupRequest {
    /// The file, with its whole path.
    pub file: PathBuf,
    /// True to replace a file that is there.
    pub force: bool,
}

/// A backup that takes the place of what is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreRequest {
    /// The file, with its whole path.
    pub file: PathBuf,
    /// True to check the file alone.
    pub dry_run: bool,
}

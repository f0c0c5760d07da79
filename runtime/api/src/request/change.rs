//! Requests for changes by hand.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A request to change some resources by hand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamesRequest {
    /// Names of the resources.
    pub names: Vec<String>,
}

/// A request to change the number of replicas of services.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaleRequest {
    /// Names of the services.
    pub names: Vec<String>,
    /// The number of replicas; none for the number in the service's file.
    pub replicas: Option<u32>,
}

/// A request to restart services.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestartRequest {
    /// Names of the services.
    pub names: Vec<String>,
    /// True to restart all replicas at once, false for as many at a time as may be missing.
    pub now: bool,
}

/// A request to return services to an earlier release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    /// Names of the services.
    pub names: Vec<String>,
    /// The number of the release; none for the one before the active one.
    pub to: Option<u64>,
}

/// A request to set the desired stage of a managed resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetRequest {
    /// Name of the managed resource.
    pub name: String,
    /// Name of the desired stage.
    pub desired: String,
}

/// A request to deliver events to managed resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventRequest {
    /// A CloudEvent in its JSON form, or a list of CloudEvents.
    pub body: String,
}

/// A request to snooze an alert, or to end its snooze.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnoozeRequest {
    /// Name of the alert.
    pub name: String,
    /// The end of the snooze, in milliseconds since 1970; none ends a snooze now.
    pub until_ms: Option<i64>,
}

/// A request to restore a table from the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrashRestoreRequest {
    /// Name of the table, or a prefix of its id.
    pub name: String,
    /// The new name of the table; none for its former name.
    pub to: Option<String>,
    /// True to report what would be done, and change nothing.
    pub dry_run: bool,
}

/// A request to delete tables in the trash for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrashEmptyRequest {
    /// Names of tables, or prefixes of ids; empty for all tables.
    pub names: Vec<String>,
    /// True to report what would be done, and change nothing.
    pub dry_run: bool,
}

/// A request to write a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupRequest {
    /// Absolute path of the backup.
    pub file: PathBuf,
    /// True to replace an existing file.
    pub force: bool,
}

/// A request to restore a project's state from a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreRequest {
    /// Absolute path of the backup.
    pub file: PathBuf,
    /// True to check the backup, and restore nothing.
    pub dry_run: bool,
}

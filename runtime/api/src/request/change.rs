//! Requests that change resources, the trash or the stored state by hand.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A request to change some resources by hand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamesRequest {
    /// Names of the resources to change.
    pub names: Vec<String>,
}

/// A request to change the number of replicas of services.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaleRequest {
    /// Names of the services to scale.
    pub names: Vec<String>,
    /// New number of replicas; none for the number in the service's file.
    pub replicas: Option<u32>,
}

/// A request to restart services.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestartRequest {
    /// Names of the services to restart.
    pub names: Vec<String>,
    /// True to restart all replicas at once; false to restart only as many at a time as the service allows to be
    /// missing.
    pub now: bool,
}

/// A request to return services to an earlier release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    /// Names of the services to roll back.
    pub names: Vec<String>,
    /// Number of the release to return to; none for the release before the active one.
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
    /// End of the snooze, in milliseconds since 1970; none to end a snooze now.
    pub until_ms: Option<i64>,
}

/// A request to restore a table from the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrashRestoreRequest {
    /// Name of the table, or a prefix of its id in the trash.
    pub name: String,
    /// New name of the table; none to keep its former name.
    pub to: Option<String>,
    /// True to report the effect without a change.
    pub dry_run: bool,
}

/// A request to delete tables in the trash for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrashEmptyRequest {
    /// Names of tables, or prefixes of their ids; empty for all tables in the trash.
    pub names: Vec<String>,
    /// True to report the effect without a change.
    pub dry_run: bool,
}

/// A request to write a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupRequest {
    /// Absolute path of the backup file to write.
    pub file: PathBuf,
    /// True to replace an existing file.
    pub force: bool,
}

/// A request to restore a project's state from a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreRequest {
    /// Absolute path of the backup file to read.
    pub file: PathBuf,
    /// True to check the backup without a restore.
    pub dry_run: bool,
}

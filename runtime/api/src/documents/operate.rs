//! The document of operations by hand: `pause`, `resume`, `cancel`, `scale`, `restart`, `rollback`, `set`, `event`, `alert snooze`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Phase;

/// An operation by hand on resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Holds back further runs of resources.
    Pause,
    /// Ends the pause of resources.
    Resume,
    /// Cancels the current runs of resources.
    Cancel,
    /// Sets the number of replicas of a service.
    Scale,
    /// Restarts the processes of services.
    Restart,
    /// Returns services to an earlier release.
    Rollback,
    /// Sets the desired stage of a managed resource.
    Set,
    /// Delivers events to managed resources.
    Event,
    /// Suppresses the messages of an alert for a while.
    Snooze,
}

impl Operation {
    /// Returns the name of the command, such as `pause`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::Scale => "scale",
            Self::Restart => "restart",
            Self::Rollback => "rollback",
            Self::Set => "set",
            Self::Event => "event",
            Self::Snooze => "snooze",
        }
    }
}

/// The result of an operation by hand, with the state of the resources after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperateDocument {
    /// Name and version of this form: `watershed.operate/1`.
    pub schema: String,
    /// Version of the program that wrote the document.
    pub version: String,
    /// Operation that was carried out.
    pub command: Operation,
    /// Name of the project.
    pub project: String,
    /// Path of the project's folder.
    pub root: String,
    /// Name of the project's environment.
    pub environment: String,
    /// True if a process runs the project and carried out the operation.
    pub live: bool,
    /// Resources after the operation, in the order of the command.
    pub resources: Vec<Operated>,
}

impl OperateDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.operate/1";
}

/// A resource after an operation by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Operated {
    /// Kind of the resource, such as `model`.
    pub kind: String,
    /// Name of the resource.
    pub name: String,
    /// True if the operation changed the resource; false if, for example, it was already paused or did not run.
    pub changed: bool,
    /// True if the resource is paused after the operation.
    pub paused: bool,
    /// Phase of the resource after the operation.
    pub phase: Phase,
    /// Description of the change, such as `3 -> 5 (file: 3)`; absent if there is nothing to add.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

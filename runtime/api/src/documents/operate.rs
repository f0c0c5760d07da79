//! The document of operations by hand: `pause`, `resume`, `cancel`, `scale`, `restart`, `rollback`, `set`, `event`, `alert snooze`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Phase;

/// An operation on resources by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Holds further runs back.
    Pause,
    /// Lets them go on.
    Resume,
    /// Stops the run that is under way.
    Cancel,
    /// Sets the number of replicas of a service.
    Scale,
    /// Starts the processes of services anew.
    Restart,
    /// Brings an earlier release of a service back.
    Rollback,
    /// Sets what is desired of a managed resource.
    Set,
    /// Tells managed resources of an event.
    Event,
    /// Tells nobody of an alert for a while.
    Snooze,
}

impl Operation {
    /// The word, as it is typed.
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

/// Operations by hand, and the resources after them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperateDocument {
    /// Name and version of this form: `watershed.operate/1`.
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// The command.
    pub command: Operation,
    /// Name of the project.
    pub project: String,
    /// Folder of the project.
    pub root: String,
    /// The environment.
    pub environment: String,
    /// True if a process runs the project and answered.
    pub live: bool,
    /// The resources, in the order in which they were named.
    pub resources: Vec<Operated>,
}

impl OperateDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.operate/1";
}

/// One resource that something was done to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Operated {
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// True if the command changed anything: false for one that was paused already, or that did not run.
    pub changed: bool,
    /// True if it is paused now.
    pub paused: bool,
    /// The phase that the controller has it in now.
    pub phase: Phase,
    /// The change, for people: `3 -> 5 (file: 3)`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

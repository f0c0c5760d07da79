//! The spec and the stored state of a replica (rule W4).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use watershed_controller::json_message;
use watershed_core::{Attempts, Timestamp};

use crate::policy::exit::{Exit, StartFailure};
use crate::policy::restart::Restart;
use crate::program::{Ports, Program};
use crate::service::Addresses;
use crate::settings::{CheckSpec, Logs, Stopping};
use crate::transition::Transition;

/// The spec of a replica, as its service writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplicaSpec {
    /// The name of the service, for messages.
    pub service: String,
    /// The file of the service, for messages.
    pub path: Option<String>,
    /// The number: rises with each replica that the service makes.
    pub number: u64,
    /// The release that it runs.
    pub release: u64,
    /// The program of that release.
    pub program: Program,
    /// The services that its service refers to, whose addresses each start gets.
    #[serde(default)]
    pub services: Vec<String>,
    /// Addresses of services by variable, as versions before stored them: of a process that such a version has started.
    #[serde(default)]
    pub addresses: BTreeMap<String, String>,
    /// True if it is to run.
    pub is_wanted: bool,
    /// Raised by each restart that a person asks for.
    pub restarts: u64,
    /// Raised by each other try that a person asks for: failures are forgotten, and what runs goes on.
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub retries: u64,
    /// The way in which it is stopped.
    pub stop: Stopping,
    /// The bounds of its output.
    pub logs: Logs,
    /// The restarts after its ends.
    pub restart: Restart,
    /// Its checks.
    pub checks: Vec<CheckSpec>,
    /// `keep` or `stop`; empty for the default of the program that runs it.
    pub on_server_stop: String,
}

json_message!(ReplicaSpec, format = 1);

/// True for a count that has not begun: it is left out, so that specs of before have the bytes that they had.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none_yet(count: &u64) -> bool {
    *count == 0
}

/// The stages of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It is to be started.
    #[default]
    Pending,
    /// Its process was ordered, and has not lived long enough to be running.
    Starting,
    /// Its process runs.
    Running,
    /// Its process ended, and the next start waits.
    BackingOff,
    /// Its process is being stopped.
    Stopping,
    /// Its process ended well, and is not started again.
    Completed,
    /// It is not started again until a person does something.
    Failed,
    /// It is not wanted, and nothing is left of it.
    Gone,
}

impl Stage {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::BackingOff => "backing_off",
            Self::Stopping => "stopping",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Gone => "gone",
        }
    }
}

/// The purpose of a stop, stored before its signal (rule W3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// It is not wanted any more.
    Remove,
    /// A person wants it restarted.
    Restart,
    /// A check wants it restarted, which counts.
    Check,
    /// A check wants the whole service stopped.
    StopService,
}

/// The end of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastExit {
    /// The end; none for that of the machine.
    pub exit: Option<Exit>,
    /// The time of the end.
    pub at: Timestamp,
    /// Milliseconds since its start.
    pub after_ms: u64,
    /// True if it was meant.
    pub was_intended: bool,
}

/// A start that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedStart {
    /// The class.
    pub failure: StartFailure,
    /// A sentence for a person.
    pub message: String,
}

/// The stored state of a replica.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReplicaRecord {
    /// The stage.
    pub stage: Stage,
    /// The reason of the stage, as a word.
    pub reason: String,
    /// The time since which it is in this stage.
    pub since: Timestamp,
    /// The number of the last start, stored before it is made.
    pub counter: u64,
    /// True if the end of that start is not counted yet.
    pub is_open: bool,
    /// The release of that start.
    pub release: u64,
    /// The time of that start.
    pub started: Timestamp,
    /// The backend's own name for the process.
    pub backend_id: Option<String>,
    /// The ports of that start.
    pub ports: Ports,
    /// True if that start was to keep the ports of the one before, as its process had served on them.
    #[serde(default)]
    pub keeps_ports: bool,
    /// The addresses of services that it got.
    #[serde(default)]
    pub addresses: Addresses,
    /// The time since which its process is ready.
    pub ready_since: Option<Timestamp>,
    /// True if its process has been ready.
    pub was_ready: bool,
    /// Failures in a row.
    pub exits: Attempts,
    /// Failed starts in a row.
    pub starts: Attempts,
    /// The last failed start, while it has not been made up for.
    pub failed_start: Option<FailedStart>,
    /// The last end.
    pub last_exit: Option<LastExit>,
    /// The purpose of the stop that is under way.
    pub purpose: Option<Purpose>,
    /// The restarts that were answered.
    pub restarts: u64,
    /// The refreshes that were answered.
    pub refreshes: u64,
    /// The retries of its service that were answered.
    #[serde(default)]
    pub retries: u64,
    /// The transitions, oldest first.
    pub transitions: Vec<Transition>,
}

json_message!(ReplicaRecord, format = 1);

impl ReplicaRecord {
    /// Returns true if nothing has been decided about it yet.
    pub(crate) fn is_new(&self) -> bool {
        self.counter == 0 && self.transitions.is_empty()
    }

    /// Returns true if it has answered all that its service asks of it.
    pub(crate) fn has_answered(&self, spec: &ReplicaSpec) -> bool {
        self.is_new() || (self.restarts, self.retries) == (spec.restarts, spec.retries)
    }

    /// Returns true if it serves.
    pub fn is_ready(&self) -> bool {
        self.stage == Stage::Running && self.ready_since.is_some()
    }
}

//! Spec and stored state of a replica (rule W4).

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
    /// Name of the service, for messages.
    pub service: String,
    /// Path of the service's file, for messages; none for a service without a file.
    pub path: Option<String>,
    /// Number of the replica, ascending within the service.
    pub number: u64,
    /// Number of the release to run.
    pub release: u64,
    /// Program of that release.
    pub program: Program,
    /// Names of the services whose addresses each start gets.
    #[serde(default)]
    pub services: Vec<String>,
    /// Addresses of services by variable, as an earlier version stored them for a process that it started.
    #[serde(default)]
    pub addresses: BTreeMap<String, String>,
    /// True if the replica should run.
    pub is_wanted: bool,
    /// Counter of restarts requested by people.
    pub restarts: u64,
    /// Counter of retries requested by people; a retry resets the failures and leaves a running process alone.
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub retries: u64,
    /// Signal and grace period of stops.
    pub stop: Stopping,
    /// Limits of the output that is kept.
    pub logs: Logs,
    /// Restart settings.
    pub restart: Restart,
    /// Checks of the process.
    pub checks: Vec<CheckSpec>,
    /// Behaviour at the end of the program: `keep` or `stop`; empty for the default of the running program.
    pub on_server_stop: String,
}

json_message!(ReplicaSpec, format = 1);

/// Returns true if a counter is 0, and is therefore omitted, so that specs keep the bytes of earlier versions.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none_yet(count: &u64) -> bool {
    *count == 0
}

/// The stage of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The process is to be started.
    #[default]
    Pending,
    /// The start is ordered, and the process has not lived long enough to count as running.
    Starting,
    /// The process runs.
    Running,
    /// The process ended, and the next start is delayed.
    BackingOff,
    /// The process is being stopped.
    Stopping,
    /// The process ended successfully and is not restarted.
    Completed,
    /// The process is not restarted until a person acts.
    Failed,
    /// The replica is not wanted and has no process.
    Gone,
}

impl Stage {
    /// Returns the stage as a word.
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
    /// The replica is no longer wanted.
    Remove,
    /// A person requested a restart.
    Restart,
    /// A check requested a restart, which counts as a failure.
    Check,
    /// A check requested the stop of the whole service.
    StopService,
}

/// The end of a replica's or job's last process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastExit {
    /// Exit of the process; none if it ended with the machine.
    pub exit: Option<Exit>,
    /// Time of the end.
    pub at: Timestamp,
    /// Milliseconds since the start of the process.
    pub after_ms: u64,
    /// True if a stop had been ordered.
    pub was_intended: bool,
}

/// A failed attempt to start a process, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedStart {
    /// Reason of the failure, by which retries are decided.
    pub failure: StartFailure,
    /// Message for people.
    pub message: String,
}

/// The stored state of a replica.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReplicaRecord {
    /// Current stage.
    pub stage: Stage,
    /// Reason of the stage in a word.
    pub reason: String,
    /// Time since which the replica is in this stage.
    pub since: Timestamp,
    /// Counter of the last start, stored before the start is ordered.
    pub counter: u64,
    /// True if the end of the last start is not counted yet.
    pub is_open: bool,
    /// Number of the release of the last start.
    pub release: u64,
    /// Time at which the last start was ordered.
    pub started: Timestamp,
    /// The backend's own id of the process, for display.
    pub backend_id: Option<String>,
    /// Ports of the last start, by name.
    pub ports: Ports,
    /// True if the last start should keep the ports of the previous one, whose process served on them.
    #[serde(default)]
    pub keeps_ports: bool,
    /// Addresses of services that the last start got.
    #[serde(default)]
    pub addresses: Addresses,
    /// Time since which the process is ready; none if it is not.
    pub ready_since: Option<Timestamp>,
    /// True if the process has been ready.
    pub was_ready: bool,
    /// Consecutive failures of the process, with the time of the next start.
    pub exits: Attempts,
    /// Consecutive failed starts, with the time of the next attempt.
    pub starts: Attempts,
    /// The last failed start; none after a successful one.
    pub failed_start: Option<FailedStart>,
    /// The end of the last process; none before the first.
    pub last_exit: Option<LastExit>,
    /// Purpose of the stop in progress; none without a stop.
    pub purpose: Option<Purpose>,
    /// Number of restarts that were handled.
    pub restarts: u64,
    /// Number of refreshes that were handled.
    pub refreshes: u64,
    /// Number of the service's retries that were handled.
    #[serde(default)]
    pub retries: u64,
    /// Transitions of the replica, oldest first.
    pub transitions: Vec<Transition>,
}

json_message!(ReplicaRecord, format = 1);

impl ReplicaRecord {
    /// Returns true if no decision about the replica was made yet.
    pub(crate) fn is_new(&self) -> bool {
        self.counter == 0 && self.transitions.is_empty()
    }

    /// Returns true if all requests in the spec were handled.
    pub(crate) fn has_answered(&self, spec: &ReplicaSpec) -> bool {
        self.is_new() || (self.restarts, self.retries) == (spec.restarts, spec.retries)
    }

    /// Returns true if the replica is ready, so that it serves.
    pub fn is_ready(&self) -> bool {
        self.stage == Stage::Running && self.ready_since.is_some()
    }
}

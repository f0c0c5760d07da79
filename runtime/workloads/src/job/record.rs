//! The stored state of a job.

use serde::{Deserialize, Serialize};
use watershed_controller::json_message;
use watershed_core::{Attempts, Timestamp};

use crate::policy::run_key::{RunKey, Trigger};
use crate::program::Ports;
use crate::replica::{FailedStart, LastExit};
use crate::transition::Transition;

/// The stages of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStage {
    /// It has not run for what it is wanted for now.
    #[default]
    Pending,
    /// Its process runs.
    Running,
    /// Its process failed, and the next attempt waits.
    BackingOff,
    /// Its process is being stopped.
    Stopping,
    /// Its last run ended well.
    Completed,
    /// Its last run has failed.
    Failed,
}

impl JobStage {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::BackingOff => "backing_off",
            Self::Stopping => "stopping",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// The purpose of a stop, stored before its signal (rule W3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStop {
    /// Somebody cancelled the run.
    Cancel,
    /// Another run takes its place.
    Replace,
    /// It ran for its whole timeout.
    Timeout,
}

/// The stored state of a job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JobRecord {
    /// The stage.
    pub stage: JobStage,
    /// The reason of the stage, as a word.
    pub reason: String,
    /// The time since which it is in this stage.
    pub since: Timestamp,
    /// The number of the last start, stored before it is made.
    pub counter: u64,
    /// True if the end of that start is not counted yet.
    pub is_open: bool,
    /// The run of that start, and what it is for.
    pub run: Option<(RunKey, Trigger)>,
    /// The time of that start.
    pub started: Timestamp,
    /// The backend's own name for the process.
    pub backend_id: Option<String>,
    /// The ports of that start.
    pub ports: Ports,
    /// The purpose of the stop that is under way.
    pub stop: Option<JobStop>,
    /// Failures of the present run in a row.
    pub exits: Attempts,
    /// Failed starts in a row.
    pub starts: Attempts,
    /// The last failed start, while it has not been made up for.
    pub failed_start: Option<FailedStart>,
    /// The last end.
    pub last_exit: Option<LastExit>,
    /// The run that finished last, well or not.
    pub finished: Option<RunKey>,
    /// True if that run ended well.
    #[serde(default)]
    pub finished_well: bool,
    /// True once a run has ended well.
    pub has_succeeded: bool,
    /// The scheduled time up to which it has run; none before it was looked at.
    pub mark: Option<Timestamp>,
    /// The times of the schedule for which that holds; empty in what an earlier version stored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub schedule: String,
    /// The refreshes that were answered.
    pub refreshes: u64,
    /// The transitions, oldest first.
    pub transitions: Vec<Transition>,
}

json_message!(JobRecord, format = 1);

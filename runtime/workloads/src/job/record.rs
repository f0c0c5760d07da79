//! The stored state of a job.

use serde::{Deserialize, Serialize};
use watershed_controller::json_message;
use watershed_core::{Attempts, Timestamp};

use crate::policy::run_key::{RunKey, Trigger};
use crate::program::Ports;
use crate::replica::{FailedStart, LastExit};
use crate::transition::Transition;

/// The stage of a job, as users see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStage {
    /// The wanted run has not started yet.
    #[default]
    Pending,
    /// A process of the job is running.
    Running,
    /// The process failed, and the next attempt is delayed.
    BackingOff,
    /// The process is being stopped.
    Stopping,
    /// The last run succeeded.
    Completed,
    /// The last run failed.
    Failed,
}

impl JobStage {
    /// Returns the stage as a word.
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
    /// A person cancelled the run.
    Cancel,
    /// Another run replaces this one.
    Replace,
    /// The run exceeded its timeout.
    Timeout,
}

/// The stored state of a job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JobRecord {
    /// Current stage.
    pub stage: JobStage,
    /// Reason of the stage in a word.
    pub reason: String,
    /// Time since which the job is in this stage.
    pub since: Timestamp,
    /// Counter of the last start, stored before the start is ordered.
    pub counter: u64,
    /// True if the end of the last start is not counted yet.
    pub is_open: bool,
    /// Run key and trigger of the last start; none before the first.
    pub run: Option<(RunKey, Trigger)>,
    /// Time at which the last start was ordered.
    pub started: Timestamp,
    /// The backend's own id of the process, for display.
    pub backend_id: Option<String>,
    /// Ports of the last start, by name.
    pub ports: Ports,
    /// Purpose of the stop in progress; none without a stop.
    pub stop: Option<JobStop>,
    /// Consecutive failures of the current run.
    pub exits: Attempts,
    /// Consecutive failed starts.
    pub starts: Attempts,
    /// The last failed start; none after a successful one.
    pub failed_start: Option<FailedStart>,
    /// The end of the last process; none before the first.
    pub last_exit: Option<LastExit>,
    /// Key of the last finished run, successful or not; none before the first.
    pub finished: Option<RunKey>,
    /// Key of the last finished run under the current rules, if `finished` was computed under older ones from state
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_as: Option<RunKey>,
    /// True if the last finished run succeeded.
    #[serde(default)]
    pub finished_well: bool,
    /// True once any run has succeeded.
    pub has_succeeded: bool,
    /// Scheduled time up to which the job has run; none before the first check of the schedule.
    pub mark: Option<Timestamp>,
    /// Schedule to which `mark` applies, as text; empty in records of an earlier version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub schedule: String,
    /// Number of refreshes that were handled.
    pub refreshes: u64,
    /// Transitions of the job, oldest first.
    pub transitions: Vec<Transition>,
}

json_message!(JobRecord, format = 1);

impl JobRecord {
    /// Replaces a key from older rules with its current form, so that a change of rules alone triggers no run.
    pub(super) fn know_as(&mut self, before: RunKey, now: RunKey) {
        if before == now {
            return;
        }
        if self.finished == Some(before) {
            self.finished_as = Some(now);
        }
        if let Some((key, _)) = self.run.as_mut().filter(|(key, _)| *key == before) {
            *key = now;
        }
    }

    /// Returns the key of the last finished run under the current rules; none before the first.
    pub(super) fn finished(&self) -> Option<RunKey> {
        self.finished_as.or(self.finished)
    }

    /// Records that the current run has finished.
    pub(super) fn finish(&mut self) {
        self.finished = self.run.map(|(key, _)| key);
        self.finished_as = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::run_key::{Ref, Standing};

    fn key(standing: &Standing) -> RunKey {
        let made = Ref {
            uid: b"model",
            standing,
            is_service: false,
        };
        RunKey::new(b"spec", &[made], Trigger::Refresh(0))
    }

    /// Covers W8: keys in catalogs of an earlier version, from state versions.
    #[test]
    fn a_run_that_finished_by_the_rules_of_before_has_finished() {
        let (before, now) = (key(&Standing::State(3)), key(&Standing::Made(vec![7])));
        let mut record = JobRecord {
            finished: Some(before),
            ..JobRecord::default()
        };
        record.know_as(before, now);
        assert_eq!((record.finished(), record.finished), (Some(now), Some(before)));
        // The version rises, and nothing was made.
        record.know_as(key(&Standing::State(4)), now);
        assert_eq!(record.finished(), Some(now));

        record.run = Some((before, Trigger::Refresh(0)));
        record.know_as(before, now);
        assert_eq!(
            record.run,
            Some((now, Trigger::Refresh(0))),
            "what runs is the same run"
        );
        record.finish();
        assert_eq!((record.finished(), record.finished_as), (Some(now), None));
    }
}

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
    /// The key of that run as it is made of what its refs have made, where `finished` is one of before, which was made of
    /// the versions of their states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_as: Option<RunKey>,
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

impl JobRecord {
    /// Says under which key a run goes that has the other one by the rules of before: none runs again for that alone.
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

    /// Returns the key that finished last.
    pub(super) fn finished(&self) -> Option<RunKey> {
        self.finished_as.or(self.finished)
    }

    /// Notes that the present run has finished.
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

    /// W8: a catalog of before names runs by versions of states.
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

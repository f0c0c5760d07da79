//! Events of a run, one line each with `--format jsonl`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Command, Diagnostic, LastRun, Outcome, Outcomes, Reason, ResourceError, ResourceName, RunDocument, Time,
    Work,
};

/// One line of `--format jsonl`. A run begins with `run_started` and ends with `run_finished`; in between `start` says
/// `settled` whenever nothing is left to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The command has begun.
    RunStarted {
        /// The time.
        at: Time,
        /// Name and version of this form: `watershed.event/1`.
        schema: String,
        /// Names this run of the command.
        run_id: String,
        /// The command.
        command: Command,
        /// Name of the project.
        project: String,
        /// Folder of the project.
        root: String,
        /// The environment.
        environment: String,
    },
    /// A resource runs.
    ResourceStarted {
        /// The time.
        at: Time,
        /// The resource.
        resource: ResourceName,
        /// The reason.
        reason: Option<Reason>,
    },
    /// A resource has run.
    ResourceFinished {
        /// The time.
        at: Time,
        /// The resource.
        resource: ResourceName,
        /// The work that it did outside.
        work: Work,
        /// The run.
        run: LastRun,
        /// Its failure.
        error: Option<ResourceError>,
        /// The resource now, and the progress of the command.
        #[serde(flatten)]
        about: Ended,
    },
    /// A job, a service or one of its replicas has entered a stage, or something worth telling has happened to it.
    Transition {
        /// The time.
        at: Time,
        /// The resource.
        resource: ResourceName,
        /// The stage before.
        from: String,
        /// The stage after.
        to: String,
        /// The reason, as a word.
        reason: String,
        /// More for people.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        detail: String,
    },
    /// An alert was evaluated.
    AlertEvaluated {
        /// The time.
        at: Time,
        /// The alert.
        resource: ResourceName,
        /// The moment that it was evaluated for.
        moment: Time,
        /// The verdict: `pass`, `fail` or `error`.
        verdict: String,
        /// The keys of the messages that tell of it: names of notifications.
        told: Vec<String>,
    },
    /// A message was handed over.
    NotificationDelivered {
        /// The time.
        at: Time,
        /// The notification.
        resource: ResourceName,
        /// The message's title.
        title: String,
        /// The receiver, in words without secrets.
        receiver: String,
        /// The attempts that were made.
        attempts: u32,
    },
    /// An attempt to hand a message over failed, and another one follows.
    NotificationDelayed {
        /// The time.
        at: Time,
        /// The notification.
        resource: ResourceName,
        /// The message's title.
        title: String,
        /// The receiver, in words without secrets.
        receiver: String,
        /// The attempts that were made.
        attempts: u32,
        /// The last failure.
        failure: String,
        /// The time of the next attempt, by a program that runs then.
        next_attempt_at: Time,
    },
    /// A message could not be handed over, and is not tried again by itself.
    NotificationDead {
        /// The time.
        at: Time,
        /// The notification.
        resource: ResourceName,
        /// The message's title.
        title: String,
        /// The receiver, in words without secrets.
        receiver: String,
        /// The attempts that were made.
        attempts: u32,
        /// The last failure.
        failure: String,
    },
    /// Something is wrong in a file.
    Diagnostic {
        /// The diagnostic with its place.
        #[serde(flatten)]
        diagnostic: Diagnostic,
    },
    /// Something that was wrong is not any more. Only `start` sees such a thing.
    Fixed {
        /// The former diagnostic with its place.
        #[serde(flatten)]
        diagnostic: Diagnostic,
    },
    /// Nothing is left to do until something changes. Only `start` goes on then.
    Settled {
        /// The time.
        at: Time,
        /// The time since something was asked for.
        duration_ms: u64,
        /// The exit code of a `run` at this point.
        exit_code: u8,
        /// Counts of runs since the last time, by outcome; they add up to the resources.
        outcomes: Outcomes,
    },
    /// The command has ended.
    RunFinished {
        /// The time.
        at: Time,
        /// The whole document.
        document: Box<RunDocument>,
    },
}

/// A resource after its run, and the progress of the command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ended {
    /// The type that its file says, where that is another word than the kind: `source`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_as: Option<String>,
    /// The name that it had before it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// Its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// It had failed before and has not any more.
    #[serde(default)]
    pub fixed: bool,
    /// The number of resources that this command has run so far.
    #[serde(default)]
    pub ended: u64,
    /// The number of resources.
    #[serde(default)]
    pub resources: u64,
}

/// Reasons for which a program is pending and nothing is wrong.
const HARMLESS: [&str; 5] = ["ended", "requested", "other_start", "stopped", "finished_before"];

impl Event {
    /// Returns true if the event is told to everybody: something was done, found, fixed or sent.
    pub fn is_news(&self) -> bool {
        let (work, run, about) = match self {
            Self::ResourceFinished { work, run, about, .. } => (work, run, about),
            Self::NotificationDelivered { .. }
            | Self::NotificationDelayed { .. }
            | Self::NotificationDead { .. } => return true,
            Self::Transition { .. } => return self.story().is_some(),
            _ => return false,
        };
        match run.outcome {
            Outcome::Done | Outcome::Failed => true,
            Outcome::Unchanged => about.fixed || *work == Work::Checked,
            Outcome::Skipped | Outcome::Cancelled | Outcome::NotSelected => false,
        }
    }

    /// Returns the word for a step in the life of a program that a person wants to hear of: an end that nobody meant, a check
    /// that has failed, a step of a release. The others are left to `status` and `history`.
    pub fn story(&self) -> Option<&'static str> {
        let Self::Transition {
            resource, to, reason, ..
        } = self
        else {
            return None;
        };
        Some(match (resource.kind.as_str(), reason.as_str(), to.as_str()) {
            ("service", "rollout", _) => "rollout",
            ("service", "rollout_complete", _) => "rolled out",
            ("service", "rollout_failed" | "restart_failed" | "never_ready" | "stopped_by_check", _) => {
                "failed"
            }
            ("service", "restarted", _) => "restart",
            ("replica", "check" | "stopped_by_check", _) => "check",
            ("replica", "exited" | "crash_loop_back_off" | "no_retry_code", _) => "crashed",
            ("job", "exited", "backing_off") => "crashed",
            ("replica" | "job", _, "failed") => "failed",
            // It could not be started, or has no room.
            ("replica" | "job", reason, "pending") if !HARMLESS.contains(&reason) => "waits",
            _ => return None,
        })
    }

    /// The value of `schema` in the first event.
    pub const SCHEMA: &str = "watershed.event/1";
}

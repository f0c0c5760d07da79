//! Events of a run, one per line of `--format jsonl`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Command, Diagnostic, LastRun, Outcome, Outcomes, Reason, ResourceError, ResourceName, RunDocument, Time,
    Work,
};

/// One line of `--format jsonl`: an event of a run.
///
/// A run begins with `run_started` and ends with `run_finished`. In between `start` sends `settled` whenever all work is
/// done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The command has begun. This is the first event.
    RunStarted {
        /// Time at which the command began.
        at: Time,
        /// Name and version of this form: `watershed.event/1`.
        schema: String,
        /// Id of this run of the command.
        run_id: String,
        /// Command that runs.
        command: Command,
        /// Name of the project.
        project: String,
        /// Path of the project's folder.
        root: String,
        /// Name of the project's environment.
        environment: String,
    },
    /// A run of a resource has begun.
    ResourceStarted {
        /// Time at which the run began.
        at: Time,
        /// Kind and name of the resource.
        resource: ResourceName,
        /// Reason for the run; null if it is unknown.
        reason: Option<Reason>,
    },
    /// A run of a resource has ended.
    ResourceFinished {
        /// Time at which the run ended.
        at: Time,
        /// Kind and name of the resource.
        resource: ResourceName,
        /// Work that the run did on outputs.
        work: Work,
        /// The run, with its reason, duration and outcome.
        run: LastRun,
        /// Error of the resource; null if there is none.
        error: Option<ResourceError>,
        /// State of the resource after the run, and the progress of the command.
        #[serde(flatten)]
        about: Ended,
    },
    /// A job, a service or a replica has entered another stage, or recorded a notable event.
    Transition {
        /// Time of the transition.
        at: Time,
        /// Kind and name of the job, service or replica.
        resource: ResourceName,
        /// Stage before the transition.
        from: String,
        /// Stage after the transition.
        to: String,
        /// Reason for the transition, as a stable word such as `exited`.
        reason: String,
        /// Details for people; absent if there are none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        detail: String,
    },
    /// An alert was evaluated.
    AlertEvaluated {
        /// Time at which the alert was evaluated.
        at: Time,
        /// Kind and name of the alert.
        resource: ResourceName,
        /// Time for which the alert was evaluated.
        moment: Time,
        /// Verdict of the alert: `pass`, `fail` or `error`.
        verdict: String,
        /// Names of the notifications that the verdict caused; empty if nobody is told.
        told: Vec<String>,
    },
    /// A message was delivered.
    NotificationDelivered {
        /// Time of the delivery.
        at: Time,
        /// Kind and name of the notification.
        resource: ResourceName,
        /// Title of the message.
        title: String,
        /// Description of the receiver, without secrets.
        receiver: String,
        /// Number of attempts so far, including the successful attempt.
        attempts: u32,
    },
    /// An attempt to deliver a message failed and will be retried.
    NotificationDelayed {
        /// Time of the event.
        at: Time,
        /// Kind and name of the notification.
        resource: ResourceName,
        /// Title of the message.
        title: String,
        /// Description of the receiver, without secrets.
        receiver: String,
        /// Number of attempts so far.
        attempts: u32,
        /// Description of the last failure.
        failure: String,
        /// Earliest time of the next attempt, if a process runs the project then.
        next_attempt_at: Time,
    },
    /// A message could not be delivered and will not be retried automatically.
    NotificationDead {
        /// Time of the event.
        at: Time,
        /// Kind and name of the notification.
        resource: ResourceName,
        /// Title of the message.
        title: String,
        /// Description of the receiver, without secrets.
        receiver: String,
        /// Number of attempts that were made.
        attempts: u32,
        /// Description of the last failure.
        failure: String,
    },
    /// A file has a mistake.
    Diagnostic {
        /// The mistake, with its place in the file.
        #[serde(flatten)]
        diagnostic: Diagnostic,
    },
    /// A mistake in a file was corrected. Only `start` reports such events.
    Fixed {
        /// The corrected mistake, with its former place in the file.
        #[serde(flatten)]
        diagnostic: Diagnostic,
    },
    /// All work is done until something changes. Only `start` continues after this event.
    Settled {
        /// Time of the event.
        at: Time,
        /// Time since the work was requested, in milliseconds.
        duration_ms: u64,
        /// Exit code that `run` would return at this point.
        exit_code: u8,
        /// Numbers of resources by the outcome of their runs since the previous `settled` event.
        outcomes: Outcomes,
    },
    /// The command has ended. This is the last event.
    RunFinished {
        /// Time at which the command ended.
        at: Time,
        /// Final document of the command.
        document: Box<RunDocument>,
    },
}

/// The state of a resource after a run, and the progress of the command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ended {
    /// Type in the resource's file, such as `source`; absent if it equals the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_as: Option<String>,
    /// Name of the resource before it was renamed; absent if it was not renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// Result of the resource, such as a model's output table; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// True if the resource had failed before and no longer fails.
    #[serde(default)]
    pub fixed: bool,
    /// Number of resources that the command has run so far.
    #[serde(default)]
    pub ended: u64,
    /// Number of all resources of the command.
    #[serde(default)]
    pub resources: u64,
}

/// Reasons for which a program is pending although nothing is wrong.
const HARMLESS: [&str; 5] = ["ended", "requested", "other_start", "stopped", "finished_before"];

impl Event {
    /// Returns true if the event is news: something was done, has failed, was mended or was delivered.
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

    /// Returns the word for a notable step in the life of a program: an unexpected end, a failed check, or a step of a
    /// release; none for other events.
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

    /// The value of `schema` in the first event of a run.
    pub const SCHEMA: &str = "watershed.event/1";
}

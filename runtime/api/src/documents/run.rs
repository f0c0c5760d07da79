//! The document of `run`, `validate` and `status`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Diagnostic, Outcome, ResourceDocument, ResourceError, ResourceName, TestCounts, Time};

/// The command that wrote a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Brought the project up to date.
    Run,
    /// Kept the project up to date until it was stopped.
    Start,
    /// Compiled only.
    Validate,
    /// Looked only.
    Status,
    /// Looked again at what was named.
    Reconcile,
    /// Did the work of what was named again.
    Refresh,
    /// Let held edits through.
    Approve,
    /// Tried again what had failed.
    Retry,
}

impl Command {
    /// The word, as it is typed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Start => "start",
            Self::Validate => "validate",
            Self::Status => "status",
            Self::Reconcile => "reconcile",
            Self::Refresh => "refresh",
            Self::Approve => "approve",
            Self::Retry => "retry",
        }
    }
}

/// The state of the project, and the work of the command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunDocument {
    /// Name and version of this form: `watershed.run/1`.
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// The command.
    pub command: Command,
    /// Name of the project.
    pub project: String,
    /// Folder of the project.
    pub root: String,
    /// The environment.
    pub environment: String,
    /// Names this run of the command.
    pub run_id: String,
    /// The time at which the command began.
    pub started_at: Time,
    /// The time that it took.
    pub duration_ms: u64,
    /// The exit code of the program.
    pub exit_code: u8,
    /// Every resource that is not hidden, by kind and name.
    pub resources: Vec<ResourceDocument>,
    /// The reason why what the files declare was not applied: then nothing was changed. Null when it was.
    pub not_applied: Option<ResourceError>,
    /// Everything that is wrong in files, by file and place.
    pub diagnostics: Vec<Diagnostic>,
    /// The numbers.
    pub summary: Summary,
}

impl RunDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.run/1";
}

/// Numbers of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// The number of resources.
    pub resources: u64,
    /// Counts of their runs, by outcome; they add up to `resources`.
    pub outcomes: Outcomes,
    /// Changes of declarations.
    pub changes: Changes,
    /// Names that are gone.
    pub removed: Vec<Removed>,
    /// Results of the tests of these resources when they were last run.
    #[serde(default)]
    pub tests: TestCounts,
    /// The number of resources that had failed when the command began and have not any more, without a build.
    #[serde(default)]
    pub fixed: u64,
    /// Resources that are paused: nothing is done for them until they are resumed, and they may be behind.
    #[serde(default)]
    pub paused: Vec<ResourceName>,
}

/// Counts of runs, by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcomes {
    /// Did their work.
    pub done: u64,
    /// Failed.
    pub failed: u64,
    /// Not built because a ref is failed.
    pub skipped: u64,
    /// Stopped.
    pub cancelled: u64,
    /// Had nothing to do.
    pub unchanged: u64,
    /// Left as they are, because the command was for others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_selected: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Outcomes {
    /// Counts one more.
    pub fn add(&mut self, outcome: Outcome) {
        let counter = match outcome {
            Outcome::Done => &mut self.done,
            Outcome::Failed => &mut self.failed,
            Outcome::Skipped => &mut self.skipped,
            Outcome::Cancelled => &mut self.cancelled,
            Outcome::Unchanged => &mut self.unchanged,
            Outcome::NotSelected => &mut self.not_selected,
        };
        *counter += 1;
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.done + self.failed + self.skipped + self.cancelled + self.unchanged + self.not_selected
    }
}

/// Counts of created, updated, renamed and deleted resources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// New ones.
    pub created: u64,
    /// Those whose spec or refs changed.
    pub updated: u64,
    /// Those with another name.
    pub renamed: u64,
    /// Those that are gone.
    pub deleted: u64,
}

/// A name that was there before and is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    /// The kind.
    pub kind: String,
    /// The name that is gone.
    pub name: String,
    /// Its present name, if it lives on.
    pub became: Option<ResourceName>,
}

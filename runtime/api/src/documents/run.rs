//! The document of `run`, `validate` and `status`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Diagnostic, Outcome, ResourceDocument, ResourceError, ResourceName, TestCounts, Time};

/// The command that wrote a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// The command that brings the project up to date and ends.
    Run,
    /// The command that keeps the project up to date until it is stopped.
    Start,
    /// The command that only compiles the project's files.
    Validate,
    /// The command that only shows the status of resources.
    Status,
    /// The command that reconciles named resources again.
    Reconcile,
    /// The command that does the work of resources again.
    Refresh,
    /// The command that approves held edits.
    Approve,
    /// The command that retries failed resources.
    Retry,
}

impl Command {
    /// Returns the name of the command, such as `run`.
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

/// The state of a project's resources, and the work that a command did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunDocument {
    /// Name and version of this form: `watershed.run/1`.
    pub schema: String,
    /// Version of the program that wrote the document.
    pub version: String,
    /// Command that wrote the document.
    pub command: Command,
    /// Name of the project.
    pub project: String,
    /// Path of the project's folder.
    pub root: String,
    /// Name of the project's environment.
    pub environment: String,
    /// Id of this run of the command.
    pub run_id: String,
    /// Time at which the command began.
    pub started_at: Time,
    /// Duration of the command, in milliseconds.
    pub duration_ms: u64,
    /// Exit code of the command.
    pub exit_code: u8,
    /// Resources by kind and name; hidden resources only with `--all`.
    pub resources: Vec<ResourceDocument>,
    /// Reason why the files' declarations were not applied and nothing changed; null if they were applied.
    pub not_applied: Option<ResourceError>,
    /// All mistakes in files, by file and place.
    pub diagnostics: Vec<Diagnostic>,
    /// Numbers of resources, outcomes and changes.
    pub summary: Summary,
}

impl RunDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.run/1";
}

/// The numbers of resources, outcomes and changes of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Number of resources, selected or not.
    pub resources: u64,
    /// Numbers of resources by the outcome of their runs; their sum is `resources`.
    pub outcomes: Outcomes,
    /// Numbers of resources that were created, updated, renamed and deleted.
    pub changes: Changes,
    /// Names that no longer exist, because of a rename or a delete.
    pub removed: Vec<Removed>,
    /// Numbers of the resources' tests, by the outcome of their last runs.
    #[serde(default)]
    pub tests: TestCounts,
    /// Number of resources that had failed when the command began and no longer fail, without a build.
    #[serde(default)]
    pub fixed: u64,
    /// Paused resources, which may be out of date until they are resumed.
    #[serde(default)]
    pub paused: Vec<ResourceName>,
}

/// The numbers of runs, by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcomes {
    /// Number of runs that did their work.
    pub done: u64,
    /// Number of runs that failed.
    pub failed: u64,
    /// Number of runs that were skipped because a ref has failed.
    pub skipped: u64,
    /// Number of runs that were cancelled.
    pub cancelled: u64,
    /// Number of runs that found nothing to do.
    pub unchanged: u64,
    /// Number of resources that were not selected, and left unchanged; absent if 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_selected: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Outcomes {
    /// Counts a further outcome.
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

    /// Returns the sum of all counts.
    pub fn total(&self) -> u64 {
        self.done + self.failed + self.skipped + self.cancelled + self.unchanged + self.not_selected
    }
}

/// The numbers of created, updated, renamed and deleted resources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// Number of resources that were created.
    pub created: u64,
    /// Number of resources whose spec or refs changed.
    pub updated: u64,
    /// Number of resources that were renamed.
    pub renamed: u64,
    /// Number of resources that were deleted.
    pub deleted: u64,
}

/// A name that no longer exists, because of a rename or a delete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    /// Kind of the resource, such as `model`.
    pub kind: String,
    /// Name that no longer exists.
    pub name: String,
    /// Present kind and name of the renamed resource; null if the resource was deleted.
    pub became: Option<ResourceName>,
}

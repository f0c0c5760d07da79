//! The document of `plan`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ResourceError, ResourceName};

/// The forecast of a run: the work that it would do, and the reasons. Nothing is changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanDocument {
    /// Name and version of this form: `watershed.plan/1`.
    pub schema: String,
    /// Name of the project.
    pub project: String,
    /// Name of the project's environment.
    pub environment: String,
    /// Exit code of the command: 0; 1 if a resource would fail; 5 with `--exit-code` if there is work to do.
    pub exit_code: u8,
    /// Resources with work to do, parents before their children, deleted resources last.
    pub steps: Vec<PlanStep>,
    /// Numbers of resources and of outputs to change.
    pub summary: PlanSummary,
}

impl PlanDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.plan/1";
}

/// The forecast for a single resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanStep {
    /// Kind of the resource, such as `model`.
    pub kind: String,
    /// Name of the resource after the run.
    pub name: String,
    /// Name of the resource before the run; null if the run would not rename it.
    pub renamed_from: Option<String>,
    /// Edit that the project's files make to the resource.
    pub edit: PlanEdit,
    /// Work that the run would do for the resource.
    pub work: PlanWork,
    /// Reason for the work, for people; null if there is none.
    pub reason: Option<String>,
    /// True if the run would discard rows that a build may not recreate: it drops a table, or rebuilds an incremental
    /// model's table.
    pub destructive: bool,
    /// Time for which the trash keeps the discarded rows if it has room, in milliseconds; null if the rows are lost.
    #[serde(default)]
    pub kept_ms: Option<u64>,
    /// Duration of the last build, in milliseconds; null if there was none.
    pub estimate_ms: Option<u64>,
    /// Error with which the resource would fail; null if none is expected.
    pub error: Option<ResourceError>,
    /// SQL before and after the edit; null if the edit does not change it.
    pub sql: Option<SqlChange>,
}

impl PlanStep {
    /// Returns the kind and name of the resource.
    pub fn id(&self) -> ResourceName {
        ResourceName {
            kind: self.kind.clone(),
            name: self.name.clone(),
        }
    }
}

/// The edit of a resource in the project's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanEdit {
    /// The resource is unchanged.
    None,
    /// The resource is new.
    Created,
    /// The meaning of the resource's declaration has changed.
    Edited,
    /// The resource has a new name.
    Renamed,
    /// The resource is no longer declared.
    Deleted,
}

/// The work that a run would do for a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanWork {
    /// The run would build all rows of a table, or create a view.
    Build,
    /// The run would restore the output from the trash.
    Restore,
    /// The run would add rows to an existing table.
    Add,
    /// The run would rename the output.
    Rename,
    /// The run would drop the output.
    Drop,
    /// The run would check the resource and change no output.
    Check,
    /// No work, because a resource that it depends on would fail.
    Blocked,
    /// No work, because the resource itself would fail.
    Failed,
    /// No work is necessary.
    None,
}

/// A resource's SQL before and after an edit, as written in its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SqlChange {
    /// SQL before the edit; empty if there was none.
    pub before: String,
    /// SQL after the edit.
    pub after: String,
}

/// The numbers of resources and outputs in a forecast.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanSummary {
    /// Number of resources after the run.
    pub resources: u64,
    /// Number of selected resources; absent if the run would apply to all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<u64>,
    /// Number of outputs that would be built, extended or rebuilt.
    pub builds: u64,
    /// Number of outputs that would be restored from the trash.
    #[serde(default)]
    pub restores: u64,
    /// Number of outputs that would be renamed.
    pub renames: u64,
    /// Number of outputs that would be dropped.
    pub drops: u64,
    /// Number of resources that would be checked without a change.
    pub checks: u64,
    /// Number of resources that would fail, or are blocked by such a failure.
    pub failures: u64,
    /// Sum of the estimates in all steps, in milliseconds; steps without an estimate count as 0.
    pub estimate_ms: u64,
}

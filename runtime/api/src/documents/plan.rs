//! The document of `plan`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ResourceError, ResourceName};

/// The work that a run would do, and why. Nothing was touched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanDocument {
    /// Name and version of this form: `watershed.plan/1`.
    pub schema: String,
    /// Name of the project.
    pub project: String,
    /// The environment.
    pub environment: String,
    /// The exit code: 0; 1 if a resource would fail; 5 if `--exit-code` asked and something would be done.
    pub exit_code: u8,
    /// The resources for which something would be done, parents before their children, deleted ones last.
    pub steps: Vec<PlanStep>,
    /// Numbers.
    pub summary: PlanSummary,
}

impl PlanDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.plan/1";
}

/// One resource of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanStep {
    /// The kind.
    pub kind: String,
    /// The name after the run.
    pub name: String,
    /// The name before it, if that is another.
    pub renamed_from: Option<String>,
    /// The edit that its files make.
    pub edit: PlanEdit,
    /// The work that would be done.
    pub work: PlanWork,
    /// The reason, in words.
    pub reason: Option<String>,
    /// Rows would be thrown away that a build may not bring back: a table is dropped, or that of an incremental model is
    /// made anew.
    pub destructive: bool,
    /// The time for which the trash keeps those rows, in milliseconds, while it has room for them; none if they are lost.
    #[serde(default)]
    pub kept_ms: Option<u64>,
    /// The time that it took last, in milliseconds; none if it was never built.
    pub estimate_ms: Option<u64>,
    /// The error that it would fail with.
    pub error: Option<ResourceError>,
    /// The SQL, where that is another.
    pub sql: Option<SqlChange>,
}

impl PlanStep {
    /// Kind and name alone.
    pub fn id(&self) -> ResourceName {
        ResourceName {
            kind: self.kind.clone(),
            name: self.name.clone(),
        }
    }
}

/// An edit that files make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanEdit {
    /// None.
    None,
    /// It is new.
    Created,
    /// It means something else.
    Edited,
    /// It has another name.
    Renamed,
    /// Its files are gone.
    Deleted,
}

/// Work of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanWork {
    /// All rows are made, or a view.
    Build,
    /// The trash gives it back.
    Restore,
    /// New rows are put into a table.
    Add,
    /// Its output gets another name.
    Rename,
    /// Its output is dropped.
    Drop,
    /// It is looked at.
    Check,
    /// None: it waits for something that fails.
    Blocked,
    /// None: it fails by itself.
    Failed,
    /// None.
    None,
}

/// SQL before and after an edit, as it stands in the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SqlChange {
    /// Before; empty if there was none.
    pub before: String,
    /// After.
    pub after: String,
}

/// Numbers of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanSummary {
    /// Resources after the run.
    pub resources: u64,
    /// Of these, the ones that the run would be for; absent if it would be for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<u64>,
    /// Outputs that would be built, added to or made again.
    pub builds: u64,
    /// Outputs that the trash would give back.
    #[serde(default)]
    pub restores: u64,
    /// Outputs that would be renamed.
    pub renames: u64,
    /// Outputs that would be dropped.
    pub drops: u64,
    /// Resources that would be looked at.
    pub checks: u64,
    /// Resources that would fail or wait for one that does.
    pub failures: u64,
    /// The sum of the estimates of what was built before, in milliseconds.
    pub estimate_ms: u64,
}

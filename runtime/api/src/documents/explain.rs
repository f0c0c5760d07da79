//! The document of `explain`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Action, At, Health, LastRun, Link, Phase, Reason, ResourceError, ResourceName, Time};

/// The root causes that keep a resource, or the resources of a project, from progressing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainDocument {
    /// Name and version of this form: `watershed.explain/1`.
    pub schema: String,
    /// Version of the program that wrote the document.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Path of the project's folder.
    pub root: String,
    /// Name of the project's environment.
    pub environment: String,
    /// True if a running process answered; false if the document describes the stored state.
    pub live: bool,
    /// The explained resource; null if the whole project is explained.
    pub resource: Option<Explained>,
    /// Root causes, without duplicates; for a project, the cause that blocks the most resources comes first. Empty if
    /// nothing is blocked.
    pub causes: Vec<RootCause>,
    /// Number of further causes that are not listed.
    pub more: u64,
}

impl ExplainDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.explain/1";
}

/// The resource that is explained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explained {
    /// Kind of the resource, such as `model`.
    pub kind: String,
    /// Name of the resource.
    pub name: String,
    /// Phase in which the controller has the resource.
    pub phase: Phase,
    /// Health of the resource.
    pub health: Health,
    /// Reason for the pending or current run; null if the resource is idle.
    pub reason: Option<Reason>,
    /// Origins of the request: the parents, refs or callers behind the reason.
    pub cause: Vec<String>,
    /// Causal chain of the run, oldest link first, this resource's own link last.
    #[serde(default)]
    pub chain: Vec<Link>,
    /// Number of consecutive failures.
    pub attempts: u32,
    /// Retry policy in force; null if failures are not retried.
    pub retry: Option<Retry>,
    /// Time of the next scheduled run; null if none is scheduled.
    pub next_run_at: Option<Time>,
    /// Last run of the resource; null if it never ran.
    pub last_run: Option<LastRun>,
    /// Time of the last successful run; null if there is none.
    pub last_success_at: Option<Time>,
}

/// The retry policy that applies to a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retry {
    /// Number of consecutive failures after which there are no more retries.
    pub attempts: u32,
    /// Delay before the first retry, in milliseconds. Each further delay is twice as long.
    pub delay_ms: u64,
    /// Longest delay between two retries, in milliseconds.
    pub longest_delay_ms: u64,
}

/// A root cause that keeps resources from running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RootCause {
    /// Class of the cause.
    pub code: Blocker,
    /// Resource that has the cause: the explained resource itself, or one that blocks it.
    pub resource: ResourceName,
    /// Description of the cause, for people.
    pub message: String,
    /// Suggested fix; null if none is known.
    pub hint: Option<String>,
    /// Operations that the hint names, for programs that offer them as buttons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// Error behind the cause; null if there is none.
    pub error: Option<ResourceError>,
    /// Place in the project's files; null if no place is known.
    pub at: Option<At>,
    /// Time at which the cause ends without intervention; null if there is no such time.
    pub until: Option<Time>,
    /// Number of other resources that the cause blocks.
    pub keeps_back: u64,
}

/// The class of a cause that blocks a resource, or the fact that nothing does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// The last run of the resource failed.
    Failed,
    /// The last run of the resource failed and will be retried.
    Retrying,
    /// The resource is part of a cycle of refs.
    OnCycle,
    /// The resource refers to a resource that is not declared.
    MissingRef,
    /// The resource refers to a resource that does not exist yet, or is not ready.
    WaitingForRef,
    /// Another resource holds the name of the resource.
    WaitingForName,
    /// A cancelled invocation of the resource did not return.
    Abandoned,
    /// The stored spec or state of the resource can't be read.
    Unreadable,
    /// The resource is paused.
    Paused,
    /// A person cancelled the last run.
    Cancelled,
    /// This program can't run resources of this kind.
    Unsupported,
    /// The last run succeeded, but the resource can't be used yet.
    Unready,
    /// The resource is running.
    Runs,
    /// A cancelled invocation of the resource has not returned yet.
    Stopping,
    /// The resource waits for a commit of the catalog.
    AwaitsCommit,
    /// The startup barrier is closed: kinds that start first have not settled.
    Gate,
    /// The resource waits for unfinished deletes.
    DeletesFirst,
    /// The resource waits for unfinished renames.
    RenamesFirst,
    /// The controller's limit of concurrent invocations is reached.
    ControllerFull,
    /// The kind's limit of concurrent invocations is reached.
    KindFull,
    /// The pool's limit of concurrent invocations is reached.
    PoolFull,
    /// An invocation of a transitive dependent, or of a member of the resource's cycle, has not returned.
    RunsBelow,
    /// The resource waits for an invocation of another resource that has one of its names.
    NameInUse,
    /// The resource is about to start.
    Next,
    /// The resource never ran, and no process runs the project.
    NeverRun,
    /// The rows of the resource are older than its file allows, or its last run was stopped and no process runs the
    /// project.
    Stale,
    /// The resource is up to date, and no run is requested.
    Idle,
}

impl Explained {
    /// Returns the kind and name of the resource.
    pub fn id(&self) -> ResourceName {
        ResourceName::new(&self.kind, &self.name)
    }
}

impl RootCause {
    /// Sets the hint: a suggested fix.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

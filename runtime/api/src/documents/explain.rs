//! The document of `explain`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Action, At, Health, LastRun, Link, Phase, Reason, ResourceError, ResourceName, Time};

/// The reason why a resource, or the project, is not further than it is: the root causes, each once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainDocument {
    /// Name and version of this form: `watershed.explain/1`.
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Folder of the project.
    pub root: String,
    /// The environment.
    pub environment: String,
    /// True if a process runs the project and answered; otherwise this is what is stored.
    pub live: bool,
    /// The resource that was asked about; none if the whole project was.
    pub resource: Option<Explained>,
    /// The root causes; of a whole project those first that keep most back. Empty if all is well.
    pub causes: Vec<RootCause>,
    /// The number of further causes.
    pub more: u64,
}

impl ExplainDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.explain/1";
}

/// The resource that was asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explained {
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The phase that the controller has it in.
    pub phase: Phase,
    /// Its health.
    pub health: Health,
    /// The reason why it is pending or running.
    pub reason: Option<Reason>,
    /// The origins of the request.
    pub cause: Vec<String>,
    /// The causal chain, the first step first; the last one is its own.
    #[serde(default)]
    pub chain: Vec<Link>,
    /// Failures in a row.
    pub attempts: u32,
    /// The time at which a failure that may pass by itself is tried again; none if it is not.
    pub retry: Option<Retry>,
    /// The time at which it asked to be run again.
    pub next_run_at: Option<Time>,
    /// Its last run.
    pub last_run: Option<LastRun>,
    /// The time at which it last succeeded.
    pub last_success_at: Option<Time>,
}

/// The policy for retries that is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retry {
    /// The number of failures in a row after which nothing is tried again.
    pub attempts: u32,
    /// The first wait; each further one is twice as long.
    pub delay_ms: u64,
    /// The longest wait.
    pub longest_delay_ms: u64,
}

/// One thing that keeps resources from running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RootCause {
    /// The class of the cause.
    pub code: Blocker,
    /// The owner of the cause: the resource itself, or one that it waits for.
    pub resource: ResourceName,
    /// The cause, in words.
    pub message: String,
    /// A hint at a way to fix it.
    pub hint: Option<String>,
    /// The operations that the hint names, for programs that offer them as buttons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// The failure behind it.
    pub error: Option<ResourceError>,
    /// The place in the project's files.
    pub at: Option<At>,
    /// The time at which it ends by itself.
    pub until: Option<Time>,
    /// The number of other resources that it keeps from being built.
    pub keeps_back: u64,
}

/// A cause that keeps a resource from running, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// Its last run failed.
    Failed,
    /// Its last run failed, and it is tried again by itself.
    Retrying,
    /// It is on a cycle of refs.
    OnCycle,
    /// A resource that it reads is not declared.
    MissingRef,
    /// A resource that it reads is not there or not ready.
    WaitingForRef,
    /// Its name is held by another resource.
    WaitingForName,
    /// An invocation did not return after its cancel.
    Abandoned,
    /// Its stored bytes can't be read.
    Unreadable,
    /// It is paused.
    Paused,
    /// A person stopped it.
    Cancelled,
    /// Nothing here can run its kind.
    Unsupported,
    /// Its last run succeeded, and it can't be used yet.
    Unready,
    /// It runs.
    Runs,
    /// It was cancelled and has not returned.
    Stopping,
    /// It waits for a commit.
    AwaitsCommit,
    /// Kinds that come first have not settled.
    Gate,
    /// Deletes come first.
    DeletesFirst,
    /// Renames come first.
    RenamesFirst,
    /// As many run as the controller allows.
    ControllerFull,
    /// As many run as its kind allows.
    KindFull,
    /// As many run as its pool has places.
    PoolFull,
    /// Something below it has not returned.
    RunsBelow,
    /// Something that has one of its names has not returned.
    NameInUse,
    /// It is about to start.
    Next,
    /// It was never run, and nobody runs the project.
    NeverRun,
    /// It is known to be behind, and nobody runs the project.
    Stale,
    /// Nothing asks for it: it is up to date.
    Idle,
}

impl Explained {
    /// Returns the name of the resource.
    pub fn id(&self) -> ResourceName {
        ResourceName::new(&self.kind, &self.name)
    }
}

impl RootCause {
    /// Adds something that may help.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

//! The document of `explain`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{At, Health, LastRun, Link, Phase, Reason, ResourceError, ResourceName, Time};

/// Why a resource, or the project, is not further than it is: the root causes, each once.
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
    /// Whether a process runs the project and answered; otherwise this is what is stored.
    pub live: bool,
    /// The resource that was asked about; none if the whole project was.
    pub resource: Option<Explained>,
    /// The root causes; of a whole project those first that keep most back. Empty if all is well.
    pub causes: Vec<RootCause>,
    /// How many more causes there are.
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
    /// What the controller is doing with it.
    pub phase: Phase,
    /// How it stands.
    pub health: Health,
    /// Why it is pending or running.
    pub reason: Option<Reason>,
    /// Who asked.
    pub cause: Vec<String>,
    /// What led to that, the first step first; the last one is its own.
    #[serde(default)]
    pub chain: Vec<Link>,
    /// Failures in a row.
    pub attempts: u32,
    /// When a failure that may pass by itself is tried again; none if it is not.
    pub retry: Option<Retry>,
    /// When it asked to be run again.
    pub next_run_at: Option<Time>,
    /// Its last run.
    pub last_run: Option<LastRun>,
    /// When it last succeeded.
    pub last_success_at: Option<Time>,
}

/// The policy for retries that is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retry {
    /// So many failures in a row are the last.
    pub attempts: u32,
    /// The first wait; each further one is twice as long.
    pub delay_ms: u64,
    /// The longest wait.
    pub longest_delay_ms: u64,
}

/// One thing that keeps resources from running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RootCause {
    /// What sort of thing.
    pub code: WhyNot,
    /// Whose it is: the resource itself, or one that it waits for.
    pub resource: ResourceName,
    /// What is the case, in words.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The failure behind it.
    pub error: Option<ResourceError>,
    /// Where in the project's files.
    pub at: Option<At>,
    /// When it ends by itself.
    pub until: Option<Time>,
    /// How many other resources it keeps from being built.
    pub keeps_back: u64,
}

/// What keeps a resource from running, or says that nothing does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhyNot {
    /// Its last run failed.
    Failed,
    /// Its last run failed, and it is tried again by itself.
    Retrying,
    /// It is on a cycle of refs.
    OnCycle,
    /// What it reads is not declared.
    MissingRef,
    /// What it reads is not there or not ready.
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

//! Errors: those of reconcilers, stored on resources as plain data, and those of calls.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::types::text::bounded;
use crate::{Key, Kind, NameProblem, Ref, SpecVersion, StateVersion, Timestamp, Uid};

/// Classes of failed runs, by what a person can do about them and whether a retry may help.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// May go away by itself; the kind's policy says whether it is tried again.
    Transient,
    /// Stays until something is changed.
    Permanent,
    /// A ref is missing or has failed.
    Dependency(Ref),
    /// The outside that the run acts on belongs to a later owner: the lease is lost. Never stored: the controller stops, as if its store
    /// had said so.
    Fenced,
}

/// A place in a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SourcePosition {
    /// Path relative to the project, `/` between parts.
    pub path: Arc<str>,
    /// 1-based line.
    pub line: u32,
    /// 1-based column, counted in Unicode scalar values.
    pub column: u32,
}

/// The reason why a run failed, as plain data that is stored on the resource.
///
/// ```
/// use std::time::Duration;
/// use watershed_core::{Error, ErrorKind};
///
/// let mut busy = Error::transient("busy", "the server is busy");
/// busy.retry_after = Some(Duration::from_secs(30));
/// assert_eq!(busy.kind, ErrorKind::Transient);
/// assert_eq!((&*busy.code, &*busy.message), ("busy", "the server is busy"));
/// assert!(busy.hint.is_none());
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Error {
    /// The class of the failure.
    pub kind: ErrorKind,
    /// Stable, machine-readable: `unknown-column`.
    pub code: Arc<str>,
    /// Lower case, no full stop, names quoted. Of this and the other texts at most [`TEXT_MAX`](crate::TEXT_MAX) bytes are
    /// kept.
    pub message: Arc<str>,
    /// A hint at a way to fix it.
    pub hint: Option<Arc<str>>,
    /// All that was said, where that is more than message and hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Arc<str>>,
    /// The place in the project's files.
    pub place: Option<SourcePosition>,
    /// Replaces the policy's wait once.
    pub retry_after: Option<Duration>,
    /// The time at which to run again whatever happens. None keeps a time that is still to come.
    pub retrigger: Option<Timestamp>,
    /// The longest wait from its return to the next run, whatever happens; as that of an [`Outcome`](crate::Outcome).
    #[serde(skip)]
    pub requeue_after: Option<Duration>,
}

/// A failure of the system outside passes, as far as anybody knows: it is tried again.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::transient("io", error.to_string())
    }
}

impl Error {
    /// An error of this kind with nothing but a code and a message.
    pub fn new(kind: ErrorKind, code: impl Into<Arc<str>>, message: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            code: code.into(),
            message: message.into(),
            hint: None,
            details: None,
            place: None,
            retry_after: None,
            retrigger: None,
            requeue_after: None,
        }
    }

    /// The same with texts of at most [`TEXT_MAX`](crate::TEXT_MAX) bytes, as it is stored.
    #[must_use]
    pub(crate) fn bounded(self) -> Self {
        Self {
            code: bounded(self.code),
            message: bounded(self.message),
            hint: self.hint.map(bounded),
            details: self.details.map(bounded),
            ..self
        }
    }

    /// Returns true if two errors say the same, whatever they say of when to come back.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let said = |error: &Self| Self {
            retry_after: None,
            retrigger: None,
            requeue_after: None,
            ..error.clone()
        };
        said(self) == said(other)
    }

    /// The same with a hint at a way to fix it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Arc<str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// A permanent error.
    pub fn permanent(code: impl Into<Arc<str>>, message: impl Into<Arc<str>>) -> Self {
        Self::new(ErrorKind::Permanent, code, message)
    }

    /// The error of a run whose outside knows a later owner.
    pub fn fenced(code: impl Into<Arc<str>>, message: impl Into<Arc<str>>) -> Self {
        Self::new(ErrorKind::Fenced, code, message)
    }

    /// A transient error.
    pub fn transient(code: impl Into<Arc<str>>, message: impl Into<Arc<str>>) -> Self {
        Self::new(ErrorKind::Transient, code, message)
    }
}

/// The reason why a call was not carried out. Unless it says otherwise, nothing has changed.
///
/// ```
/// use watershed_core::{Key, Refusal, SpecVersion};
///
/// let stale = Refusal::StaleSpec {
///     key: Key::new("page", "home"),
///     expected: SpecVersion(2),
///     found: SpecVersion(3),
/// };
/// assert_eq!(stale.to_string(), "\"page/home\" is at spec version 3, expected 2");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, Serialize, Deserialize)]
pub enum Refusal {
    /// No live resource is found by that.
    #[error("no resource \"{0}\"")]
    Unknown(String),
    /// Several kinds have a resource of that name.
    #[error("\"{name}\" is ambiguous, say which: {}", listed(candidates))]
    Ambiguous {
        /// The name requested.
        name: String,
        /// All that it may mean, in order.
        candidates: Vec<Key>,
    },
    /// The resource has another spec version than the edit expected.
    #[error("\"{key}\" is at spec version {found}, expected {expected}")]
    StaleSpec {
        /// The resource.
        key: Key,
        /// The expected version.
        expected: SpecVersion,
        /// The present version.
        found: SpecVersion,
    },
    /// The resource has another state version than the write expected.
    #[error("\"{key}\" is at state version {found}, expected {expected}")]
    StaleState {
        /// The resource.
        key: Key,
        /// The expected version.
        expected: StateVersion,
        /// The present version.
        found: StateVersion,
    },
    /// The name stands for another resource than the edit expected.
    #[error("\"{key}\" is {found}, expected {expected}")]
    OtherUid {
        /// The name.
        key: Key,
        /// The uid that the edit expected.
        expected: Uid,
        /// The uid that it has.
        found: Uid,
    },
    /// A name would stand for two live resources.
    #[error("\"{key}\" would be both {first} and {second}")]
    NameTaken {
        /// The name.
        key: Key,
        /// One of the two.
        first: Uid,
        /// The other.
        second: Uid,
    },
    /// The uid of a new resource has been used before.
    #[error("uid {0} is in use")]
    UidTaken(Uid),
    /// Two edits of one batch say different things of one resource.
    #[error("two edits of the batch contradict each other about \"{0}\"")]
    Contradiction(Key),
    /// A new resource's kind or name, or a resource's new name, can't be one.
    #[error("{text:?} can't be a kind or a name: it {problem}")]
    InvalidName {
        /// The kind or the name.
        text: String,
        /// The mistake.
        problem: NameProblem,
    },
    /// A new resource's kind is not registered.
    #[error("kind \"{0}\" is not registered")]
    UnregisteredKind(Kind),
    /// A resource would belong to one that the catalog does not hold, or that the same batch deletes by force.
    #[error("\"{key}\" can't belong to {owner}: there is no such resource")]
    UnknownOwner {
        /// The resource.
        key: Key,
        /// The owner that it would have.
        owner: Uid,
    },
    /// The kind of a resource can't read the spec that it would get.
    #[error("the spec for \"{key}\" can't be read: {message}")]
    UnreadableSpec {
        /// The resource.
        key: Key,
        /// The reader's message.
        message: String,
    },
    /// The resource's stored bytes could not be read; it is kept untouched.
    #[error("\"{0}\" could not be read and is kept untouched")]
    Unreadable(Key),
    /// The invocation was cancelled, or has returned; only its own state may still be written until it returns.
    #[error("the invocation was cancelled")]
    InvocationCancelled,
    /// An invocation may not wait for reconciles.
    #[error("an invocation can't wait for a reconcile")]
    FromInside,
    /// The controller takes no further calls.
    #[error("the controller is shutting down")]
    ShuttingDown,
    /// The controller stopped before it learnt whether the call was committed.
    #[error("the outcome of the call is unknown")]
    OutcomeUnknown,
    /// Another controller holds the instance.
    #[error("the lease of the instance is lost")]
    LeaseLost,
    /// No process that holds the instance has taken the call in time; it was taken back.
    #[error("no process that holds the instance took the call in time")]
    Unattended,
    /// The process that holds the instance is of another version and can't read the call.
    #[error("the lease holder runs an incompatible version")]
    NotUnderstood,
}

/// The first few of the candidates for an ambiguous name.
fn listed(candidates: &[Key]) -> String {
    const SHOWN: usize = 8;
    let mut shown: Vec<String> = candidates
        .iter()
        .take(SHOWN)
        .map(|key| format!("\"{key}\""))
        .collect();
    if candidates.len() > SHOWN {
        shown.push(format!("{} more", candidates.len() - SHOWN));
    }
    shown.join(", ")
}

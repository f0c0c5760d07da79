//! Errors: of reconcilers, stored on resources as plain data, and of calls.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::types::text::bounded;
use crate::{Key, Kind, NameProblem, Ref, SpecVersion, StateVersion, Timestamp, Uid};

/// Classes of failed runs, by what a person can do about them and whether a retry may help.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// May pass by itself; the retry policy applies.
    Transient,
    /// Remains until something is changed.
    Permanent,
    /// A ref is missing or has failed.
    Dependency(Ref),
    /// The outside belongs to a later owner, so the lease is lost. Never stored: the controller stops, as if the store
    /// had reported it.
    Fenced,
}

/// A position in a project file, for error messages.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SourcePosition {
    /// Path relative to the project, with `/` between parts.
    pub path: Arc<str>,
    /// Line number, from 1.
    pub line: u32,
    /// Column number, from 1, in Unicode scalar values.
    pub column: u32,
}

/// Failure of a run, as plain data that is stored on the resource.
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
    /// Class of the failure.
    pub kind: ErrorKind,
    /// Stable, machine-readable code, such as `unknown-column`.
    pub code: Arc<str>,
    /// Message in lower case, without a full stop, with names in quotes. This and the other texts are cut to
    /// [`TEXT_MAX`](crate::TEXT_MAX) bytes.
    pub message: Arc<str>,
    /// Hint at a way to fix the failure.
    pub hint: Option<Arc<str>>,
    /// Full text of the failure, where it says more than message and hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Arc<str>>,
    /// Position in the project's files.
    pub place: Option<SourcePosition>,
    /// Wait before the next retry, instead of the policy's.
    pub retry_after: Option<Duration>,
    /// Time of another run, whatever happens before; none keeps the present one.
    pub retrigger: Option<Timestamp>,
    /// Longest wait from the return to the next run, whatever happens before; like that of an
    /// [`Outcome`](crate::Outcome).
    #[serde(skip)]
    pub requeue_after: Option<Duration>,
}

/// Converts a failure of the system outside to a transient error, which is retried.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::transient("io", error.to_string())
    }
}

impl Error {
    /// Creates an error with only a class, a code and a message.
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

    /// Cuts the texts to [`TEXT_MAX`](crate::TEXT_MAX) bytes, as they are stored.
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

    /// Returns true if two errors are equal except for the times of retries and further runs.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let said = |error: &Self| Self {
            retry_after: None,
            retrigger: None,
            requeue_after: None,
            ..error.clone()
        };
        said(self) == said(other)
    }

    /// Sets a hint at a way to fix the failure.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Arc<str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Creates a permanent error.
    pub fn permanent(code: impl Into<Arc<str>>, message: impl Into<Arc<str>>) -> Self {
        Self::new(ErrorKind::Permanent, code, message)
    }

    /// Creates the error of a run that finds the outside owned by a later owner.
    pub fn fenced(code: impl Into<Arc<str>>, message: impl Into<Arc<str>>) -> Self {
        Self::new(ErrorKind::Fenced, code, message)
    }

    /// Creates a transient error.
    pub fn transient(code: impl Into<Arc<str>>, message: impl Into<Arc<str>>) -> Self {
        Self::new(ErrorKind::Transient, code, message)
    }
}

/// Reasons to refuse a call. Unless said otherwise, nothing has changed.
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
    /// No live resource was found for this target.
    #[error("no resource \"{0}\"")]
    Unknown(String),
    /// Several kinds have a resource of that name.
    #[error("\"{name}\" is ambiguous, say which: {}", listed(candidates))]
    Ambiguous {
        /// Name that the caller used.
        name: String,
        /// Resources that the name may refer to, in order.
        candidates: Vec<Key>,
    },
    /// The resource has another spec version than the edit expected.
    #[error("\"{key}\" is at spec version {found}, expected {expected}")]
    StaleSpec {
        /// Kind and name of the edited resource.
        key: Key,
        /// Spec version that the edit expected.
        expected: SpecVersion,
        /// Spec version that the resource has.
        found: SpecVersion,
    },
    /// The resource has another state version than the write expected.
    #[error("\"{key}\" is at state version {found}, expected {expected}")]
    StaleState {
        /// Kind and name of the resource whose state was to be written.
        key: Key,
        /// State version that the write expected.
        expected: StateVersion,
        /// State version that the resource has.
        found: StateVersion,
    },
    /// The name belongs to another resource than the edit expected.
    #[error("\"{key}\" is {found}, expected {expected}")]
    OtherUid {
        /// Kind and name in the edit.
        key: Key,
        /// Uid that the edit expected.
        expected: Uid,
        /// Uid of the resource that has the name.
        found: Uid,
    },
    /// Two live resources would have the same name.
    #[error("\"{key}\" would be both {first} and {second}")]
    NameTaken {
        /// Kind and name that both would have.
        key: Key,
        /// Uid of one of the two resources.
        first: Uid,
        /// Uid of the other resource.
        second: Uid,
    },
    /// The uid of a new resource is already in use.
    #[error("uid {0} is in use")]
    UidTaken(Uid),
    /// Edits of one batch contradict each other about this resource.
    #[error("two edits of the batch contradict each other about \"{0}\"")]
    Contradiction(Key),
    /// The kind or name of a new resource, or a new name, is invalid.
    #[error("{text:?} can't be a kind or a name: it {problem}")]
    InvalidName {
        /// Invalid kind or name.
        text: String,
        /// Reason why the text is invalid.
        problem: NameProblem,
    },
    /// The kind of a new resource is not registered.
    #[error("kind \"{0}\" is not registered")]
    UnregisteredKind(Kind),
    /// The owner of a resource does not exist, or the same batch deletes it by force.
    #[error("\"{key}\" can't belong to {owner}: there is no such resource")]
    UnknownOwner {
        /// Kind and name of the owned resource.
        key: Key,
        /// Uid that no stored resource has.
        owner: Uid,
    },
    /// The new spec of a resource can't be read by its kind.
    #[error("the spec for \"{key}\" can't be read: {message}")]
    UnreadableSpec {
        /// Kind and name of the resource.
        key: Key,
        /// Error of the reader.
        message: String,
    },
    /// The stored bytes of the resource can't be read, and are left untouched.
    #[error("\"{0}\" could not be read and is kept untouched")]
    Unreadable(Key),
    /// The calling invocation was cancelled, or has returned. Until it returns it may only write its state.
    #[error("the invocation was cancelled")]
    InvocationCancelled,
    /// An invocation may not wait for reconciles.
    #[error("an invocation can't wait for a reconcile")]
    FromInside,
    /// The controller is shutting down and accepts no calls.
    #[error("the controller is shutting down")]
    ShuttingDown,
    /// The controller stopped before it knew whether the call was committed.
    #[error("the outcome of the call is unknown")]
    OutcomeUnknown,
    /// Another controller holds the lease.
    #[error("the lease of the instance is lost")]
    LeaseLost,
    /// No leader accepted the call in time, and the call was withdrawn.
    #[error("no process that holds the instance took the call in time")]
    Unattended,
    /// The leader has another version and can't read the call.
    #[error("the lease holder runs an incompatible version")]
    NotUnderstood,
}

/// Formats the first few candidates for an ambiguous name.
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

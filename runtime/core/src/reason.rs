//! Why an invocation runs: recorded and shown to people, never given to the reconciler.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{CallId, Key, Uid};

/// Who starts first where places are few: the least one (C12).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// It has waited for a place for too long; of these the oldest comes first.
    Overdue,
    /// A caller asked for it.
    Explicit,
    /// It was edited, or a resource that it names was.
    Edit,
    /// A time fell due, or something outside moved.
    Schedule,
    /// Its parents have finished, the controller started, or what kept it from running is gone.
    Parent,
    /// A failed run is tried again.
    Retry,
    /// A look for drift.
    Resync,
}

impl Class {
    /// The word used in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Overdue => "overdue",
            Class::Explicit => "explicit",
            Class::Edit => "edit",
            Class::Schedule => "schedule",
            Class::Parent => "parent",
            Class::Retry => "retry",
            Class::Resync => "resync",
        }
    }

    /// The class above this one, if there is one.
    #[must_use]
    pub fn raised(self) -> Self {
        match self {
            Class::Overdue | Class::Explicit => Class::Overdue,
            Class::Edit => Class::Explicit,
            Class::Schedule => Class::Edit,
            Class::Parent => Class::Schedule,
            Class::Retry => Class::Parent,
            Class::Resync => Class::Retry,
        }
    }
}

/// One of the ways in which a reconcile is asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The controller started (request 1).
    Start,
    /// It was created (2).
    Created,
    /// Its spec or refs changed (2).
    Edited,
    /// It was renamed (2).
    Renamed,
    /// It was deleted (2).
    Deleted,
    /// A resource that one of its refs names appeared or went (2).
    RefChanged,
    /// Its parents have finished (3).
    Parent,
    /// A caller asked for it (4).
    Requested,
    /// A caller asked for its work to be done again (4).
    Refresh,
    /// Its retrigger time fell due (5).
    Retrigger,
    /// The resync interval of its kind passed (6).
    Resync,
    /// A failed run is tried again (7).
    Retry,
    /// Something outside moved (8).
    Nudge,
    /// What kept it from running is gone (9).
    Recovered,
}

impl Why {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Why::Start,
        Why::Created,
        Why::Edited,
        Why::Renamed,
        Why::Deleted,
        Why::RefChanged,
        Why::Parent,
        Why::Requested,
        Why::Refresh,
        Why::Retrigger,
        Why::Resync,
        Why::Retry,
        Why::Nudge,
        Why::Recovered,
    ];

    /// The word used in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Why::Start => "start",
            Why::Created => "created",
            Why::Edited => "edited",
            Why::Renamed => "renamed",
            Why::Deleted => "deleted",
            Why::RefChanged => "ref_changed",
            Why::Parent => "parent",
            Why::Requested => "requested",
            Why::Refresh => "refresh",
            Why::Retrigger => "retrigger",
            Why::Resync => "resync",
            Why::Retry => "retry",
            Why::Nudge => "nudge",
            Why::Recovered => "recovered",
        }
    }

    /// What it counts for where places are few (C12).
    pub fn class(self) -> Class {
        match self {
            Why::Requested | Why::Refresh => Class::Explicit,
            Why::Created | Why::Edited | Why::Renamed | Why::Deleted | Why::RefChanged => Class::Edit,
            Why::Retrigger | Why::Nudge => Class::Schedule,
            Why::Parent | Why::Start | Why::Recovered => Class::Parent,
            Why::Retry => Class::Retry,
            Why::Resync => Class::Resync,
        }
    }

    /// Requests 2 and 4: they cancel what runs.
    pub fn cancels(self) -> bool {
        matches!(
            self,
            Why::Created
                | Why::Edited
                | Why::Renamed
                | Why::Deleted
                | Why::RefChanged
                | Why::Requested
                | Why::Refresh
        )
    }

    /// Requests 5 to 8.
    pub fn is_timed(self) -> bool {
        matches!(self, Why::Retrigger | Why::Resync | Why::Retry | Why::Nudge)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which parent, which edit, which caller.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Another resource: the parent, the ref that changed, what held the name.
    Resource {
        /// Its uid.
        uid: Uid,
        /// What it was called then.
        key: Key,
    },
    /// A caller's request or edit.
    Call(CallId),
    /// An edit made by another resource's invocation.
    Invocation {
        /// The resource that it ran for.
        uid: Uid,
        /// What that was called then.
        key: Key,
    },
}

/// Why, with its cause.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reason {
    /// The request.
    pub why: Why,
    /// What was behind it, if anything.
    pub cause: Option<Cause>,
}

impl Reason {
    /// A reason without a cause.
    pub fn bare(why: Why) -> Self {
        Self { why, cause: None }
    }

    /// A reason with its cause.
    pub fn because(why: Why, cause: Cause) -> Self {
        Self {
            why,
            cause: Some(cause),
        }
    }
}

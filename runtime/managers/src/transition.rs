//! Transitions: the story of a resource, as far back as its record keeps it.

use serde::{Deserialize, Serialize};
use watershed_controller::Timestamp;
use watershed_controller::history::InvocationId;

use crate::stages::Stage;

/// The most transitions that a record keeps: enough for several occurrences, little enough to be loaded always.
pub const TRANSITIONS_MAX: usize = 50;

/// One change of the stage.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Transition {
    /// The stage before.
    pub from: Stage,
    /// The stage after.
    pub to: Stage,
    /// The time at which it was recorded.
    pub at: Timestamp,
    /// The sort of cause.
    pub reason: Reason,
    /// More for people, if there is more.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The invocation that recorded it.
    pub invocation: InvocationId,
    /// The epoch of that invocation; 0 in records of before it was kept.
    #[serde(default)]
    pub epoch: u64,
}

/// The sorts of causes of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A step was done.
    Step,
    /// A step was left out, and its stage counts as reached.
    Skipped,
    /// It was found there, whatever the record said.
    Observed,
    /// It is no longer there, which was looked at twice.
    Vanished,
    /// The lifecycle starts over.
    Restarted,
    /// Nothing was there when it had to be gone.
    NothingLeft,
    /// The window went by without a start.
    Missed,
}

impl Reason {
    /// Returns the word that people read.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Skipped => "skipped",
            Self::Observed => "observed",
            Self::Vanished => "vanished",
            Self::Restarted => "restarted",
            Self::NothingLeft => "nothing left",
            Self::Missed => "missed",
        }
    }
}

/// Adds a transition, and drops the oldest beyond [`TRANSITIONS_MAX`].
pub(crate) fn push(transitions: &mut Vec<Transition>, transition: Transition) {
    transitions.push(transition);
    let excess = transitions.len().saturating_sub(TRANSITIONS_MAX);
    transitions.drain(..excess);
}

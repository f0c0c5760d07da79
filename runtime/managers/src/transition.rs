//! Transitions: the history of a resource's stages, as far back as its record keeps it.

use serde::{Deserialize, Serialize};
use watershed_controller::Timestamp;
use watershed_controller::history::InvocationId;

use crate::stages::Stage;

/// The largest number of transitions in a record: enough for several windows, and few enough to load with every record.
pub const TRANSITIONS_MAX: usize = 50;

/// A change of the stage.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Transition {
    /// The stage before the change.
    pub from: Stage,
    /// The stage after the change.
    pub to: Stage,
    /// The time at which the change was recorded.
    pub at: Timestamp,
    /// The cause of the change.
    pub reason: Reason,
    /// A further explanation for people; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The invocation that recorded the change.
    pub invocation: InvocationId,
    /// The epoch of the invocation; 0 in old records, which did not keep it.
    #[serde(default)]
    pub epoch: u64,
}

/// The cause of a change of the stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A step was done.
    Step,
    /// All actions of a step were skipped or given up, and its stage counts as reached.
    Skipped,
    /// The stage was observed, and differed from the record.
    Observed,
    /// Two looks found that nothing exists any more.
    Vanished,
    /// The resource begins again at its first stage.
    Restarted,
    /// Nothing existed that would have to be removed.
    NothingLeft,
    /// The window passed without a start.
    Missed,
}

impl Reason {
    /// Returns the word for people.
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

/// Adds a transition, and drops the oldest ones beyond [`TRANSITIONS_MAX`].
pub(crate) fn push(transitions: &mut Vec<Transition>, transition: Transition) {
    transitions.push(transition);
    let excess = transitions.len().saturating_sub(TRANSITIONS_MAX);
    transitions.drain(..excess);
}

//! Transitions: the story of a workload, as far back as its record keeps it (rule W4).

use serde::{Deserialize, Serialize};
use watershed_core::{InvocationId, Timestamp};

/// The most transitions that a record keeps (W4).
pub const TRANSITIONS_MAX: usize = 50;

/// One change of a workload's stage, or an event of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// The stage before.
    pub from: String,
    /// The stage after.
    pub to: String,
    /// The time at which it was recorded.
    pub at: Timestamp,
    /// The reason, as a word.
    pub reason: String,
    /// More for people, if there is more.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The invocation that recorded it, which has the causal chain.
    pub invocation: InvocationId,
    /// The epoch of that invocation; 0 in records of before it was kept.
    #[serde(default)]
    pub epoch: u64,
}

/// Adds a transition; the oldest goes if there are too many.
pub(crate) fn push(transitions: &mut Vec<Transition>, transition: Transition) {
    transitions.push(transition);
    let surplus = transitions.len().saturating_sub(TRANSITIONS_MAX);
    transitions.drain(..surplus);
}

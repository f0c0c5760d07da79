//! Transitions: the history of a workload in its record (rule W4).

use serde::{Deserialize, Serialize};
use watershed_core::{InvocationId, Timestamp};

/// The most transitions that a record keeps (W4).
pub const TRANSITIONS_MAX: usize = 50;

/// A change of a workload's stage, or an event worth telling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// Stage that the workload left.
    pub from: String,
    /// Stage that the workload entered; the same for an event without a change.
    pub to: String,
    /// Time at which the transition was recorded.
    pub at: Timestamp,
    /// Reason in a word.
    pub reason: String,
    /// Details for people; empty if there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Invocation that recorded the transition, which leads to the causal chain.
    pub invocation: InvocationId,
    /// Epoch of the invocation; 0 in records of an earlier version.
    #[serde(default)]
    pub epoch: u64,
}

/// Adds a transition, dropping the oldest beyond the limit.
pub(crate) fn push(transitions: &mut Vec<Transition>, transition: Transition) {
    transitions.push(transition);
    let surplus = transitions.len().saturating_sub(TRANSITIONS_MAX);
    transitions.drain(..surplus);
}

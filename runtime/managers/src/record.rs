//! Records: everything that is known of a resource between one pass and the next.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use watershed_controller::kind::Attempts;
use watershed_controller::message::{DecodeError, EncodeError, Message};
use watershed_controller::resource::StateVersion;
use watershed_controller::{Name, Timestamp, Uid};

use crate::desired::Desired;
use crate::event::EventMatch;
use crate::frame::{join, split};
use crate::goal::Goal;
use crate::pipeline::{Finished, Step};
use crate::stages::{Stage, Stages};
use crate::transition::Transition;
use crate::window::Occurrence;

/// The part of a state that all kinds have.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The lifecycle, for readers and owners.
    pub stages: Stages,
    /// The stage for readers and owners: its own, as far as its parts have come along.
    pub stage: Stage,
    /// The stage that was last observed or reached, parts left aside.
    pub own: Stage,
    /// The stage that it was moving towards at its last pass.
    pub goal: Stage,
    /// The window that was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Occurrence>,
    /// The step on the way, with what is done of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Current>,
    /// The failure that stays until the goal is another one, or it is retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The time at which it was first not found, until that is confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent_since: Option<Timestamp>,
    /// Set while the own stage is what a step said, or an attempt was cut off, and no look has confirmed it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claimed: bool,
    /// The stage that an event set.
    #[serde(default, rename = "told", skip_serializing_if = "Option::is_none")]
    pub stage_override: Option<StageOverride>,
    /// The events that have had their effect and are still kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handled: Vec<Uid>,
    /// The refreshes that were answered.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refreshed: u64,
    /// The version of this state at the end of the failed run whose failures were last forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgotten: Option<StateVersion>,
    /// The name of the resource for which its parts have theirs; none while it has no parts. With another name of its own they
    /// are renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named: Option<Name>,
    /// The latest changes of the stage, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transitions: Vec<Transition>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A step on the way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Current {
    /// The stage that it leads to.
    pub to: Stage,
    /// The goal that it was begun for.
    pub goal: Stage,
    /// Set if it was begun after the cleanup deadline.
    #[serde(default)]
    pub force: bool,
    /// The action that is performed or waits; empty before the first.
    pub action: String,
    /// Set from before an attempt begins until its end is recorded. Found set, the attempt is repeated with its key.
    #[serde(default)]
    pub under_way: bool,
    /// The failures of the action.
    pub attempts: Attempts,
    /// The last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// The time from which `resume_at` and `awaiting` count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_since: Option<Timestamp>,
    /// The time before which it is not performed again, because it asked for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_at: Option<Timestamp>,
    /// The event that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaiting: Option<Awaiting>,
    /// The actions of the step that are finished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finished: Vec<Finished>,
}

/// An event that completes an action.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Awaiting {
    /// The events that are meant.
    pub event: EventMatch,
    /// The time at which the action has failed without it.
    pub until: Timestamp,
}

/// A failure that stays.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// The code: `step-failed` or `part-failed`.
    pub code: Arc<str>,
    /// The message for people.
    pub message: Arc<str>,
    /// The goal that it stands in the way of.
    pub goal: Stage,
    /// The time at which it was recorded.
    pub at: Timestamp,
}

/// A stage that an event set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StageOverride {
    /// The stage.
    pub stage: Stage,
    /// The stage that the spec desired then: with another one the event's is over.
    pub instead_of: Stage,
    /// The times that it had been set by then: once it is set again the event's is over, also to the stage of before.
    #[serde(default)]
    pub edits: u64,
    /// The event, by source and id.
    pub by: String,
}

impl StageOverride {
    /// Returns true while nothing else was desired since.
    pub fn holds(&self, desired: &Desired) -> bool {
        self.instead_of == desired.stage && self.edits == desired.edits
    }
}

impl Current {
    /// Returns the beginning of a step.
    pub(crate) fn new(step: &Step, goal: &Goal) -> Self {
        Self {
            to: step.to.clone(),
            goal: goal.stage.clone(),
            force: goal.force,
            action: String::new(),
            under_way: false,
            attempts: Attempts::default(),
            error: None,
            waits_since: None,
            resume_at: None,
            awaiting: None,
            finished: Vec::new(),
        }
    }

    /// Goes on to another action, of which nothing has been tried.
    pub(crate) fn begin(&mut self, action: &str) {
        action.clone_into(&mut self.action);
        self.under_way = false;
        self.attempts = Attempts::default();
        self.error = None;
        self.resume_at = None;
        self.awaiting = None;
    }

    /// Sees that nothing waits for longer than it was to from now on, where the clock was set back.
    pub(crate) fn follow_clock(&mut self, now: Timestamp) {
        self.attempts = self.attempts.by_clock(now);
        let Some(since) = self.waits_since.filter(|since| *since > now) else {
            return;
        };
        let earlier = |at: Timestamp| Timestamp(now.0.saturating_add(at.0.saturating_sub(since.0)));
        self.resume_at = self.resume_at.map(earlier);
        if let Some(awaiting) = &mut self.awaiting {
            awaiting.until = earlier(awaiting.until);
        }
        self.waits_since = Some(now);
    }
}

impl Record {
    /// Returns the record of a resource that was never looked at.
    pub fn fresh(stages: &Stages) -> Self {
        Self {
            stages: stages.clone(),
            stage: stages.first().clone(),
            own: stages.first().clone(),
            goal: stages.first().clone(),
            window: None,
            current: None,
            failure: None,
            absent_since: None,
            claimed: false,
            stage_override: None,
            handled: Vec::new(),
            refreshed: 0,
            forgotten: None,
            named: None,
            transitions: Vec::new(),
        }
    }

    /// Returns true if nothing of it is outside, as was seen, and nothing is under way.
    pub fn is_clean(&self) -> bool {
        self.stages.is_nothing(&self.own) && self.current.is_none() && !self.claimed
    }

    /// Returns the stage that is desired: by an event, unless something else was desired since.
    pub fn desired<'a>(&'a self, wanted: &'a Desired) -> &'a Stage {
        let stage_override = self.stage_override.as_ref().filter(|set| set.holds(wanted));
        stage_override.map_or(&wanted.stage, |set| &set.stage)
    }

    /// Returns true if something is to come by itself, soon or by an event, before the goal is reached: an absence that is
    /// looked at once more, a step that goes on later, one that waits for an event. No window is.
    pub fn is_under_way(&self) -> bool {
        let goes_on = |step: &Current| step.awaiting.is_some() || step.resume_at.is_some();
        self.absent_since.is_some() || self.claimed || self.current.as_ref().is_some_and(goes_on)
    }

    /// Returns true if the step on the way serves this goal.
    pub(crate) fn is_on_the_way_to(&self, goal: &Goal) -> bool {
        let current = self.current.as_ref();
        current.is_none_or(|current| current.goal == goal.stage && current.force == goal.force)
    }
}

/// The state of a managed resource: its record, and what was observed beside the stage.
#[derive(Debug)]
pub struct ManagedState<D> {
    /// The part that all kinds have.
    pub record: Record,
    /// The details that were observed beside the stage; none while there is nothing.
    pub details: Option<Arc<D>>,
}

impl<D> Clone for ManagedState<D> {
    fn clone(&self) -> Self {
        Self {
            record: self.record.clone(),
            details: self.details.clone(),
        }
    }
}

impl<D: PartialEq> PartialEq for ManagedState<D> {
    fn eq(&self, other: &Self) -> bool {
        self.record == other.record && self.details == other.details
    }
}

/// The first part of the bytes of a state.
#[derive(Serialize, Deserialize)]
struct Head<R> {
    record: R,
    /// The format of the details that follow; none if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<u32>,
}

impl<D: Message + PartialEq> Message for ManagedState<D> {
    const FORMAT: u32 = 1;

    fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let details = self.details.as_ref();
        let own = details.map(|details| details.encode()).transpose()?;
        let head = Head {
            record: &self.record,
            format: details.map(|_| D::FORMAT),
        };
        join(&head, &own.unwrap_or_default())
    }

    fn decode(format: u32, bytes: &[u8]) -> Result<Self, DecodeError> {
        if format != Self::FORMAT {
            return Err(DecodeError::unknown_format::<Self>(format));
        }
        let (head, own) = split::<Head<Record>>(bytes)?;
        if !head.record.stages.is_sound() {
            return Err(DecodeError::malformed::<Self>("the stages are no lifecycle"));
        }
        let details = head.format.map(|format| D::decode(format, own)).transpose()?;
        Ok(Self {
            record: head.record,
            details: details.map(Arc::new),
        })
    }
}

/// Reads the part of a state that all kinds have.
///
/// # Errors
/// If the bytes are not those of a managed resource's state.
pub fn record_of(state: &[u8]) -> Result<Record, DecodeError> {
    let (head, _) = split::<Head<Record>>(state)?;
    if head.record.stages.is_sound() {
        Ok(head.record)
    } else {
        Err(DecodeError::malformed::<Record>("the stages are no lifecycle"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written_and_its_record_without_its_type() {
        let stages = Stages::new(["absent", "there", "gone"]).unwrap();
        let mut kept = ManagedState::<()> {
            record: Record::fresh(&stages),
            details: None,
        };
        for details in [None, Some(Arc::new(()))] {
            kept.details = details;
            let bytes = kept.encode().unwrap();
            assert!(ManagedState::<()>::decode(1, &bytes).unwrap() == kept);
            assert_eq!(record_of(&bytes).unwrap(), kept.record);
        }
        assert!(ManagedState::<()>::decode(2, &kept.encode().unwrap()).is_err());
        assert!(record_of(b"\0\0\0\x02{}").is_err());
    }
}

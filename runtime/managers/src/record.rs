//! Records: the knowledge about a resource that is kept from one pass to the next.

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
    /// The stages of the resource, for readers and owners.
    pub stages: Stages,
    /// The stage of the resource with its parts, for readers and owners; an earlier one than `own` if parts lag behind.
    pub stage: Stage,
    /// The stage that was last observed or reached, without regard to parts.
    pub own: Stage,
    /// The goal of the last pass.
    pub goal: Stage,
    /// The window that was accepted; none if the spec has no window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Occurrence>,
    /// The step under way, with its progress; none between steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Current>,
    /// The failure that blocks the goal, until the goal changes or the failure is retried; none if nothing failed for
    /// good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The time at which the resource was first found absent, until a further look confirms it; none otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent_since: Option<Timestamp>,
    /// True while the own stage is only the result of a step, or an attempt was interrupted, and no look has confirmed
    /// the stage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claimed: bool,
    /// The desired stage that an event set, if there is one.
    #[serde(default, rename = "told", skip_serializing_if = "Option::is_none")]
    pub stage_override: Option<StageOverride>,
    /// The stored events that have had their effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handled: Vec<Uid>,
    /// The number of refreshes carried out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refreshed: u64,
    /// The version of this state after the failed run whose failures were last forgotten; none if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgotten: Option<StateVersion>,
    /// The name of the resource when its parts were named. If it has changed, the parts are renamed. None without
    /// parts.
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

/// The step under way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Current {
    /// The stage that the step leads to.
    pub to: Stage,
    /// The goal for which the step was begun.
    pub goal: Stage,
    /// True if the step was begun after the cleanup deadline.
    #[serde(default)]
    pub force: bool,
    /// The name of the action that is under way or waiting; empty if there is none yet.
    pub action: String,
    /// True from before an attempt begins until its end is recorded. If still true in a later pass, the attempt is
    /// repeated with the same key.
    #[serde(default)]
    pub under_way: bool,
    /// The failed attempts of the action.
    pub attempts: Attempts,
    /// The last error of the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// The time from which `resume_at` and `awaiting` count; none if the action does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_since: Option<Timestamp>,
    /// The time until which the action asked to wait; none if it did not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_at: Option<Timestamp>,
    /// The event that the action waits for, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaiting: Option<Awaiting>,
    /// The finished actions of the step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finished: Vec<Finished>,
}

/// The event that an action waits for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Awaiting {
    /// The condition on the event.
    pub event: EventMatch,
    /// The time at which the action fails without the event.
    pub until: Timestamp,
}

/// A failure that blocks a goal until the goal changes or the failure is retried.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// The code of the failure: `step-failed` or `part-failed`.
    pub code: Arc<str>,
    /// The description of the failure, for people.
    pub message: Arc<str>,
    /// The goal that the failure blocks.
    pub goal: Stage,
    /// The time at which the failure was recorded.
    pub at: Timestamp,
}

/// A desired stage that an event set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StageOverride {
    /// The stage that the event set.
    pub stage: Stage,
    /// The stage that the spec desired at that time. Once the spec desires another one, the override ends.
    pub instead_of: Stage,
    /// The value of [`Desired::edits`] at that time. Once it changes, the override ends, even if the spec's stage is
    /// the same.
    #[serde(default)]
    pub edits: u64,
    /// The source and id of the event.
    pub by: String,
}

impl StageOverride {
    /// Returns true while the spec has the same desired stage and no edit of it since.
    pub fn holds(&self, desired: &Desired) -> bool {
        self.instead_of == desired.stage && self.edits == desired.edits
    }
}

impl Current {
    /// Returns a step of which no action has begun.
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

    /// Begins another action, without failures so far.
    pub(crate) fn begin(&mut self, action: &str) {
        action.clone_into(&mut self.action);
        self.under_way = false;
        self.attempts = Attempts::default();
        self.error = None;
        self.resume_at = None;
        self.awaiting = None;
    }

    /// Shortens the waits if the clock was set back, so that none lasts longer than it should.
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
    /// Returns the record of a resource before its first look.
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

    /// Returns true if nothing of the resource is left outside, as a look has confirmed, and no step is under way.
    pub fn is_clean(&self) -> bool {
        self.stages.is_nothing(&self.own) && self.current.is_none() && !self.claimed
    }

    /// Returns the desired stage: the stage that an event set, if it still applies, or otherwise that of the spec.
    pub fn desired<'a>(&'a self, wanted: &'a Desired) -> &'a Stage {
        let stage_override = self.stage_override.as_ref().filter(|set| set.holds(wanted));
        stage_override.map_or(&wanted.stage, |set| &set.stage)
    }

    /// Returns true if the resource waits to go on before it reaches its goal: to confirm an absence or a stage, to
    /// resume a step, or for an event. Waiting for a window does not count.
    pub fn is_under_way(&self) -> bool {
        let goes_on = |step: &Current| step.awaiting.is_some() || step.resume_at.is_some();
        self.absent_since.is_some() || self.claimed || self.current.as_ref().is_some_and(goes_on)
    }

    /// Returns true if the step under way serves this goal, or there is none.
    pub(crate) fn is_on_the_way_to(&self, goal: &Goal) -> bool {
        let current = self.current.as_ref();
        current.is_none_or(|current| current.goal == goal.stage && current.force == goal.force)
    }
}

/// The state of a managed resource: its record, and the details of the last look.
#[derive(Debug)]
pub struct ManagedState<D> {
    /// The part of the state that all kinds have.
    pub record: Record,
    /// The details that were observed in addition to the stage; none while nothing exists outside.
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

/// The first part of an encoded state.
#[derive(Serialize, Deserialize)]
struct Head<R> {
    record: R,
    /// The format of the details that follow; none if there are no details.
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

/// Reads the record from an encoded state, which all kinds have.
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

//! The wish for a resource, beside its kind's own part.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use watershed_controller::Timestamp;
use watershed_controller::message::{DecodeError, EncodeError, Message};

use crate::event::Rule;
use crate::frame::{join, split};
use crate::goal::Allowed;
use crate::stages::Stage;
use crate::window::Timed;

/// The stage that is wanted, when, and what a failed part means.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Desired {
    /// The stage.
    pub stage: Stage,
    /// The window in which it is wanted; none for always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Timed>,
    /// The meaning of a failed part.
    #[serde(default)]
    pub on_part_failure: OnPartFailure,
    /// The events that change what is desired.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_events: Vec<Rule>,
    /// The part of the lifecycle that the owner allows. Owners alone set it.
    #[serde(default)]
    pub allowed: Allowed,
    /// The moment from which nothing may be left. Owners alone set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup_by: Option<Timestamp>,
    /// The number of times that the stage was set by [`set`](Self::set). What an event set is over when it rises, also if
    /// the stage is the one of before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub edits: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The meaning of a failed part for its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnPartFailure {
    /// The owner fails and all parts go: later ones depend on earlier ones.
    #[default]
    Abort,
    /// The others go on; the owner fails when all have failed.
    Continue,
}

impl Desired {
    /// Returns the wish for a stage, always.
    pub fn stage(stage: impl Into<Stage>) -> Self {
        Self {
            stage: stage.into(),
            window: None,
            on_part_failure: OnPartFailure::default(),
            on_events: Vec::new(),
            allowed: Allowed::default(),
            cleanup_by: None,
            edits: 0,
        }
    }

    /// Sets the stage, in place of what an event set as well; returns the one before.
    pub fn set(&mut self, stage: impl Into<Stage>) -> Stage {
        self.edits = self.edits.saturating_add(1);
        std::mem::replace(&mut self.stage, stage.into())
    }

    /// Returns the same within a window.
    #[must_use]
    pub fn within(mut self, window: Timed) -> Self {
        self.window = Some(window);
        self
    }

    /// Returns the same with a meaning of failed parts.
    #[must_use]
    pub fn on_part_failure(mut self, meaning: OnPartFailure) -> Self {
        self.on_part_failure = meaning;
        self
    }

    /// Returns the same with a further rule for events.
    #[must_use]
    pub fn on_event(mut self, rule: Rule) -> Self {
        self.on_events.push(rule);
        self
    }
}

/// The spec of a managed resource: what is desired, and the kind's own part.
///
/// ```
/// use watershed_controller::{Message, json_message};
/// use watershed_managers::{Desired, Wanted};
///
/// #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// struct Pod { image: String }
/// json_message!(Pod, format = 1);
///
/// let wanted = Wanted::new(Desired::stage("active"), Pod { image: "shell".into() });
/// let read = Wanted::<Pod>::decode(Wanted::<Pod>::FORMAT, &wanted.encode()?)?;
/// assert_eq!((&read.desired, &*read.spec), (&wanted.desired, &*wanted.spec));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Wanted<S> {
    /// The part that all kinds have.
    pub desired: Desired,
    /// The kind's own part.
    pub spec: Arc<S>,
}

impl<S> Wanted<S> {
    /// Returns the two together.
    pub fn new(desired: Desired, spec: S) -> Self {
        Self {
            desired,
            spec: Arc::new(spec),
        }
    }
}

impl<S> Clone for Wanted<S> {
    fn clone(&self) -> Self {
        Self {
            desired: self.desired.clone(),
            spec: Arc::clone(&self.spec),
        }
    }
}

/// The first part of the bytes of a spec.
#[derive(Serialize, Deserialize)]
struct Head {
    desired: Desired,
    /// The format of the kind's own part, which follows.
    format: u32,
}

impl<S: Message> Message for Wanted<S> {
    const FORMAT: u32 = 1;

    fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        encode_wanted(&self.desired, S::FORMAT, &self.spec.encode()?)
    }

    fn decode(format: u32, bytes: &[u8]) -> Result<Self, DecodeError> {
        if format != Self::FORMAT {
            return Err(DecodeError::unknown_format::<Self>(format));
        }
        let (head, rest) = split::<Head>(bytes)?;
        let spec = S::decode(head.format, rest)?;
        Ok(Self::new(head.desired, spec))
    }
}

/// Encodes a spec whose own part has been encoded.
pub(crate) fn encode_wanted(desired: &Desired, format: u32, own: &[u8]) -> Result<Vec<u8>, EncodeError> {
    let desired = desired.clone();
    join(&Head { desired, format }, own)
}

/// Reads the part that all kinds have.
///
/// # Errors
/// If the bytes are not those of a managed resource's spec.
pub fn desired_of(spec: &[u8]) -> Result<Desired, DecodeError> {
    Ok(split::<Head>(spec)?.0.desired)
}

/// Returns the bytes of a spec with another wish, the kind's own part as it was.
///
/// # Errors
/// If the bytes are not those of a managed resource's spec.
pub fn with_desired(spec: &[u8], desired: Desired) -> Result<Vec<u8>, DecodeError> {
    let (head, own) = split::<Head>(spec)?;
    encode_wanted(&desired, head.format, own).map_err(DecodeError::malformed::<Desired>)
}

//! The desired stage of a resource and its conditions, which all kinds have.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use watershed_controller::Timestamp;
use watershed_controller::message::{DecodeError, EncodeError, Message};

use crate::event::Rule;
use crate::frame::{join, split};
use crate::goal::Allowed;
use crate::stages::Stage;
use crate::window::Timed;

/// The stage that is desired, the window for it, and the effect of failed parts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Desired {
    /// The stage that the resource should reach.
    pub stage: Stage,
    /// The window in which the stage is desired; always if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Timed>,
    /// The effect of a failed part.
    #[serde(default)]
    pub on_part_failure: OnPartFailure,
    /// The rules for events that change the desired stage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_events: Vec<Rule>,
    /// The limit on the resource's stages; set by the owner only.
    #[serde(default)]
    pub allowed: Allowed,
    /// The time from which nothing of the resource may be left; set by the owner only, and none without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup_by: Option<Timestamp>,
    /// The number of calls of [`set`](Self::set). A new call ends the effect of earlier events, even if the stage stays
    /// the same.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub edits: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The effect of a failed part on its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnPartFailure {
    /// The owner fails and all parts are removed, since later parts depend on earlier ones.
    #[default]
    Abort,
    /// The other parts continue; the owner fails once all parts have failed.
    Continue,
}

impl Desired {
    /// Returns a desired stage without a window or further conditions.
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

    /// Sets the desired stage, and ends the effect of earlier events on it. Returns the stage set here before.
    pub fn set(&mut self, stage: impl Into<Stage>) -> Stage {
        self.edits = self.edits.saturating_add(1);
        std::mem::replace(&mut self.stage, stage.into())
    }

    /// Returns the desired stage with a window for it.
    #[must_use]
    pub fn within(mut self, window: Timed) -> Self {
        self.window = Some(window);
        self
    }

    /// Returns the desired stage with an effect of failed parts.
    #[must_use]
    pub fn on_part_failure(mut self, meaning: OnPartFailure) -> Self {
        self.on_part_failure = meaning;
        self
    }

    /// Returns the desired stage with a further rule for events.
    #[must_use]
    pub fn on_event(mut self, rule: Rule) -> Self {
        self.on_events.push(rule);
        self
    }
}

/// The spec of a managed resource: its desired stage, and the spec of its kind.
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
    /// The desired stage and its conditions, which all kinds have.
    pub desired: Desired,
    /// The fields that are specific to the kind.
    pub spec: Arc<S>,
}

impl<S> Wanted<S> {
    /// Returns a spec made of both parts.
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

/// The first part of an encoded spec.
#[derive(Serialize, Deserialize)]
struct Head {
    desired: Desired,
    /// The format of the kind's spec, which follows.
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

/// Encodes a spec from its first part and the encoded spec of the kind.
pub(crate) fn encode_wanted(desired: &Desired, format: u32, own: &[u8]) -> Result<Vec<u8>, EncodeError> {
    let desired = desired.clone();
    join(&Head { desired, format }, own)
}

/// Reads the first part of an encoded spec, which all kinds have.
///
/// # Errors
/// If the bytes are not those of a managed resource's spec.
pub fn desired_of(spec: &[u8]) -> Result<Desired, DecodeError> {
    Ok(split::<Head>(spec)?.0.desired)
}

/// Returns an encoded spec with another first part and the same spec of the kind.
///
/// # Errors
/// If the bytes are not those of a managed resource's spec.
pub fn with_desired(spec: &[u8], desired: Desired) -> Result<Vec<u8>, DecodeError> {
    let (head, own) = split::<Head>(spec)?;
    encode_wanted(&desired, head.format, own).map_err(DecodeError::malformed::<Desired>)
}

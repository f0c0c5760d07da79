//! The view of a resource that its manager receives.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use watershed_controller::reconciler::{CancellationToken, OwnedView, RefView};
use watershed_controller::store::Epoch;
use watershed_controller::{Name, Timestamp, Uid};

use crate::cloud::CloudEvent;
use crate::desired::{Desired, Wanted};
use crate::goal::Allowed;
use crate::manager::Manager;
use crate::pipeline::Step;
use crate::stages::{Stage, Stages};
use crate::window::Occurrence;

/// A managed resource as its manager sees it: its spec, and all that is known about it.
pub struct View<M: Manager> {
    pub(crate) name: Name,
    pub(crate) uid: Uid,
    pub(crate) epoch: Epoch,
    pub(crate) now: Timestamp,
    pub(crate) wanted: Wanted<M::Spec>,
    pub(crate) desired: Stage,
    pub(crate) stages: Stages,
    pub(crate) stage: Stage,
    pub(crate) details: Option<Arc<M::Details>>,
    pub(crate) reported: Mutex<Option<Arc<M::Details>>>,
    pub(crate) window: Option<Occurrence>,
    pub(crate) refs: Arc<[RefView]>,
    pub(crate) owned: Arc<[OwnedView]>,
    pub(crate) event: Option<CloudEvent>,
    pub(crate) action: String,
    pub(crate) attempt: u32,
    pub(crate) force: bool,
    pub(crate) cancellation: CancellationToken,
}

impl<M: Manager> fmt::Debug for View<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("name", &self.name)
            .field("uid", &self.uid)
            .field("stage", &self.stage)
            .field("action", &self.action)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

impl<M: Manager> View<M> {
    /// Returns a view with a spec and a stage and nothing else, for tests of pure functions.
    pub fn sketch(name: &str, uid: Uid, wanted: Wanted<M::Spec>, stages: Stages, stage: Stage) -> Self {
        Self {
            name: Name::new(name),
            uid,
            epoch: Epoch::default(),
            now: Timestamp(0),
            desired: wanted.desired.stage.clone(),
            wanted,
            stages,
            stage,
            details: None,
            reported: Mutex::default(),
            window: None,
            refs: Arc::default(),
            owned: Arc::default(),
            event: None,
            action: String::new(),
            attempt: 1,
            force: false,
            cancellation: CancellationToken::new(),
        }
    }

    /// Returns the default next step: one action to the next stage by [`Stages::step`].
    pub fn step_towards(&self, goal: &Stage) -> Option<Step> {
        self.stages.step(&self.stage, goal).map(Step::to)
    }

    /// Returns the name of the resource.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Returns the identity of the resource, with which things outside are marked. It stays the same through renames
    /// and teardown.
    pub fn uid(&self) -> Uid {
        self.uid
    }

    /// Returns the epoch of the controller; a later controller has a higher one.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns the key of the attempt. A repetition after a crash has the same key except for the epoch.
    pub fn key(&self) -> String {
        format!("{}/{}/{}/{}", self.uid, self.epoch, self.action, self.attempt)
    }

    /// Returns the time by the controller's clock.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the fields of the spec that are specific to the kind.
    pub fn spec(&self) -> &M::Spec {
        &self.wanted.spec
    }

    /// Returns the desired stage of the spec with its conditions, which all kinds have.
    pub fn wish(&self) -> &Desired {
        &self.wanted.desired
    }

    /// Returns the desired stage, as set by the spec or by an event since.
    pub fn desired(&self) -> &Stage {
        &self.desired
    }

    /// Returns true if the resource may go to its desired stage, with or without an owner.
    pub fn is_allowed_all(&self) -> bool {
        self.wanted.desired.allowed == Allowed::All
    }

    /// Returns the stages that the resource moves along.
    pub fn stages(&self) -> &Stages {
        &self.stages
    }

    /// Returns the stage that was last observed or reached, without regard to parts.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Returns the details of the last look or of a later action; none if there are none.
    pub fn details(&self) -> Option<&M::Details> {
        self.details.as_deref()
    }

    /// Reports details that an action has found, for later actions. They are recorded if the action succeeds, and stay
    /// until the next look.
    pub fn report(&self, details: M::Details) {
        *self.reported.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(details));
    }

    /// Takes the details that an action has reported, if any.
    pub(crate) fn take_reported(&self) -> Option<Arc<M::Details>> {
        self.reported
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Returns the window that applies, if there is one.
    pub fn window(&self) -> Option<&Occurrence> {
        self.window.as_ref()
    }

    /// Returns the references to other resources, with their targets.
    pub fn refs(&self) -> &[RefView] {
        &self.refs
    }

    /// Returns the resources that this resource owns.
    pub fn owned(&self) -> &[OwnedView] {
        &self.owned
    }

    /// Returns the last event that had an effect in this pass, if there was one.
    pub fn event(&self) -> Option<&CloudEvent> {
        self.event.as_ref()
    }

    /// Returns the name of the action to perform; for steps of one action, usually the name of the stage.
    pub fn action(&self) -> &str {
        &self.action
    }

    /// Returns the number of the attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns true from the cleanup deadline on, when obstacles to removal must be removed too.
    pub fn force(&self) -> bool {
        self.force
    }

    /// Returns the token that is cancelled when the attempt must end.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }
}

//! The view that a manager gets.

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

/// A managed resource as its manager sees it: what is wanted, and everything that is known.
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
    /// Returns the view of a resource of which nothing is known but what is wanted, at a stage: for tests of pure functions.
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

    /// Returns the default next step: one action to the neighbouring stage, see [`Stages::step`].
    pub fn step_towards(&self, goal: &Stage) -> Option<Step> {
        self.stages.step(&self.stage, goal).map(Step::to)
    }

    /// Returns the name of the resource.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Returns the identity, which stays through renames and while it is torn down: what things outside are marked with.
    pub fn uid(&self) -> Uid {
        self.uid
    }

    /// Returns the epoch of the controller: a later holder's is higher.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns the key of an attempt. A repetition after a crash has the same one but for the epoch.
    pub fn key(&self) -> String {
        format!("{}/{}/{}/{}", self.uid, self.epoch, self.action, self.attempt)
    }

    /// Returns the time of day by the controller's clock.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the kind's own part of what is wanted.
    pub fn spec(&self) -> &M::Spec {
        &self.wanted.spec
    }

    /// Returns the part of what is wanted that all kinds have.
    pub fn wish(&self) -> &Desired {
        &self.wanted.desired
    }

    /// Returns the stage that is desired: what the spec says, or an event since.
    pub fn desired(&self) -> &Stage {
        &self.desired
    }

    /// Returns true if the owner, or nobody, allows all that is desired.
    pub fn is_allowed_all(&self) -> bool {
        self.wanted.desired.allowed == Allowed::All
    }

    /// Returns the lifecycle.
    pub fn stages(&self) -> &Stages {
        &self.stages
    }

    /// Returns the stage that was last observed or reached, parts left aside.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Returns what was last observed beside the stage.
    pub fn details(&self) -> Option<&M::Details> {
        self.details.as_deref()
    }

    /// Reports details that an action has found out, for the actions after it. They are recorded with the action's end
    /// if it succeeds, and hold until the next look.
    pub fn report(&self, details: M::Details) {
        *self.reported.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(details));
    }

    /// Takes what an action has reported.
    pub(crate) fn take_reported(&self) -> Option<Arc<M::Details>> {
        self.reported
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Returns the window that governs.
    pub fn window(&self) -> Option<&Occurrence> {
        self.window.as_ref()
    }

    /// Returns the refs with what they stand for.
    pub fn refs(&self) -> &[RefView] {
        &self.refs
    }

    /// Returns the resources that it owns.
    pub fn owned(&self) -> &[OwnedView] {
        &self.owned
    }

    /// Returns the event that last had an effect in this pass.
    pub fn event(&self) -> Option<&CloudEvent> {
        self.event.as_ref()
    }

    /// Returns the name of the action to perform; that of the stage unless the step has several.
    pub fn action(&self) -> &str {
        &self.action
    }

    /// Returns the number of the attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns true from the cleanup deadline on: what is in the way is to be removed.
    pub fn force(&self) -> bool {
        self.force
    }

    /// Returns the token that is cancelled when the attempt is to end.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }
}

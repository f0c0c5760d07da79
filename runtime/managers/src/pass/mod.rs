//! A pass over a resource: goal, look, steps, record and cascade.
//!
//! 1. A step is stored, durably, before it runs; its end is one write with its transition.
//! 2. What is observed wins over what is stored, unless it can't be told.
//! 3. Only `cascade` decides how far parts may go, and one batch of a pass carries it out.
//! 4. What is converged writes nothing: a pass compares its record with the stored one and writes what differs.
//!
//! Each file beside this one is one of the words above; this one has their order.

mod act;
mod events;
mod observation;
mod parts;
mod renames;
mod steps;
mod time;

use std::sync::Arc;
use std::time::Duration;

use watershed_controller::reconciler::{CancellationToken, SetStateError};
use watershed_controller::{Context, Error, Name, Outcome, Reconciler, Timestamp, Uid, Work};

use crate::cloud::CloudEvent;
use crate::desired::Wanted;
use crate::goal::{Allowed, Goal, Wish};
use crate::manager::Manager;
use crate::manager::view::View;
use crate::record::{Failure, ManagedState, Record};
use crate::stages::{Stage, Stages};
use crate::transition::{Reason, Transition, push};
use crate::window::{BadWindow, Plan, phase_name};

/// The wait until a second look confirms an absence.
pub(crate) const CONFIRM_AFTER: Duration = Duration::from_secs(5);
/// The largest number of steps in one pass, so that steps in a circle let others run. A resource has at most 32 stages.
const STEPS_MAX: usize = 32;

/// The code of errors for failed steps.
const STEP_FAILED: &str = "step-failed";
/// The code of errors for owners whose part has failed.
const PART_FAILED: &str = "part-failed";

/// The resource that a pass is about, with its name and identity outside.
pub(crate) struct Subject<S> {
    pub(crate) name: Name,
    pub(crate) uid: Uid,
    pub(crate) wanted: Wanted<S>,
    /// True for the teardown of a deleted resource, whose parts have teardowns of their own.
    pub(crate) is_alone: bool,
}

/// A pass over a resource, made by the reconciler `R`.
pub(crate) struct Pass<'a, M: Manager, R: Reconciler<State = ManagedState<M::Details>>> {
    manager: &'a M,
    context: &'a Context<R>,
    subject: Subject<M::Spec>,
    stages: Stages,
    kept: ManagedState<M::Details>,
    /// The state as stored, or about to be stored.
    saved: Option<ManagedState<M::Details>>,
    plan: Option<Plan>,
    bad_window: Option<BadWindow>,
    /// The manager's reason not to build the resource, if there is one.
    refused: Option<Error>,
    /// The events without an effect so far, oldest first.
    events: Vec<(Uid, CloudEvent)>,
    /// The last event that had an effect.
    event: Option<CloudEvent>,
    parts: Vec<parts::Declared>,
    /// A text for people about failed parts, while the others continue; none if no part has failed so.
    degraded: Option<String>,
    work: Work,
    /// The earliest time at which to look at this resource again; none if nothing asks for it.
    wake: Option<Timestamp>,
}

/// The reason why a pass ends early.
enum Halt {
    /// The invocation was cancelled, and its outcome is ignored.
    Cancelled,
    /// The pass has failed.
    Failed(Box<Error>),
}

/// The reason why no step is taken now.
enum Blocked {
    /// The resource waits, for this reason in words for people.
    Waits(String),
    /// A step has failed, or can't be taken.
    Fails(Error),
}

/// Returns the error that reports a recorded failure.
fn failed(failure: &Failure) -> Error {
    Error::permanent(failure.code.clone(), failure.message.clone())
}

impl Halt {
    fn failed(error: Error) -> Self {
        Self::Failed(Box::new(error))
    }
}

impl From<SetStateError> for Halt {
    fn from(error: SetStateError) -> Self {
        Self::failed(error.into())
    }
}

impl<'a, M: Manager, R: Reconciler<State = ManagedState<M::Details>>> Pass<'a, M, R> {
    /// Returns a pass that has not run. `before` is the state to begin with if the resource has none.
    pub(crate) fn new(
        manager: &'a M,
        context: &'a Context<R>,
        subject: Subject<M::Spec>,
        before: Option<ManagedState<M::Details>>,
    ) -> Self {
        let stages = manager.stages(&subject.wanted.spec);
        let refused = manager.refuse(&subject.wanted.spec);
        let saved = context.state().cloned();
        let kept = saved.clone().or(before).unwrap_or_else(|| ManagedState {
            record: Record::fresh(&stages),
            details: None,
        });
        Self {
            manager,
            context,
            subject,
            stages,
            kept,
            saved,
            plan: None,
            bad_window: None,
            refused,
            events: Vec::new(),
            event: None,
            parts: Vec::new(),
            degraded: None,
            work: Work::None,
            wake: None,
        }
    }

    /// Runs the pass. Returns its outcome, and the state at its end.
    pub(crate) async fn run(mut self) -> (Result<Outcome, Error>, ManagedState<M::Details>) {
        let outcome = match self.go().await {
            Ok(blocked) => self.end(blocked).await,
            Err(Halt::Failed(error)) => Err(self.with_next_look(*error)),
            // Nobody asks for it any more.
            Err(Halt::Cancelled) => Ok(Outcome::unchanged()),
        };
        (outcome, self.kept)
    }

    async fn go(&mut self) -> Result<Option<Blocked>, Halt> {
        self.follow_stages()?;
        self.forget_failures();
        self.accept_window();
        self.hear();
        self.find_parts()?;
        let goal = self.aim();
        let sight = self.look(&goal).await?;
        let mut blocked = match sight {
            observation::Sight::Clear => self.steps().await?,
            observation::Sight::Unconfirmed => {
                Some(Blocked::Waits("it was not found; looking again".to_owned()))
            }
        };
        if let Some(failed) = self.cascade().await? {
            blocked = Some(failed);
        }
        Ok(blocked)
    }

    /// Adapts the record if the stages of the resource have changed.
    fn follow_stages(&mut self) -> Result<(), Halt> {
        let desired = &self.subject.wanted.desired.stage;
        if self.stages.index(desired).is_none() {
            let message = format!("\"{desired}\" is no stage of \"{}\"", self.subject.name);
            return Err(Halt::failed(Error::permanent("no-step", message)));
        }
        let record = &mut self.kept.record;
        if record.stages != self.stages {
            record.stages = self.stages.clone();
            for stage in [&mut record.own, &mut record.stage, &mut record.goal] {
                if self.stages.index(stage).is_none() {
                    *stage = self.stages.first().clone();
                }
            }
            record.current = None;
        }
        Ok(())
    }

    /// Forgets failures if the controller has forgotten them, as after an edit, a refresh or a manual retry.
    fn forget_failures(&mut self) {
        let row = self.context.row();
        let Some(last) = row.last_run.as_ref().filter(|last| last.failed) else {
            return;
        };
        let record = &mut self.kept.record;
        if row.attempts > 0 || record.forgotten == Some(last.state_version) {
            return;
        }
        let has_failed = record.failure.is_some()
            || record
                .current
                .as_ref()
                .is_some_and(|current| current.attempts.count > 0);
        if has_failed {
            record.forgotten = Some(last.state_version);
            record.failure = None;
            if let Some(current) = &mut record.current {
                current.attempts = current.attempts.succeeded();
                current.error = None;
            }
        }
    }

    /// Returns the reason why no step upwards is taken, if there is one.
    fn refusal(&self) -> Option<Error> {
        let bad_window = || {
            let bad = self.bad_window.as_ref()?;
            Some(Error::permanent("bad-window", bad.to_string()))
        };
        self.refused.clone().or_else(bad_window)
    }

    fn now(&self) -> Timestamp {
        self.context.now()
    }

    /// Returns the desired stage, as set by the spec or by an event since.
    fn desired(&self) -> &Stage {
        self.kept.record.desired(&self.subject.wanted.desired)
    }

    fn wish(&self) -> Wish<'_> {
        let desired = &self.subject.wanted.desired;
        Wish {
            stages: &self.stages,
            desired: self.desired(),
            window: self.kept.record.window.as_ref(),
            allowed: desired.allowed,
            cleanup_by: desired.cleanup_by,
        }
    }

    /// Returns the present goal, and drops the step and the failure of another goal.
    fn aim(&mut self) -> Goal {
        let goal = self.wish().goal(self.now());
        let record = &mut self.kept.record;
        if !record.is_on_the_way_to(&goal) {
            // An attempt that was cut off may have had its effect.
            let cut_off = record.current.take();
            record.claimed |= cut_off.is_some_and(|current| current.under_way);
        }
        if record
            .failure
            .as_ref()
            .is_some_and(|failure| failure.goal != goal.stage || goal.force)
        {
            record.failure = None;
        }
        record.goal = goal.stage.clone();
        goal
    }

    fn view(&self, goal: &Goal, cancellation: CancellationToken) -> View<M> {
        let record = &self.kept.record;
        let current = record.current.as_ref();
        View {
            name: self.subject.name.clone(),
            uid: self.subject.uid,
            epoch: self.context.epoch(),
            now: self.now(),
            wanted: self.subject.wanted.clone(),
            desired: self.desired().clone(),
            stages: self.stages.clone(),
            stage: record.own.clone(),
            details: self.kept.details.clone(),
            reported: std::sync::Mutex::default(),
            window: record.window,
            refs: self.context.refs().into(),
            owned: self.context.owned().into(),
            event: self.event.clone(),
            action: current.map_or_else(String::new, |current| current.action.clone()),
            attempt: current.map_or(1, |current| current.attempts.count.saturating_add(1)),
            force: goal.force,
            cancellation,
        }
    }

    /// Records a change of the own stage.
    fn move_to(&mut self, to: &Stage, reason: Reason, detail: impl Into<String>) {
        let at = self.now();
        let record = &mut self.kept.record;
        let from = std::mem::replace(&mut record.own, to.clone());
        let transition = Transition {
            from,
            to: to.clone(),
            at,
            reason,
            detail: detail.into(),
            invocation: self.context.invocation(),
            epoch: self.context.epoch().0,
        };
        push(&mut record.transitions, transition);
        if self.stages.is_nothing(to) {
            self.kept.details = None;
        }
    }

    /// Writes the state if it differs from the stored one.
    async fn save(&mut self) -> Result<(), SetStateError> {
        if self.saved.as_ref() != Some(&self.kept) {
            self.context.set_state(&self.kept).await?;
            self.saved = Some(self.kept.clone());
        }
        Ok(())
    }

    fn wake_at(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }

    /// Returns the time of the next look: the time that the pass asked for, or the next boundary of the window; none
    /// without either.
    fn next_look(&self) -> Option<Timestamp> {
        let now = self.now();
        let boundary = self.wish().next_boundary(now);
        let recurring = match &self.plan {
            Some(plan @ Plan::Recurring(_)) => plan.next_boundary(now),
            _ => None,
        };
        [self.wake, boundary, recurring].into_iter().flatten().min()
    }

    /// Returns the wait until the time that the pass asked for. Boundaries of the window are left out, since they are
    /// times of day.
    fn wait(&self) -> Option<Duration> {
        let left = self.wake?.0.saturating_sub(self.now().0);
        Some(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
    }

    fn with_next_look(&self, mut error: Error) -> Error {
        (error.retrigger, error.requeue_after) = (self.next_look(), self.wait());
        error
    }

    async fn end(&mut self, blocked: Option<Blocked>) -> Result<Outcome, Error> {
        self.end_events();
        self.save().await?;
        if let Some(Blocked::Fails(error)) = blocked {
            return Err(self.with_next_look(error));
        }
        if let Some(refusal) = self.refusal().filter(|_| !self.subject.is_alone) {
            return Err(self.with_next_look(refusal));
        }
        let outcome = Outcome {
            retrigger: self.next_look(),
            requeue_after: self.wait(),
            ..Outcome::from_work(self.work)
        };
        Ok(match self.why_unready(blocked) {
            Some(why) => outcome.unready(why),
            None => outcome,
        })
    }

    /// Returns the reason why the resource is not ready, if so. The text has no times, so that equal findings give
    /// equal texts.
    fn why_unready(&self, blocked: Option<Blocked>) -> Option<Arc<str>> {
        let (record, desired) = (&self.kept.record, self.desired());
        let is_there = !self.stages.is_before(&record.stage, desired) && record.stage != *self.stages.last();
        // What its owner has taken down is where it should be.
        let is_unwanted = self.subject.wanted.desired.allowed == Allowed::Gone;
        let is_down = is_unwanted && self.stages.is_nothing(&record.stage);
        if let Some(degraded) = &self.degraded {
            return Some(format!("it is degraded: {degraded}").into());
        }
        if is_there || is_down || record.stage == *desired {
            return None;
        }
        let mut why = format!("it is {}, not yet {desired}", record.stage);
        if let Some(Blocked::Waits(reason)) = blocked {
            why = format!("{why}: {reason}");
        } else if let Some(window) = &record.window {
            why = format!("{why}: its window is {}", phase_name(window.phase(self.now())));
        }
        Some(why.into())
    }
}

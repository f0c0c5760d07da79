//! An attempt of an action: its record, its execution and its result.

use std::sync::Arc;
use std::time::Duration;

use watershed_controller::reconciler::{CancellationToken, ErrorKind};
use watershed_controller::{Error, Reconciler, RetryPolicy};

use super::{Blocked, Halt, Pass, STEP_FAILED, failed};
use crate::goal::Goal;
use crate::manager::{Done, Manager};
use crate::pipeline::{Action, Ending, Step, Tries};
use crate::record::{Awaiting, Failure, ManagedState};
use crate::stages::Stage;

/// The longest time between two looks at the clock while a step runs, since the clock may jump.
const CLOCK_EVERY: Duration = Duration::from_secs(10);
/// The longest time that one attempt with force may take.
const FORCE_TIMEOUT: Duration = Duration::from_secs(30);
/// The wait after the first failure with force; doubled after each further failure, up to [`FORCE_CAP`].
const FORCE_BASE: Duration = Duration::from_secs(10);
/// The longest wait between attempts with force.
const FORCE_CAP: Duration = Duration::from_secs(300);

/// The result of an attempt, for the step.
pub(super) enum Tried {
    /// The action needs no further attempts.
    Finished(Ending),
    /// The resource reached a different stage than the step leads to.
    Elsewhere(Stage),
    /// The goal has changed, so the step no longer serves it.
    GoalChanged,
    /// The action continues later.
    Blocked(Blocked),
}

/// The way in which an attempt ended.
enum End<D> {
    /// The manager returned a result, and the details that the action reported, if any.
    Returned(Result<Done, Error>, Option<Arc<D>>),
    TimedOut,
    GoalChanged,
}

impl<M: Manager, R: Reconciler<State = ManagedState<M::Details>>> Pass<'_, M, R> {
    /// Performs an action, unless it has to wait.
    pub(super) async fn attempt(&mut self, step: &Step, action: &Action, goal: &Goal) -> Result<Tried, Halt> {
        let tries = self.tries(action, goal);
        if let Some(early) = self.not_now(action, tries, goal) {
            return Ok(early);
        }
        // Stored before it runs. An attempt that was cut off is repeated with its number, and is stored already.
        if let Some(current) = &mut self.kept.record.current {
            current.under_way = true;
            current.resume_at = None;
        }
        self.save().await?;
        self.context.committed().await?;
        let end = self.perform(step, tries.timeout, goal).await?;
        self.work = watershed_controller::Work::Built;
        Ok(match end {
            End::GoalChanged => Tried::GoalChanged,
            End::TimedOut => {
                let message = format!("{} took longer than {:?}", action.name, tries.timeout);
                self.fail(action, tries, Error::transient(STEP_FAILED, message), goal)
            }
            End::Returned(Err(error), _) => self.fail(action, tries, error, goal),
            End::Returned(Ok(done), reported) => {
                if reported.is_some() {
                    self.kept.details = reported;
                }
                self.succeed(step, done)
            }
        })
    }

    fn tries(&self, action: &Action, goal: &Goal) -> Tries {
        let stated = action.tries.unwrap_or_else(|| self.manager.policy().tries);
        if goal.force {
            return Tries {
                timeout: FORCE_TIMEOUT,
                attempts: u32::MAX,
                base: FORCE_BASE,
                cap: FORCE_CAP,
            };
        }
        stated
    }

    /// Returns the result for an action that is not performed now, because it waits or has ended by an event or a
    /// deadline; none if it is to be performed.
    fn not_now(&mut self, action: &Action, tries: Tries, goal: &Goal) -> Option<Tried> {
        let now = self.now();
        let current = self.kept.record.current.as_mut()?;
        if current.action != action.name {
            current.begin(&action.name);
            return None;
        }
        current.follow_clock(now);
        if let Some(awaiting) = current.awaiting.clone() {
            if self.take_event(&awaiting.event) {
                return Some(Tried::Finished(Ending::Done));
            }
            if awaiting.until <= now {
                let message = format!("no event \"{}\" came in time", awaiting.event.kind);
                return Some(self.fail(action, tries, Error::transient("await-timeout", message), goal));
            }
            self.wake_at(awaiting.until);
            let why = format!("it waits for an event \"{}\"", awaiting.event.kind);
            return Some(Tried::Blocked(Blocked::Waits(why)));
        }
        if let Some(at) = current.resume_at.filter(|at| *at > now) {
            self.wake_at(at);
            let why = format!("{} is not finished", action.name);
            return Some(Tried::Blocked(Blocked::Waits(why)));
        }
        // A request may come early: it neither spends an attempt nor shortens the wait.
        if !current.attempts.is_due(now) && !current.attempts.is_used_up() {
            let wait = current.attempts.wait(now);
            let message = current.error.clone().unwrap_or_else(|| "it has failed".into());
            if let Some(at) = current.attempts.next {
                self.wake_at(at);
            }
            let mut error = Error::transient(STEP_FAILED, message);
            error.retry_after = wait;
            return Some(Tried::Blocked(Blocked::Fails(error)));
        }
        None
    }

    /// Runs an attempt until it returns, its timeout ends, or the goal changes.
    async fn perform(&self, step: &Step, timeout: Duration, goal: &Goal) -> Result<End<M::Details>, Halt> {
        let stop = CancellationToken::new();
        let _stops_at_the_end = stop.clone().drop_guard();
        let view = self.view(goal, stop);
        let act = self.manager.act(&view, step);
        tokio::pin!(act);
        let mut left = timeout;
        loop {
            let now = self.now();
            let change = self.wish().next_change(now);
            let until_change = change.map_or(CLOCK_EVERY, |at| {
                Duration::from_millis(u64::try_from(at.0.saturating_sub(now.0)).unwrap_or(0))
            });
            let pause = left.min(until_change).min(CLOCK_EVERY);
            tokio::select! {
                biased;
                () = self.context.cancellation().cancelled() => return Err(Halt::Cancelled),
                returned = &mut act => return Ok(End::Returned(returned, view.take_reported())),
                () = tokio::time::sleep(pause) => {}
            }
            left = left.saturating_sub(pause);
            if self.wish().goal(self.now()) != *goal {
                return Ok(End::GoalChanged);
            }
            if left.is_zero() {
                return Ok(End::TimedOut);
            }
        }
    }

    fn succeed(&mut self, step: &Step, done: Done) -> Tried {
        let now = self.now();
        match done {
            Done::At(stage) if stage == step.to => Tried::Finished(Ending::Done),
            Done::At(stage) if self.stages.index(&stage).is_some() => Tried::Elsewhere(stage),
            Done::At(stage) => {
                let message = format!("the step ended at \"{stage}\", which is no stage of it");
                Tried::Blocked(Blocked::Fails(Error::permanent("bad-answer", message)))
            }
            Done::Skipped(why) => Tried::Finished(Ending::Skipped(why)),
            Done::RequeueAfter(wait) => {
                let at = now.after(wait);
                if let Some(current) = &mut self.kept.record.current {
                    (current.waits_since, current.resume_at) = (Some(now), Some(at));
                }
                self.wake_at(at);
                Tried::Blocked(Blocked::Waits(format!("the step to {} is not finished", step.to)))
            }
            Done::Await { event, until } => {
                // The result may have come before the answer that says what to wait for.
                if self.take_event(&event) {
                    return Tried::Finished(Ending::Done);
                }
                let why = format!("it waits for an event \"{}\"", event.kind);
                if let Some(current) = &mut self.kept.record.current {
                    current.waits_since = Some(now);
                    current.awaiting = Some(Awaiting { event, until });
                }
                self.wake_at(until);
                Tried::Blocked(Blocked::Waits(why))
            }
        }
    }

    /// Records a failed attempt, and returns its result for the step.
    fn fail(&mut self, action: &Action, tries: Tries, error: Error, goal: &Goal) -> Tried {
        let now = self.now();
        let Some(current) = &mut self.kept.record.current else {
            return Tried::GoalChanged;
        };
        let policy = RetryPolicy::Backoff {
            base: tries.base,
            cap: tries.cap,
            attempts: tries.attempts,
            reset_after: Duration::ZERO,
        };
        let mut attempts = current.attempts.failed(now, policy);
        if error.kind == ErrorKind::Permanent && !goal.force {
            attempts.next = None;
        } else if let (Some(_), Some(wait)) = (attempts.next, error.retry_after) {
            attempts.next = Some(now.after(wait));
        }
        current.attempts = attempts;
        current.under_way = false;
        current.awaiting = None;
        let prefix = if goal.force { "overdue: " } else { "" };
        let message = format!("{prefix}{}: {}", action.name, error.message);
        current.error = Some(message.as_str().into());
        if attempts.is_used_up() && action.optional {
            return Tried::Finished(Ending::GivenUp(error.message.to_string()));
        }
        let code = if &*error.code == "await-timeout" {
            "await-timeout"
        } else {
            STEP_FAILED
        };
        if attempts.is_used_up() {
            let failure = Failure {
                code: STEP_FAILED.into(),
                message: message.into(),
                goal: goal.stage.clone(),
                at: now,
            };
            let blocked = Blocked::Fails(Error {
                code: code.into(),
                ..failed(&failure)
            });
            self.kept.record.failure = Some(failure);
            return Tried::Blocked(blocked);
        }
        if let Some(at) = attempts.next {
            self.wake_at(at);
        }
        let mut stored = Error::transient(code, message);
        stored.retry_after = attempts.wait(now);
        Tried::Blocked(Blocked::Fails(stored))
    }
}

//! The steps of a pass: the choice of the next one, its obstacles, and its actions.

use watershed_controller::reconciler::RefView;
use watershed_controller::resource::{Required, Row};
use watershed_controller::{Error, Reconciler, Work};

use super::act::Tried;
use super::{Blocked, Halt, Pass, STEP_FAILED, STEPS_MAX, failed};
use crate::cascade::Seat;
use crate::goal::Goal;
use crate::manager::Manager;
use crate::pipeline::{Ending, Finished, Next, Step};
use crate::record::{Current, ManagedState};
use crate::stages::Stage;
use crate::transition::Reason;

/// The result of a step, for now.
enum Taken {
    /// The own stage or the goal has changed.
    Moved,
    /// The step continues later.
    Blocked(Blocked),
}

impl<M: Manager, R: Reconciler<State = ManagedState<M::Details>>> Pass<'_, M, R> {
    /// Takes steps until the goal is reached or an obstacle stops them.
    pub(super) async fn steps(&mut self) -> Result<Option<Blocked>, Halt> {
        let work_before = self.work;
        let mut blocked = None;
        let mut goal = self.aim();
        for _ in 0..STEPS_MAX {
            goal = self.aim();
            if self.has_cut_off_all(&goal) {
                // A look finds out whether there is something after all, and a second one believes that there is not.
                self.wake_at(self.now());
                let why = "it looks at what a step that was cut off has left".to_owned();
                return Ok(Some(Blocked::Waits(why)));
            }
            self.turn_round(&goal);
            let Some(step) = self.next_step(&goal)? else {
                self.arrive_for_good();
                blocked = None;
                break;
            };
            blocked = match self.obstacle(&step, &goal) {
                Some(obstacle) => Some(obstacle),
                None => match self.take(&step, &goal).await? {
                    Taken::Moved => None,
                    Taken::Blocked(blocked) => Some(blocked),
                },
            };
            if blocked.is_some() {
                break;
            }
            // Steps that go round in circles go on later, when others had their turn.
            blocked = Some(Blocked::Waits("it has taken many steps".to_owned()));
        }
        if matches!(&blocked, Some(Blocked::Waits(why)) if why == "it has taken many steps") {
            self.wake_at(self.now());
        }
        if self.work != work_before {
            self.look_back(&goal).await?;
        }
        Ok(blocked)
    }

    /// Returns true if a step was interrupted before anything existed, and removal is the goal now.
    fn has_cut_off_all(&self, goal: &Goal) -> bool {
        let record = &self.kept.record;
        record.claimed && record.own == *self.stages.first() && goal.stage == *self.stages.last()
    }

    /// Records that nothing is left to do for this goal.
    fn arrive_for_good(&mut self) {
        let refreshes = self.context.refreshes().plain;
        let record = &mut self.kept.record;
        record.current = None;
        if record
            .failure
            .as_ref()
            .is_some_and(|failure| &*failure.code == STEP_FAILED)
        {
            record.failure = None;
        }
        // Of nothing there is no last step to repeat.
        record.refreshed = refreshes;
    }

    /// Returns the next step towards the goal, or the last step again if a refresh asks for it; none if nothing is left
    /// to do.
    fn next_step(&self, goal: &Goal) -> Result<Option<Step>, Halt> {
        let own = &self.kept.record.own;
        let mut view = self.view(goal, self.context.cancellation().clone());
        let is_there = *own == goal.stage;
        let step = if !is_there {
            self.manager.next(&view, &goal.stage)
        } else if self.is_to_be_repeated() {
            let before = self.stages.index(own).and_then(|at| at.checked_sub(1));
            view.stage = before
                .and_then(|at| self.stages.list().get(at))
                .map_or_else(|| own.clone(), Stage::clone);
            self.manager.next(&view, own).filter(|step| step.to == *own)
        } else {
            None
        };
        match step {
            Some(step) if self.stages.index(&step.to).is_none() || step.actions.is_empty() => {
                let message = format!("the step to \"{}\" is none of this lifecycle", step.to);
                Err(Halt::failed(Error::permanent("no-step", message)))
            }
            None if !is_there => {
                let message = format!("there is no step from \"{own}\" towards \"{}\"", goal.stage);
                Err(Halt::failed(Error::permanent("no-step", message)))
            }
            step => Ok(step),
        }
    }

    fn is_to_be_repeated(&self) -> bool {
        let record = &self.kept.record;
        self.context.refreshes().plain > record.refreshed && !self.stages.is_nothing(&record.own)
    }

    /// Returns the obstacle to a step, if there is one.
    fn obstacle(&self, step: &Step, goal: &Goal) -> Option<Blocked> {
        let record = &self.kept.record;
        if let Some(failure) = &record.failure {
            let is_own = &*failure.code == STEP_FAILED;
            if is_own || !self.stages.is_nothing(&goal.stage) {
                return Some(Blocked::Fails(failed(failure)));
            }
        }
        let last = self.stages.last();
        let is_up = step.to != *last && !self.stages.is_before(&step.to, &record.own);
        if is_up {
            if let Some(refusal) = self.refusal() {
                return Some(Blocked::Fails(refusal));
            }
            let waits = |view: &&RefView| view.reference.required != Required::Exists && !is_ready(view);
            let missing = self.context.refs().iter().find(waits);
            return missing.map(|view| Blocked::Waits(format!("it waits for {}", view.reference)));
        }
        if goal.force || self.subject.is_alone {
            return None;
        }
        let is_removed = step.to == *last;
        let is_beyond_early = self.stages.is_before(self.stages.early(), &step.to);
        let is_done = |seat: &Seat<'_>| match is_removed {
            true => seat.is_down(),
            false => is_beyond_early || !seat.is_beyond_early(),
        };
        let seats = self.seats();
        let waits_for = seats.iter().find(|seat| !is_done(seat));
        waits_for.map(|seat| Blocked::Waits(format!("it waits for its part \"{}\"", seat.name)))
    }

    /// Performs the rest of a step.
    async fn take(&mut self, step: &Step, goal: &Goal) -> Result<Taken, Halt> {
        let record = &mut self.kept.record;
        if record
            .current
            .as_ref()
            .is_none_or(|current| current.to != step.to)
        {
            record.current = Some(Current::new(step, goal));
        }
        loop {
            let finished = match &self.kept.record.current {
                Some(current) => current.finished.clone(),
                None => return Ok(Taken::Moved),
            };
            match step.next(&finished) {
                Next::Arrived => {
                    self.arrive(step, &finished);
                    return Ok(Taken::Moved);
                }
                Next::Stuck => {
                    let message = format!("the actions of the step to \"{}\" need one another", step.to);
                    return Err(Halt::failed(Error::permanent("no-step", message)));
                }
                Next::Skip(action, why) => self.finish(&action.name, Ending::Skipped(why)),
                Next::Act(action) => match self.attempt(step, action, goal).await? {
                    Tried::Finished(ending) => self.finish(&action.name, ending),
                    Tried::Elsewhere(stage) => {
                        self.kept.record.current = None;
                        self.kept.record.claimed = true;
                        self.move_to(&stage, Reason::Step, "");
                        return Ok(Taken::Moved);
                    }
                    Tried::GoalChanged => return Ok(Taken::Moved),
                    Tried::Blocked(blocked) => return Ok(Taken::Blocked(blocked)),
                },
            }
        }
    }

    fn finish(&mut self, action: &str, ending: Ending) {
        if let Some(current) = &mut self.kept.record.current {
            current.finished.push(Finished {
                action: action.to_owned(),
                ending,
            });
            current.begin("");
        }
    }

    /// Records that the stage of a step is reached, since all its actions are finished.
    fn arrive(&mut self, step: &Step, finished: &[Finished]) {
        self.work = Work::Built;
        let record = &mut self.kept.record;
        record.current = None;
        record.claimed = true;
        record.absent_since = None;
        record.refreshed = self.context.refreshes().plain;
        if record.own == step.to {
            return; // It was a repetition.
        }
        let left_out: Vec<String> = finished.iter().filter_map(left_out).collect();
        let all = left_out.len() == finished.len();
        let reason = if all { Reason::Skipped } else { Reason::Step };
        self.move_to(&step.to, reason, left_out.join("; "));
    }
}

fn left_out(finished: &Finished) -> Option<String> {
    match &finished.ending {
        Ending::Done => None,
        Ending::Skipped(why) => Some(format!("{} left out: {why}", finished.action)),
        Ending::GivenUp(why) => Some(format!("{} given up: {why}", finished.action)),
    }
}

/// Returns true if the target of a reference is ready: its last run succeeded with its present spec.
fn is_ready(view: &RefView) -> bool {
    let has_settled = |row: &Row| {
        let seen = row.last_run.as_ref().and_then(|last| last.seen.as_ref());
        row.unready.is_none() && seen.is_some_and(|seen| seen.spec_version == row.spec_version)
    };
    !view.failed && view.target.as_deref().is_some_and(has_settled)
}

//! Looks at the thing outside, whose result takes precedence over the record.

use watershed_controller::reconciler::CancellationToken;
use watershed_controller::{Error, Reconciler};
use watershed_schedule::Phase;

use super::{CONFIRM_AFTER, Halt, Pass};
use crate::goal::Goal;
use crate::manager::{Manager, Observation};
use crate::record::ManagedState;
use crate::stages::Stage;
use crate::transition::Reason;

/// The result of a look, for the pass.
pub(super) enum Sight {
    /// The record agrees with the look, so the pass continues.
    Clear,
    /// The thing was not found, and another look must confirm that.
    Unconfirmed,
}

impl<M: Manager, R: Reconciler<State = ManagedState<M::Details>>> Pass<'_, M, R> {
    /// Looks at the thing outside, and takes the result over into the record.
    pub(super) async fn look(&mut self, goal: &Goal) -> Result<Sight, Halt> {
        match self.observe(goal).await? {
            Ok(Observation::At(stage, details)) => {
                if self.stages.index(&stage).is_none() {
                    let message = format!("\"{stage}\" was observed, which is no stage of it");
                    return Err(Halt::failed(Error::permanent("bad-answer", message)));
                }
                if self.stages.is_nothing(&stage) {
                    return Ok(self.miss(goal));
                }
                self.kept.record.absent_since = None;
                self.kept.record.claimed = false;
                self.see(&stage);
                self.keep(details);
                Ok(Sight::Clear)
            }
            Ok(Observation::Absent) => Ok(self.miss(goal)),
            // After the deadline what is stored has to do: steps with force are harmless where there is nothing.
            Ok(Observation::Unclear(_)) | Err(_) if goal.force => Ok(Sight::Clear),
            Ok(Observation::Unclear(why)) => Err(Halt::failed(Error::transient("observe-unclear", why))),
            // The manager refuses to look for the reason why it builds nothing: another attempt ends alike.
            Err(error)
                if self
                    .refused
                    .as_ref()
                    .is_some_and(|refused| refused.code == error.code) =>
            {
                Err(Halt::failed(error))
            }
            Err(error) => Err(Halt::failed(Error {
                code: "observe-unclear".into(),
                kind: watershed_controller::reconciler::ErrorKind::Transient,
                ..error
            })),
        }
    }

    /// Looks again after steps, to update the details. If this look does not confirm the steps, another one follows
    /// soon.
    pub(super) async fn look_back(&mut self, goal: &Goal) -> Result<(), Halt> {
        let is_nothing = self.stages.is_nothing(&self.kept.record.own);
        match self.observe(goal).await? {
            Ok(Observation::At(stage, details)) if stage == self.kept.record.own => {
                self.kept.record.claimed = false;
                self.keep(details);
            }
            Ok(Observation::Absent) if is_nothing => self.kept.record.claimed = false,
            _ => {
                let again = self.now().after(CONFIRM_AFTER);
                self.wake_at(again);
            }
        }
        Ok(())
    }

    async fn observe(&self, goal: &Goal) -> Result<Result<Observation<M::Details>, Error>, Halt> {
        let stop = CancellationToken::new();
        let _stops_at_the_end = stop.clone().drop_guard();
        let view = self.view(goal, stop);
        let timeout = self.manager.policy().tries.timeout;
        tokio::select! {
            biased;
            () = self.context.cancellation().cancelled() => Err(Halt::Cancelled),
            seen = tokio::time::timeout(timeout, self.manager.observe(&view)) => {
                Ok(match seen {
                    Ok(seen) => seen,
                    Err(_) => Ok(Observation::Unclear("the look timed out".to_owned())),
                })
            }
        }
    }

    fn keep(&mut self, details: M::Details) {
        if self.kept.details.as_deref() != Some(&details) {
            self.kept.details = Some(details.into());
        }
    }

    /// Records that the thing was seen at this stage.
    fn see(&mut self, stage: &Stage) {
        let record = &self.kept.record;
        if *stage == record.own {
            return;
        }
        // Of a pipeline that is not finished the stage may show before its last action is done.
        let is_half_done = record.current.as_ref().is_some_and(|current| {
            current.to == *stage && (!current.finished.is_empty() || current.action != current.to.as_str())
        });
        if !is_half_done {
            self.kept.record.current = None;
            self.move_to(stage, Reason::Observed, "");
        }
    }

    /// Records that the thing was not found. Two looks are needed to believe so, unless nothing was expected.
    fn miss(&mut self, goal: &Goal) -> Sight {
        let now = self.now();
        let record = &mut self.kept.record;
        let is_nothing = self.stages.is_nothing(&record.own);
        if is_nothing && !record.claimed {
            record.absent_since = None;
            return Sight::Clear;
        }
        let since = *record.absent_since.get_or_insert(now);
        let confirmed_at = since.after(CONFIRM_AFTER);
        // A clock that went back would have it wait for long.
        if now < confirmed_at && since <= now {
            self.wake_at(confirmed_at);
            return Sight::Unconfirmed;
        }
        record.absent_since = None;
        record.claimed = false;
        if is_nothing {
            return Sight::Clear;
        }
        record.current = None;
        let is_over = goal.stage == *self.stages.last();
        let to = if is_over {
            self.stages.last()
        } else {
            self.stages.first()
        };
        self.move_to(&to.clone(), Reason::Vanished, "");
        Sight::Clear
    }

    /// Moves an absent resource from one end of its stages to the other, if the goal is there.
    pub(super) fn turn_round(&mut self, goal: &Goal) {
        let own = &self.kept.record.own;
        if !self.stages.is_nothing(own) || *own == goal.stage {
            return;
        }
        if *own == *self.stages.last() {
            self.move_to(&self.stages.first().clone(), Reason::Restarted, "");
        } else if goal.stage == *self.stages.last() {
            let phase = self.kept.record.window.map(|window| window.phase(self.now()));
            let is_over = phase.is_some_and(|phase| phase >= Phase::Teardown);
            let was_wanted = self.desired() != self.stages.last();
            let reason = if is_over && was_wanted {
                Reason::Missed
            } else {
                Reason::NothingLeft
            };
            self.move_to(&goal.stage, reason, "");
        }
    }
}

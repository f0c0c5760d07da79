//! Calls of callers and invocations.

use std::sync::Arc;

use super::Core;
use super::applying::Applying;
use crate::batch::door;
use crate::batch::plan::plan;
use crate::graph::resource::{Cancelled, Life};
use crate::types::index::Slot;
use crate::{
    Answer, Applied, Batch, Call, CallId, Cause, Effect, InvocationId, Reason, Refusal, StateVersion, Target,
    Trigger,
};

impl Core {
    pub(super) fn call(&mut self, id: CallId, by: Option<InvocationId>, call: Call) {
        let (origin, call) = call.unnamed();
        let core = self;
        let mut calling = Calling { core, id, by, origin };
        let answer = calling
            .take(call)
            .unwrap_or_else(|refusal| Some(Answer::Refused(refusal)));
        if let Some(answer) = answer {
            calling.core.answer(id, answer);
        }
    }
}

/// A call that is being handled.
struct Calling<'a> {
    core: &'a mut Core,
    id: CallId,
    /// Invocation that makes the call; none for callers outside.
    by: Option<InvocationId>,
    /// Name of the caller outside; none if the caller gave none.
    origin: Option<Arc<str>>,
}

impl Calling<'_> {
    /// Handles a call; returns its answer, unless that comes later.
    fn take(&mut self, call: Call) -> Result<Option<Answer>, Refusal> {
        // Invocations that return within the grace may still store what they achieved.
        if !self.core.is_serving() && !matches!(call, Call::WriteState { .. }) {
            return Err(Refusal::ShuttingDown);
        }
        if let Call::WriteState { state, expected } = call {
            return self
                .write_state(state, expected)
                .map(|version| Some(Answer::StateWritten(version)));
        }
        let (own, cause) = self.caller()?;
        match call {
            Call::Apply(batch) => self
                .apply(&batch, own, &cause)
                .map(|applied| Some(Answer::Applied(applied))),
            Call::ApplyAndAwait(batch) => {
                let applied = self.apply(&batch, own, &cause)?;
                self.await_batch(applied);
                Ok(None)
            }
            Call::Await(applied) => {
                self.await_batch(applied);
                Ok(None)
            }
            Call::Reconcile(target) => {
                let slot = self.core.graph.resolve(&target)?;
                Ok(self.request(slot, Trigger::Requested, cause))
            }
            Call::Refresh { target, full } => {
                let slot = self.core.graph.resolve(&target)?;
                self.refuse_unreadable(slot)?;
                self.core.write(slot, |row| {
                    if full {
                        row.refreshes.full += 1
                    } else {
                        row.refreshes.plain += 1
                    }
                });
                // The run that it asks for compares these counters with those of the last run, so they must be durable
                // first.
                self.core.graph[slot].hold_until(self.core.journal.revision());
                Ok(self.request(slot, Trigger::Refresh, cause))
            }
            Call::Nudge(target) => {
                let slot = self.core.graph.resolve(&target)?;
                self.core.nudge(slot);
                Ok(Some(Answer::Done))
            }
            Call::NudgeAll => {
                self.core.nudge_what_is_due_soon();
                Ok(Some(Answer::Done))
            }
            Call::Cancel(target) => {
                // The name of what is being deleted may be another's by now.
                let slot = match target {
                    Target::Uid(_) => self.core.graph.resolve_with_deleted(&target)?,
                    Target::Key(_) | Target::Name(_) => self.core.graph.resolve(&target)?,
                };
                self.cancel(slot);
                Ok(Some(Answer::Done))
            }
            Call::Retry(target) => {
                let slot = self.core.graph.resolve_with_deleted(&target)?;
                let reason = self.reason(Trigger::Retry, cause);
                self.core.retry_by_hand(slot, reason);
                Ok(Some(Answer::Done))
            }
            Call::Pause(target) => {
                let slot = self.core.graph.resolve(&target)?;
                self.refuse_unreadable(slot)?;
                self.core.pause(slot);
                Ok(Some(Answer::Done))
            }
            Call::Resume(target) => {
                let slot = self.core.graph.resolve(&target)?;
                self.refuse_unreadable(slot)?;
                let reason = self.reason(Trigger::Recovered, cause);
                self.core.resume(slot, reason);
                Ok(Some(Answer::Done))
            }
            Call::ReconcileOnce(target) => {
                let slot = self.core.graph.resolve(&target)?;
                if self.core.graph[slot].row().paused {
                    self.core.graph[slot].set_forced(true);
                }
                Ok(self.request(slot, Trigger::Requested, cause))
            }
            Call::Explain(target) => {
                let explanation = self.core.explain(&target)?;
                // It speaks of this moment, committed or not, and waits for nothing.
                self.core.out.push(Effect::Answer {
                    call: self.id,
                    answer: Answer::Explained(Box::new(explanation)),
                });
                Ok(None)
            }
            Call::Check(stored) => {
                let checked = self.core.check_against(stored.as_deref());
                self.core.out.push(Effect::Answer {
                    call: self.id,
                    answer: Answer::Checked(Box::new(checked)),
                });
                Ok(None)
            }
            Call::WaitUntilIdle if self.by.is_some() => Err(Refusal::FromInside),
            Call::WaitUntilIdle => {
                self.core.waiters.wait_until_idle(self.id);
                Ok(None)
            }
            // Handled before.
            Call::WriteState { .. } | Call::By { .. } => Ok(None),
        }
    }

    /// Returns the reason of a request that this call makes.
    fn reason(&self, trigger: Trigger, cause: Cause) -> Reason {
        Reason {
            origin: self.origin.clone(),
            ..Reason::because(trigger, cause)
        }
    }

    fn refuse_unreadable(&self, slot: Slot) -> Result<(), Refusal> {
        match self.core.graph[slot].unreadable() {
            Some(_) => Err(Refusal::Unreadable(self.core.graph[slot].row().key())),
            None => Ok(()),
        }
    }

    /// Returns the calling resource, if an invocation makes the call, and the cause to record.
    fn caller(&self) -> Result<(Option<Slot>, Cause), Refusal> {
        let Some(invocation) = self.by else {
            return Ok((None, Cause::Call(self.id)));
        };
        let slot = self
            .core
            .graph
            .run(invocation)
            .ok_or(Refusal::InvocationCancelled)?;
        let resource = &self.core.graph[slot];
        let cancelled = resource.run().is_none_or(|run| run.cancelled() != Cancelled::No);
        // Its calls would speak for a spec that is no longer wanted (C8).
        if cancelled || resource.life() == Life::Gone {
            return Err(Refusal::InvocationCancelled);
        }
        Ok((
            Some(slot),
            Cause::Invocation {
                uid: resource.row().uid,
                key: resource.row().key(),
            },
        ))
    }

    /// Requests a resource for a caller (request 4); an invocation's own call is only recorded, as it may not wait.
    fn request(&mut self, slot: Slot, why: Trigger, cause: Cause) -> Option<Answer> {
        // Its own reason goes into the chain, so that a request made by code can be followed to the edit behind it.
        let caller = self.by.and_then(|by| self.core.graph.run(by));
        let reason = self
            .reason(why, cause)
            .after(self.core.graph.reason_of_run(caller));
        self.core.request(slot, &Arc::new(reason));
        self.core
            .answer(self.id, Answer::Recorded(self.core.graph[slot].row().uid));
        if self.by.is_none() {
            self.core.open_handle(self.id, slot);
        }
        None
    }

    /// Opens the handle of a batch. An invocation gets no further answers, because it may not wait.
    fn await_batch(&mut self, applied: Applied) {
        let uids = applied.uids.clone();
        self.core.answer(self.id, Answer::Applied(applied));
        if self.by.is_none() {
            self.core.open_batch(self.id, &uids);
        }
    }

    /// Cancels a resource's running invocation, and its pending requests without affecting other resources.
    fn cancel(&mut self, slot: Slot) {
        let is_live = self.core.graph[slot].is_live();
        if let Some(pending) = self.core.graph[slot].pending_mut() {
            if !is_live {
                return; // a delete that has not begun is not given up
            }
            // Not settled here: its parents may be unsettled still, and pending is closed downwards.
            pending.cancel();
            self.core.graph.enqueue(slot);
        } else {
            self.core.cancel_run(slot, Cancelled::ByCaller);
        }
    }

    fn write_state(
        &mut self,
        state: Arc<[u8]>,
        expected: Option<StateVersion>,
    ) -> Result<StateVersion, Refusal> {
        let slot = self
            .by
            .and_then(|by| self.core.graph.run(by))
            .ok_or(Refusal::InvocationCancelled)?;
        let row = self.core.graph[slot].row();
        // From its cancel on it may still write, until it is abandoned (C8).
        let writes = self.core.graph[slot]
            .run()
            .is_some_and(|run| Some(run.invocation()) == self.by);
        if self.core.graph[slot].life() == Life::Gone || !writes {
            return Err(Refusal::InvocationCancelled);
        }
        if let Some(expected) = expected.filter(|expected| *expected != row.state_version) {
            return Err(Refusal::StaleState {
                key: row.key(),
                expected,
                found: row.state_version,
            });
        }
        let (_, format) = self.core.graph.formats(slot);
        // An equal state is no news: with another version, everything that reads this resource would run.
        if row.state.as_deref() == Some(&*state) && row.state_format == format {
            return Ok(row.state_version);
        }
        self.core.write(slot, |row| {
            row.state = Some(state);
            row.state_format = format;
            row.state_version = row.state_version.next();
        });
        Ok(self.core.graph[slot].row().state_version)
    }

    fn apply(&mut self, batch: &Batch, own: Option<Slot>, cause: &Cause) -> Result<Applied, Refusal> {
        // Both before anything changes: an edit that is refused leaves no trace.
        door::check(&self.core.graph, batch, self.core.limits.unregistered_kinds)?;
        let mut plan = plan(&self.core.graph, batch)?;
        let uids = plan.take_uids();
        plan.default_origin(&uids, self.origin.as_ref());
        Applying::carry_out(self.core, plan, own, cause);
        Ok(Applied {
            revision: self.core.journal.revision(),
            uids,
        })
    }
}

//! Calls: what callers and invocations ask for.

use std::sync::Arc;

use super::Core;
use super::applying::Applying;
use crate::batch::plan::plan;
use crate::graph::resource::{Cancelled, Life};
use crate::types::index::Slot;
use crate::{
    Answer, Applied, Batch, Call, CallId, Cause, Effect, InvocationId, Reason, Refusal, StateVersion, Why,
};

impl Core {
    pub(super) fn call(&mut self, id: CallId, by: Option<InvocationId>, call: Call) {
        let answer = self
            .take_call(id, by, call)
            .unwrap_or_else(|refusal| Some(Answer::Refused(refusal)));
        if let Some(answer) = answer {
            self.answer(id, answer);
        }
    }

    /// Carries a call out; gives back its answer, unless that comes later.
    fn take_call(
        &mut self,
        id: CallId,
        by: Option<InvocationId>,
        call: Call,
    ) -> Result<Option<Answer>, Refusal> {
        if !self.is_serving() && !matches!(call, Call::WriteState { .. }) {
            return Err(Refusal::ShuttingDown);
        }
        if let Call::WriteState { state, expected } = call {
            return self
                .write_state(by, state, expected)
                .map(|version| Some(Answer::StateWritten(version)));
        }
        let (own, cause) = self.caller(id, by)?;
        match call {
            Call::Apply(batch) => self
                .apply(&batch, own, &cause)
                .map(|applied| Some(Answer::Applied(applied))),
            Call::Reconcile(target) => {
                let slot = self.graph.resolve(&target)?;
                Ok(self.request(id, by, slot, Why::Requested, cause))
            }
            Call::Refresh { target, full } => {
                let slot = self.graph.resolve(&target)?;
                self.refuse_unreadable(slot)?;
                self.write(slot, |row| {
                    if full {
                        row.refreshes.full += 1
                    } else {
                        row.refreshes.plain += 1
                    }
                });
                self.graph[slot].hold = self.journal.revision();
                Ok(self.request(id, by, slot, Why::Refresh, cause))
            }
            Call::Nudge(target) => {
                let slot = self.graph.resolve(&target)?;
                self.nudge(slot);
                Ok(Some(Answer::Done))
            }
            Call::NudgeAll => {
                self.nudge_what_is_due_soon();
                Ok(Some(Answer::Done))
            }
            Call::Cancel(target) => {
                let slot = self.graph.resolve(&target)?;
                self.cancel(slot);
                Ok(Some(Answer::Done))
            }
            Call::Retry(target) => {
                let slot = self.graph.resolve_with_deleted(&target)?;
                self.retry_by_hand(slot, cause);
                Ok(Some(Answer::Done))
            }
            Call::Pause(target) => {
                let slot = self.graph.resolve(&target)?;
                self.refuse_unreadable(slot)?;
                self.pause(slot);
                Ok(Some(Answer::Done))
            }
            Call::Resume(target) => {
                let slot = self.graph.resolve(&target)?;
                self.refuse_unreadable(slot)?;
                self.resume(slot, cause);
                Ok(Some(Answer::Done))
            }
            Call::ReconcileOnce(target) => {
                let slot = self.graph.resolve(&target)?;
                if self.graph[slot].row.paused {
                    self.graph[slot].extra_mut().forced = true;
                }
                Ok(self.request(id, by, slot, Why::Requested, cause))
            }
            Call::Explain(target) => {
                let explanation = self.explain(&target)?;
                // It speaks of this moment, committed or not, and waits for nothing.
                self.out.push(Effect::Answer {
                    call: id,
                    answer: Answer::Explained(Box::new(explanation)),
                });
                Ok(None)
            }
            Call::Check(stored) => {
                let checked = self.check_against(stored.as_deref());
                self.out.push(Effect::Answer {
                    call: id,
                    answer: Answer::Checked(Box::new(checked)),
                });
                Ok(None)
            }
            Call::WaitUntilIdle if by.is_some() => Err(Refusal::FromInside),
            Call::WaitUntilIdle => {
                self.waiters.wait_until_idle(id);
                Ok(None)
            }
            Call::WriteState { .. } => Ok(None),
        }
    }

    fn refuse_unreadable(&self, slot: Slot) -> Result<(), Refusal> {
        match self.graph[slot].unreadable() {
            Some(_) => Err(Refusal::Unreadable(self.graph[slot].row.key())),
            None => Ok(()),
        }
    }

    /// Who calls: the resource whose invocation it is, if any, and the cause to be recorded.
    fn caller(&self, id: CallId, by: Option<InvocationId>) -> Result<(Option<Slot>, Cause), Refusal> {
        let Some(invocation) = by else {
            return Ok((None, Cause::Call(id)));
        };
        let slot = self.graph.run(invocation).ok_or(Refusal::InvocationCancelled)?;
        let resource = &self.graph[slot];
        let cancelled = resource.run().is_none_or(|run| run.cancelled != Cancelled::No);
        if cancelled || resource.life == Life::Gone {
            return Err(Refusal::InvocationCancelled);
        }
        Ok((
            Some(slot),
            Cause::Invocation {
                uid: resource.row.uid,
                key: resource.row.key(),
            },
        ))
    }

    /// Request 4. From inside an invocation it is recorded, and nothing more is answered: waiting is refused.
    fn request(
        &mut self,
        id: CallId,
        by: Option<InvocationId>,
        slot: Slot,
        why: Why,
        cause: Cause,
    ) -> Option<Answer> {
        let caller = by.and_then(|by| self.graph.run(by));
        let reason = Reason::because(why, cause).after(self.graph.reason_of_run(caller));
        self.ask(slot, &Arc::new(reason));
        self.answer(id, Answer::Recorded(self.graph[slot].row.uid));
        if by.is_none() {
            self.open_handle(id, slot);
        }
        None
    }

    /// Cancels what runs, and what is pending for this resource alone.
    fn cancel(&mut self, slot: Slot) {
        if let Some(pending) = self.graph[slot].pending_mut() {
            pending.cancelled = true;
            self.graph.enqueue(slot);
        } else {
            self.cancel_run(slot, Cancelled::ByCaller);
        }
    }

    fn write_state(
        &mut self,
        by: Option<InvocationId>,
        state: Arc<[u8]>,
        expected: Option<StateVersion>,
    ) -> Result<StateVersion, Refusal> {
        let slot = by
            .and_then(|by| self.graph.run(by))
            .ok_or(Refusal::InvocationCancelled)?;
        let row = &self.graph[slot].row;
        // From its cancel on it may still write, until it is abandoned (C8).
        let writes = self.graph[slot]
            .run()
            .is_some_and(|run| Some(run.invocation) == by);
        if self.graph[slot].life == Life::Gone || !writes {
            return Err(Refusal::InvocationCancelled);
        }
        if let Some(expected) = expected.filter(|expected| *expected != row.state_version) {
            return Err(Refusal::StaleState {
                key: row.key(),
                expected,
                found: row.state_version,
            });
        }
        let (_, format) = self.graph.formats(slot);
        if row.state.as_deref() == Some(&*state) && row.state_format == format {
            return Ok(row.state_version);
        }
        self.write(slot, |row| {
            row.state = Some(state);
            row.state_format = format;
            row.state_version = row.state_version.next();
        });
        Ok(self.graph[slot].row.state_version)
    }

    fn apply(&mut self, batch: &Batch, own: Option<Slot>, cause: &Cause) -> Result<Applied, Refusal> {
        let mut plan = plan(&self.graph, batch)?;
        let uids = std::mem::take(&mut plan.uids);
        Applying::carry_out(self, plan, own, cause);
        Ok(Applied {
            revision: self.journal.revision(),
            uids,
        })
    }
}

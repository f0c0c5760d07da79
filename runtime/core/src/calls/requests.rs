//! Calls: what callers and invocations ask for.

use std::sync::Arc;

use crate::core::Core;
use crate::resource::{Cancelled, Life, NameId, Slot};
use crate::{
    Answer, Applied, Batch, Call, CallId, Cause, Effect, InvocationId, Kind, Name, Reason, Refusal,
    StateVersion, Target, Why,
};

impl Core {
    pub(crate) fn call(&mut self, id: CallId, by: Option<InvocationId>, call: Call) {
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
                let slot = self.resolve(&target)?;
                Ok(self.request(id, by, slot, Why::Requested, cause))
            }
            Call::Refresh { target, full } => {
                let slot = self.resolve(&target)?;
                self.refuse_unreadable(slot)?;
                self.write(slot, |row| {
                    if full {
                        row.refreshes.full += 1
                    } else {
                        row.refreshes.plain += 1
                    }
                });
                self.slots[slot].hold = self.revision;
                Ok(self.request(id, by, slot, Why::Refresh, cause))
            }
            Call::Nudge(target) => {
                let slot = self.resolve(&target)?;
                self.nudge(slot);
                Ok(Some(Answer::Done))
            }
            Call::NudgeAll => {
                self.nudge_what_is_due_soon();
                Ok(Some(Answer::Done))
            }
            Call::Cancel(target) => {
                let slot = self.resolve(&target)?;
                self.cancel(slot);
                Ok(Some(Answer::Done))
            }
            Call::Retry(target) => {
                let slot = self.resolve_with_deleted(&target)?;
                self.retry_by_hand(slot, cause);
                Ok(Some(Answer::Done))
            }
            Call::Pause(target) => {
                let slot = self.resolve(&target)?;
                self.refuse_unreadable(slot)?;
                self.pause(slot);
                Ok(Some(Answer::Done))
            }
            Call::Resume(target) => {
                let slot = self.resolve(&target)?;
                self.refuse_unreadable(slot)?;
                self.resume(slot, cause);
                Ok(Some(Answer::Done))
            }
            Call::ReconcileOnce(target) => {
                let slot = self.resolve(&target)?;
                if self.slots[slot].row.paused {
                    self.slots[slot].extra_mut().forced = true;
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
                self.handles.wait_until_idle(id);
                Ok(None)
            }
            Call::WriteState { .. } => Ok(None),
        }
    }

    fn refuse_unreadable(&self, slot: Slot) -> Result<(), Refusal> {
        match self.slots[slot].unreadable() {
            Some(_) => Err(Refusal::Unreadable(self.slots[slot].row.key())),
            None => Ok(()),
        }
    }

    /// Who calls: the resource whose invocation it is, if any, and the cause to be recorded.
    fn caller(&self, id: CallId, by: Option<InvocationId>) -> Result<(Option<Slot>, Cause), Refusal> {
        let Some(invocation) = by else {
            return Ok((None, Cause::Call(id)));
        };
        let slot = *self.runs.get(&invocation).ok_or(Refusal::InvocationCancelled)?;
        let resource = &self.slots[slot];
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
        let caller = by.and_then(|by| self.runs.get(&by).copied());
        let reason = Reason::because(why, cause).after(self.reason_of_run(caller));
        self.ask(slot, &Arc::new(reason));
        self.answer(id, Answer::Recorded(self.slots[slot].row.uid));
        if by.is_none() {
            self.open_handle(id, slot);
        }
        None
    }

    /// Cancels what runs, and what is pending for this resource alone.
    fn cancel(&mut self, slot: Slot) {
        if let Some(pending) = self.slots[slot].pending_mut() {
            pending.cancelled = true;
            self.enqueue(slot);
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
            .and_then(|by| self.runs.get(&by).copied())
            .ok_or(Refusal::InvocationCancelled)?;
        let row = &self.slots[slot].row;
        let writes = by.is_some_and(|by| self.may_write_state(slot, by));
        if self.slots[slot].life == Life::Gone || !writes {
            return Err(Refusal::InvocationCancelled);
        }
        if let Some(expected) = expected.filter(|expected| *expected != row.state_version) {
            return Err(Refusal::StaleState {
                key: row.key(),
                expected,
                found: row.state_version,
            });
        }
        let (_, format) = self.formats(slot);
        if row.state.as_deref() == Some(&*state) && row.state_format == format {
            return Ok(row.state_version);
        }
        self.write(slot, |row| {
            row.state = Some(state);
            row.state_format = format;
            row.state_version = row.state_version.next();
        });
        Ok(self.slots[slot].row.state_version)
    }

    /// The live resource that is meant.
    pub(crate) fn resolve(&self, target: &Target) -> Result<Slot, Refusal> {
        match target {
            Target::Uid(uid) => {
                let live = self.slots.find(*uid).filter(|slot| self.slots[*slot].is_live());
                live.ok_or_else(|| Refusal::Unknown(uid.to_string()))
            }
            Target::Key(key) => {
                let live = self
                    .name_id(&key.kind, &key.name)
                    .and_then(|name| self.names[name].live);
                live.ok_or_else(|| Refusal::Unknown(key.to_string()))
            }
            Target::Name(name) => self.only(name, |core, id| core.names[id].live),
        }
    }

    /// The same, or, if none is live, the one deleted last of that name.
    pub(crate) fn resolve_with_deleted(&self, target: &Target) -> Result<Slot, Refusal> {
        let refusal = match self.resolve(target) {
            Err(Refusal::Unknown(what)) => Refusal::Unknown(what),
            other => return other,
        };
        match target {
            Target::Uid(uid) => {
                let found = self
                    .slots
                    .find(*uid)
                    .filter(|slot| self.slots[*slot].life == Life::Deleted);
                found.ok_or(refusal)
            }
            Target::Key(key) => {
                let found = self
                    .name_id(&key.kind, &key.name)
                    .and_then(|name| self.deleted_last(name));
                found.ok_or(refusal)
            }
            Target::Name(name) => self.only(name, Core::deleted_last),
        }
    }

    pub(crate) fn name_id(&self, kind: &Kind, name: &Name) -> Option<NameId> {
        self.names.find(self.kinds.find(kind)?, name)
    }

    /// The one deleted last of those whose delete under this name is unfinished.
    pub(crate) fn deleted_last(&self, name: NameId) -> Option<Slot> {
        let is_it = |slot: &Slot| self.slots[*slot].life == Life::Deleted && self.slots[*slot].name == name;
        self.names[name].others.iter().copied().rfind(is_it)
    }

    fn only(&self, name: &Name, find: impl Fn(&Core, NameId) -> Option<Slot>) -> Result<Slot, Refusal> {
        let ids = self.kinds.ids().filter_map(|kind| self.names.find(kind, name));
        let mut found: Vec<Slot> = ids.filter_map(|id| find(self, id)).collect();
        match (found.pop(), found.is_empty()) {
            (None, _) => Err(Refusal::Unknown(name.to_string())),
            (Some(slot), true) => Ok(slot),
            (Some(last), false) => {
                found.push(last);
                let mut candidates: Vec<_> = found.iter().map(|slot| self.slots[*slot].row.key()).collect();
                candidates.sort();
                Err(Refusal::Ambiguous {
                    name: name.to_string(),
                    candidates,
                })
            }
        }
    }

    fn apply(&mut self, batch: &Batch, own: Option<Slot>, cause: &Cause) -> Result<Applied, Refusal> {
        let mut plan = self.plan(batch)?;
        let uids = std::mem::take(&mut plan.uids);
        self.carry_out(plan, own, cause);
        Ok(Applied {
            revision: self.revision,
            uids,
        })
    }
}

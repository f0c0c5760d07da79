//! An invocation has come back: what becomes of its outcome and of its resource.

use std::sync::Arc;

use crate::core::Core;
use crate::resource::lifecycle::Event;
use crate::resource::{Cancelled, Life, Op, Running, Slot};
use crate::timers::Timer;
use crate::{
    Error, HistoryRow, InvocationId, LastRun, Marks, Outcome, Phase, Reason, Returned, RunOutcome, RunResult,
    Settled, Why, Work,
};

/// The code of the error that stands for a panic (C9).
pub(crate) const PANIC_CODE: &str = "panic";

impl Core {
    pub(crate) fn returned(&mut self, invocation: InvocationId, result: Returned) {
        let Some(slot) = self.runs.remove(&invocation) else {
            return;
        };
        if self.slots[slot].lifecycle.abandoned().is_some() {
            let Some(run) = self.on(slot, Event::Returned) else {
                return;
            };
            let kind = self.slots[slot].kind;
            self.kinds.leave_after_all(kind);
            self.returned_after_all(slot, &run);
            return self.free_names(slot, &run);
        }
        let Some(run) = self.take_run(slot) else { return };
        let kind = self.slots[slot].kind;
        self.kinds.leave(kind);
        self.timers.clear_run(run.invocation);
        let result = match result {
            _ if run.cancelled == Cancelled::ByDeadline => Err(Arc::new(self.deadline_error(slot))),
            Returned::Done(outcome) => Ok(outcome),
            Returned::Failed(error) => Err(Arc::new(error)),
            Returned::Panicked(message) => Err(Arc::new(Error::permanent(PANIC_CODE, message))),
        };
        self.conclude(slot, &run, result);
        self.free_names(slot, &run);
    }

    /// Takes over the invocation; what becomes of its resource is decided within the same input.
    fn take_run(&mut self, slot: Slot) -> Option<Box<Running>> {
        let run = self.on(slot, Event::Returned)?;
        if run.busy && self.slots[slot].is_live() {
            self.uncount_running(slot);
        }
        Some(run)
    }

    fn conclude(&mut self, slot: Slot, run: &Running, result: Result<Outcome, Arc<Error>>) {
        if self.slots[slot].life == Life::Gone {
            return self.conclude_gone(slot, run, result);
        }
        if !matches!(run.cancelled, Cancelled::No | Cancelled::ByDeadline) {
            return self.conclude_cancelled(slot, run);
        }
        match run.phase {
            Phase::Delete => self.conclude_delete(slot, run, result),
            Phase::Rename => self.conclude_rename(slot, run, result),
            Phase::Reconcile => self.conclude_reconcile(slot, run, result),
        }
    }

    /// It was deleted at once while this ran: only history is left to be written.
    fn conclude_gone(&mut self, slot: Slot, run: &Running, result: Result<Outcome, Arc<Error>>) {
        let (ended, error) = match result {
            _ if !matches!(run.cancelled, Cancelled::No | Cancelled::ByDeadline) => {
                (RunResult::Cancelled, None)
            }
            Ok(outcome) => (RunResult::Done(outcome.work), None),
            Err(error) => (RunResult::Failed, Some(error)),
        };
        self.record(slot, run, ended, error);
        self.on(slot, Event::Settled(Settled::Idle));
    }

    fn conclude_cancelled(&mut self, slot: Slot, run: &Running) {
        self.record(slot, run, RunResult::Cancelled, None);
        self.slots[slot].own |= run.answers;
        self.write(slot, |row| row.runs_total += 1);
        self.write_last_run(slot, run, RunResult::Cancelled);
        // A delete of what was taken up again is over, however it ended.
        let unfinished = match run.phase {
            Phase::Delete => self.slots[slot].life == Life::Deleted,
            Phase::Rename => self.slots[slot].is_live(),
            Phase::Reconcile => false,
        };
        if unfinished && run.cancelled == Cancelled::ByCaller {
            let error = Arc::new(Error::transient("cancelled", "the invocation was cancelled"));
            return self.op_failed(slot, run, error);
        }
        let reason = run.again.clone().unwrap_or_else(|| run.reason.clone());
        self.set_pending_again(slot, reason);
        if let Some(pending) = self.slots[slot].pending_mut() {
            pending.cancelled = run.cancelled == Cancelled::ByCaller;
            pending.since = run.waited_since;
        }
    }

    fn conclude_reconcile(&mut self, slot: Slot, run: &Running, result: Result<Outcome, Arc<Error>>) {
        let ended = match &result {
            Ok(outcome) => RunResult::Done(outcome.work),
            Err(_) => RunResult::Failed,
        };
        self.record(slot, run, ended, result.as_ref().err().cloned());
        let is_no_op = result
            .as_ref()
            .is_ok_and(|outcome| self.count_no_op(slot, run, *outcome));
        if !is_no_op {
            self.write_reconcile(slot, run, ended, &result);
        }
        self.measure(slot, run.started_at, self.now.wall);
        let exhausted = self.plan_retry(slot, result.as_ref().err().map(|error| &**error));
        self.plan_resync(slot);
        if let Some(extra) = &mut self.slots[slot].extra {
            (extra.forced, extra.missed) = (false, false);
        }
        self.answer_outcome(
            slot,
            run.invocation,
            match result {
                Ok(outcome) => RunOutcome::Done {
                    invocation: run.invocation,
                    outcome,
                },
                Err(error) => RunOutcome::Failed {
                    invocation: run.invocation,
                    error,
                },
            },
        );
        self.go_on(slot, run);
        if exhausted {
            self.ask_owner(slot);
        }
    }

    /// Stores how a reconcile ended, and when it is to run again.
    fn write_reconcile(
        &mut self,
        slot: Slot,
        run: &Running,
        ended: RunResult,
        result: &Result<Outcome, Arc<Error>>,
    ) {
        let requeue = match result {
            Ok(outcome) => Some(outcome.retrigger),
            // A failed run that says nothing leaves the time that is still to come.
            Err(error) => error.retrigger.map(Some),
        };
        if let Some(wanted) = requeue {
            let at = wanted.map(|wanted| self.requeue_time(slot, run.started_at, wanted));
            self.timers.set_requeue(slot, at);
        }
        let next = self.timers.requeue(slot);
        let (now, done) = (self.now.wall, result.is_ok());
        let error = result.as_ref().err().cloned();
        let attempts = self.attempts_after(slot, !done);
        self.write(slot, |row| {
            row.runs_total += 1;
            row.error = error;
            row.attempts = attempts;
            row.next_reconcile = next;
            if done {
                row.last_success = Some(now);
            }
        });
        self.write_last_run(slot, run, ended);
    }

    /// After a completed reconcile: run again, rename, or settle.
    fn go_on(&mut self, slot: Slot, run: &Running) {
        if let Some(again) = &run.again {
            self.set_pending_again(slot, again.clone());
        } else if let Op::Due { .. } = self.slots[slot].op {
            // It renamed itself meanwhile.
            self.slots[slot].own = true;
            self.set_pending_again(slot, after_rename(run));
        } else {
            self.settle(slot, &self.rest(slot));
        }
    }

    fn conclude_rename(&mut self, slot: Slot, run: &Running, result: Result<Outcome, Arc<Error>>) {
        let work = match result {
            Err(error) => {
                self.record(slot, run, RunResult::Failed, Some(error.clone()));
                return self.op_failed(slot, run, error);
            }
            Ok(outcome) => outcome.work,
        };
        self.record(slot, run, RunResult::Done(work), None);
        let on_cycle = self.slots[slot].cycle.is_some();
        self.write(slot, |row| {
            row.runs_total += 1;
            row.marks = Marks {
                deletion: row.marks.deletion,
                former_names: Arc::default(),
            };
            row.attempts = 0;
            row.error = row.error.take().filter(|_| on_cycle);
        });
        self.write_last_run(slot, run, RunResult::Done(work));
        // The failures that it was to forget are forgotten.
        self.timers.clear(Timer::Forgive(slot));
        self.end_op(slot);
        self.claim_former_names(slot);
        self.slots[slot].own = true;
        let reason = run.again.clone().filter(|again| again.why != Why::Parent);
        self.set_pending_again(slot, reason.unwrap_or_else(|| after_rename(run)));
    }

    fn conclude_delete(&mut self, slot: Slot, run: &Running, result: Result<Outcome, Arc<Error>>) {
        match result {
            Err(error) => {
                self.record(slot, run, RunResult::Failed, Some(error.clone()));
                self.op_failed(slot, run, error);
            }
            Ok(outcome) => {
                self.record(slot, run, RunResult::Done(outcome.work), None);
                self.remove(slot);
            }
        }
    }

    /// A delete or rename did not work: it keeps its mark, carries the error, and is tried again.
    fn op_failed(&mut self, slot: Slot, run: &Running, error: Arc<Error>) {
        let cancelled = !matches!(run.cancelled, Cancelled::No | Cancelled::ByDeadline);
        let on_cycle = self.slots[slot].cycle.is_some();
        self.write(slot, |row| {
            row.runs_total += u64::from(!cancelled);
            row.attempts = row.attempts.saturating_add(1);
            // What spells out a cycle stays (C7).
            row.error = row
                .error
                .take()
                .filter(|_| on_cycle)
                .or_else(|| Some(error.clone()));
        });
        if !cancelled {
            self.write_last_run(slot, run, RunResult::Failed);
        }
        self.fail_op(slot);
        self.answer_outcome(
            slot,
            run.invocation,
            RunOutcome::Failed {
                invocation: run.invocation,
                error,
            },
        );
        if self.slots[slot].is_live() {
            let reason = run.again.clone().unwrap_or_else(|| run.reason.clone());
            self.set_pending_again(slot, reason);
        } else {
            self.on(slot, Event::Settled(Settled::Retrying));
            self.on_settled(slot);
        }
    }

    pub(crate) fn write_last_run(&mut self, slot: Slot, run: &Running, result: RunResult) {
        let completed = run.phase == Phase::Reconcile && result != RunResult::Cancelled;
        let (epoch, now) = (self.epoch, self.now.wall);
        self.write(slot, |row| {
            let before = row.last_run.as_ref().and_then(|last| last.seen.clone());
            row.last_run = Some(Arc::new(LastRun {
                id: run.invocation,
                epoch,
                phase: run.phase,
                reason: run.reason.clone(),
                started_at: run.started_at,
                ended_at: now,
                result,
                seen: if completed { run.seen.clone() } else { before },
            }));
        });
    }

    /// A row of history, unless the run found nothing to do.
    pub(crate) fn record(&mut self, slot: Slot, run: &Running, result: RunResult, error: Option<Arc<Error>>) {
        if matches!(result, RunResult::Done(Work::None | Work::Checked)) {
            return;
        }
        let row = &self.slots[slot].row;
        self.commits.history(HistoryRow {
            uid: row.uid,
            key: row.key(),
            epoch: self.epoch,
            invocation: Some(run.invocation),
            phase: run.phase,
            reason: run.reason.clone(),
            started_at: run.started_at,
            ended_at: self.now.wall,
            result,
            error,
            seen: run.seen.clone(),
        });
    }

    /// History of a delete that gave up on the reconciler.
    pub(crate) fn record_forced(&mut self, slot: Slot, reason: Arc<Reason>) {
        let row = &self.slots[slot].row;
        self.commits.history(HistoryRow {
            uid: row.uid,
            key: row.key(),
            epoch: self.epoch,
            invocation: None,
            phase: Phase::Delete,
            reason,
            started_at: self.now.wall,
            ended_at: self.now.wall,
            result: RunResult::Done(Work::None),
            error: None,
            seen: None,
        });
    }

    /// Whatever waited for this invocation to be out of the way of a name is considered again.
    fn free_names(&mut self, slot: Slot, run: &Running) {
        for name in run.under.iter() {
            let mut index = 0;
            while let Some(other) = self.names[name].others.get(index).copied() {
                index += 1;
                if other != slot {
                    self.enqueue(other);
                }
            }
            if let Some(live) = self.names[name].live.filter(|live| *live != slot) {
                self.enqueue(live);
            }
        }
        let gone = self
            .slots
            .get(slot)
            .is_some_and(|resource| resource.life == Life::Gone);
        if gone {
            self.forget(slot);
        }
    }
}

/// Why a resource is reconciled after this run, with which its rename became known or was done.
fn after_rename(run: &Running) -> Arc<Reason> {
    match run.reason.why {
        Why::Renamed => run.reason.clone(),
        _ => Arc::new(Reason::bare(Why::Renamed).after(Some(run.reason.clone()))),
    }
}

//! The return of an invocation: its outcome, and the next stage of its resource.

use std::sync::Arc;
use std::time::Duration;

use super::Core;
use crate::graph::lifecycle::Event;
use crate::graph::owners::News;
use crate::graph::resource::{Cancelled, Life, Op, Running};
use crate::schedule::decision::rest;
use crate::schedule::retries::{attempts_after, deadline_error, plan_resync};
use crate::timers::Timer;
use crate::types::index::Slot;
use crate::types::text::bounded;
use crate::{
    Error, Intents, InvocationId, Outcome, Phase, Reason, Repeats, Returned, Row, RunOutcome, RunResult,
    Settled, Timestamp, Trigger,
};

/// Error code of a panic (C9).
pub(crate) const PANIC_CODE: &str = "panic";

impl Core {
    pub(super) fn returned(&mut self, invocation: InvocationId, result: Returned) {
        let Some(slot) = self.graph.run(invocation) else {
            return;
        };
        if self.graph[slot].abandoned().is_some() {
            let Some(run) = self.on(slot, Event::Returned) else {
                return;
            };
            let kind = self.graph[slot].kind();
            self.scheduler.concurrency_limits_mut().leave_after_all(kind);
            self.returned_after_all(slot, &run);
            return self.free_names(slot, &run);
        }
        let Some(run) = self.take_run(slot) else { return };
        let kind = self.graph[slot].kind();
        self.scheduler.concurrency_limits_mut().leave(kind);
        self.timers.clear_run(run.invocation());
        let result = match result {
            // Whatever it returned after its deadline came too late to count.
            _ if run.cancelled() == Cancelled::ByDeadline => Err(Arc::new(deadline_error(&self.graph, slot))),
            Returned::Done(mut outcome) => {
                outcome.unready = outcome.unready.map(bounded);
                Ok(outcome)
            }
            Returned::Failed(error) => Err(Arc::new(error.bounded())),
            Returned::Panicked(message) => Err(Arc::new(Error::permanent(PANIC_CODE, message).bounded())),
        };
        let conclusion = Conclusion {
            core: self,
            slot,
            run: &run,
        };
        // Names last: until its resource has concluded, it may claim some of them itself.
        conclusion.conclude(result);
        self.free_names(slot, &run);
    }

    /// Takes the invocation out of its stage. The next stage is decided within the same input.
    fn take_run(&mut self, slot: Slot) -> Option<Box<Running>> {
        let run = self.on(slot, Event::Returned)?;
        // Counts lead along refs, and those of a deleted resource were taken out with it.
        if run.is_busy() && self.graph[slot].is_live() {
            self.graph.uncount_running(slot);
        }
        Some(run)
    }

    /// Evaluates again everything that waited for a name of this invocation.
    fn free_names(&mut self, slot: Slot, run: &Running) {
        // All names that it ran under: a rename during the run has made others wait for the old one as well.
        for name in run.under().iter() {
            self.graph.wake_claimants(name, slot);
        }
        if self.graph.get(slot).is_some_and(|it| it.life() == Life::Gone) {
            self.forget(slot);
        }
    }
}

/// The end of an invocation, with all that follows for its resource.
struct Conclusion<'a> {
    core: &'a mut Core,
    slot: Slot,
    run: &'a Running,
}

impl Conclusion<'_> {
    fn conclude(mut self, result: Result<Outcome, Arc<Error>>) {
        let (slot, run) = (self.slot, self.run);
        if self.core.graph[slot].life() == Life::Gone {
            return self.conclude_gone(result);
        }
        if !matches!(run.cancelled(), Cancelled::No | Cancelled::ByDeadline) {
            return self.conclude_cancelled();
        }
        match run.phase() {
            Phase::Delete => self.conclude_delete(result),
            Phase::Rename => self.conclude_rename(result),
            Phase::Reconcile => self.conclude_reconcile(result),
        }
    }

    /// Concludes the invocation of a resource that was removed meanwhile: only history is written.
    fn conclude_gone(&mut self, result: Result<Outcome, Arc<Error>>) {
        let (slot, run) = (self.slot, self.run);
        let (ended, error) = match result {
            _ if !matches!(run.cancelled(), Cancelled::No | Cancelled::ByDeadline) => {
                (RunResult::Cancelled, None)
            }
            Ok(outcome) => (RunResult::Done(outcome.work), None),
            Err(error) => (RunResult::Failed, Some(error)),
        };
        self.core.record(slot, run, ended, error);
        self.core.on(slot, Event::Settled(Settled::Idle));
    }

    fn conclude_cancelled(&mut self) {
        let (slot, run) = (self.slot, self.run);
        let repeats = self.core.record(slot, run, RunResult::Cancelled, None);
        // Its outcome is dropped, so the request that it was to answer is open again.
        self.core.graph[slot].owe(run.is_answer());
        self.core.write(slot, |row| row.runs_total += 1);
        self.core
            .write_last_run(slot, run, (RunResult::Cancelled, repeats));
        // A delete of what was taken up again is over, however it ended.
        let unfinished = match run.phase() {
            Phase::Delete => self.core.graph[slot].life() == Life::Deleted,
            Phase::Rename => self.core.graph[slot].is_live(),
            Phase::Reconcile => false,
        };
        // Without this a cancelled delete would be pending again at once, and the cancel would achieve nothing.
        if unfinished && run.cancelled() == Cancelled::ByCaller {
            let error = Arc::new(Error::transient("cancelled", "the invocation was cancelled"));
            return self.op_failed(error, None);
        }
        let reason = run.reason_again();
        self.core.set_pending_again(slot, reason);
        if let Some(pending) = self.core.graph[slot].pending_mut() {
            if run.cancelled() == Cancelled::ByCaller {
                pending.cancel();
            }
            // It has waited since before this run. Cancels that begin its patience anew would starve it (C17).
            pending.set_since(run.waited_since());
        }
    }

    fn conclude_reconcile(&mut self, result: Result<Outcome, Arc<Error>>) {
        let (slot, run) = (self.slot, self.run);
        if let Some(outcome) = result.as_ref().ok().filter(|outcome| outcome.passed_over) {
            return self.conclude_passed_over(outcome.clone());
        }
        let ended = match &result {
            Ok(outcome) => RunResult::Done(outcome.work),
            Err(_) => RunResult::Failed,
        };
        let repeats = self.core.record(slot, run, ended, result.as_ref().err().cloned());
        let row = self.core.graph[slot].row();
        // Compared before the row is written: afterwards both are the same.
        let is_changed = row.owner.is_some() && completes_otherwise(row, &result);
        let core = &mut *self.core;
        if let Some(asked) = requeue_asked(&result) {
            let times = (run.started_at(), core.now.wall);
            let requeue = core.graph.requeue(slot, times, asked);
            core.timers.set_requeue(slot, core.now, requeue);
        }
        let next = (core.timers.requeue(slot), core.timers.wait(slot));
        let is_no_op = result.as_ref().is_ok_and(|outcome| {
            core.journal
                .count_no_op(&mut core.graph, core.now.wall, slot, (run, outcome, next))
        });
        if !is_no_op {
            self.write_reconcile((ended, repeats), &result);
        }
        self.core
            .graph
            .measure(slot, run.started_at(), self.core.now.wall);
        let core = &mut *self.core;
        let failure = result.as_ref().err().map(|error| &**error);
        let exhausted = core
            .retries
            .plan(&mut core.graph, &mut core.timers, core.now.mono, (slot, failure));
        plan_resync(&core.graph, &mut core.timers, core.now.mono, slot);
        // A forced run and what was missed during a pause are answered by this run, however it ended.
        self.core.graph[slot].set_forced(false);
        self.core.graph[slot].set_missed(None);
        self.core.answer_outcome(
            slot,
            run.invocation(),
            match result {
                Ok(outcome) => RunOutcome::Done {
                    invocation: run.invocation(),
                    outcome,
                },
                Err(error) => RunOutcome::Failed {
                    invocation: run.invocation(),
                    error,
                },
            },
        );
        self.go_on();
        if exhausted {
            self.core.request_owner(slot, News::Exhausted);
        } else if is_changed {
            self.core.request_owner(slot, News::Changed);
        }
    }

    /// Concludes a run that was passed over: the row is unchanged, except for a used requeue time.
    fn conclude_passed_over(&mut self, outcome: Outcome) {
        let (slot, run) = (self.slot, self.run);
        let core = &mut *self.core;
        plan_resync(&core.graph, &mut core.timers, core.now.mono, slot);
        core.graph[slot].set_forced(false);
        core.graph[slot].set_missed(None);
        core.graph[slot].owe(run.is_answer());
        core.store_requeue(slot);
        let invocation = run.invocation();
        core.answer_outcome(slot, invocation, RunOutcome::Done { invocation, outcome });
        self.go_on();
    }

    /// Stores the end of a reconcile and the time of the next.
    fn write_reconcile(&mut self, ended: (RunResult, Option<Repeats>), result: &Result<Outcome, Arc<Error>>) {
        let (slot, run) = (self.slot, self.run);
        let next = self.core.timers.requeue(slot);
        let (now, done) = (self.core.now.wall, result.is_ok());
        let error = result.as_ref().err().cloned();
        let unready = result.as_ref().ok().and_then(|outcome| outcome.unready.clone());
        let core = &mut *self.core;
        let attempts = attempts_after(&mut core.graph, &mut core.timers, core.now.mono, (slot, !done));
        self.core.write(slot, |row| {
            row.runs_total += 1;
            row.error = error;
            row.unready = unready;
            row.attempts = attempts;
            row.next_reconcile = next;
            if done {
                row.last_success = Some(now);
            }
        });
        self.core.write_last_run(slot, run, ended);
    }

    /// Chooses the next step after a completed reconcile: run again, rename, or settle.
    fn go_on(&mut self) {
        let (slot, run) = (self.slot, self.run);
        // Not settled in between: those below would start on a state that is about to change.
        if let Some(rerun) = run.rerun() {
            self.core.set_pending_again(slot, rerun.clone());
        } else if let Op::Due { .. } = self.core.graph[slot].op() {
            // It renamed itself meanwhile.
            self.core.graph[slot].owe(true);
            self.core.set_pending_again(slot, after_rename(run));
        } else {
            let core = &mut *self.core;
            core.settle(slot, &rest(&core.graph, &core.timers, slot));
        }
    }

    fn conclude_rename(&mut self, result: Result<Outcome, Arc<Error>>) {
        let (slot, run) = (self.slot, self.run);
        let work = match result {
            Err(error) => {
                let repeats = self
                    .core
                    .record(slot, run, RunResult::Failed, Some(error.clone()));
                return self.op_failed(error, repeats);
            }
            Ok(outcome) => outcome.work,
        };
        let repeats = self.core.record(slot, run, RunResult::Done(work), None);
        let on_cycle = self.core.graph[slot].cycle().is_some();
        self.core.write(slot, |row| {
            row.runs_total += 1;
            row.intents = Intents {
                deletion: row.intents.deletion,
                former_names: Arc::default(),
            };
            row.attempts = 0;
            row.error = row.error.take().filter(|_| on_cycle);
        });
        self.core
            .write_last_run(slot, run, (RunResult::Done(work), repeats));
        // The failures that it was to forget are forgotten.
        self.core.timers.clear(Timer::Forgive(slot));
        self.core.graph[slot].set_backed_off(0);
        // The output has the new name, so the old ones are free for others from here on.
        self.core.end_op(slot);
        self.core.claim_former_names(slot);
        self.core.graph[slot].owe(true);
        // A reconcile follows each rename. That a parent ran meanwhile is the lesser reason.
        let reason = run
            .rerun()
            .cloned()
            .filter(|rerun| rerun.trigger != Trigger::Parent);
        self.core
            .set_pending_again(slot, reason.unwrap_or_else(|| after_rename(run)));
    }

    fn conclude_delete(&mut self, result: Result<Outcome, Arc<Error>>) {
        let (slot, run) = (self.slot, self.run);
        match result {
            Err(error) => {
                let repeats = self
                    .core
                    .record(slot, run, RunResult::Failed, Some(error.clone()));
                self.op_failed(error, repeats);
            }
            Ok(outcome) => {
                self.core.record(slot, run, RunResult::Done(outcome.work), None);
                self.core.request_owner(slot, News::Changed);
                self.core.remove(slot);
            }
        }
    }

    /// Records the failure of a delete or rename: the intent stays, the error is stored, and a retry is scheduled.
    fn op_failed(&mut self, error: Arc<Error>, repeats: Option<Repeats>) {
        let (slot, run) = (self.slot, self.run);
        let cancelled = !matches!(run.cancelled(), Cancelled::No | Cancelled::ByDeadline);
        let on_cycle = self.core.graph[slot].cycle().is_some();
        self.core.write(slot, |row| {
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
            self.core.write_last_run(slot, run, (RunResult::Failed, repeats));
        }
        let core = &mut *self.core;
        // It holds nobody back while it waits for its retry, or one broken delete would stop the project.
        core.barrier
            .fail_op(&mut core.graph, &mut core.timers, core.now.mono, slot);
        self.core.answer_outcome(
            slot,
            run.invocation(),
            RunOutcome::Failed {
                invocation: run.invocation(),
                error,
            },
        );
        if self.core.graph[slot].is_live() {
            let reason = run.reason_again();
            self.core.set_pending_again(slot, reason);
        } else {
            self.core.on(slot, Event::Settled(Settled::Retrying));
            self.core.on_settled(slot);
        }
    }
}

/// Returns the next run that a reconcile asks for; none keeps the present one, as after a failure that names no time.
fn requeue_asked(result: &Result<Outcome, Arc<Error>>) -> Option<(Option<Timestamp>, Option<Duration>)> {
    match result {
        Ok(outcome) => Some((outcome.retrigger, outcome.requeue_after)),
        Err(error) => {
            let asks = error.retrigger.is_some() || error.requeue_after.is_some();
            asks.then_some((error.retrigger, error.requeue_after))
        }
    }
}

/// Returns true if a reconcile ends with another state, error or readiness than the last completed one, or is the
/// first.
fn completes_otherwise(row: &Row, result: &Result<Outcome, Arc<Error>>) -> bool {
    let unready = result.as_ref().ok().and_then(|outcome| outcome.unready.as_ref());
    let is_the_same = row.last_run.as_ref().is_some_and(|last| {
        last.seen.is_some()
            && last.state_version == row.state_version
            && row.error.as_ref() == result.as_ref().err()
            && row.unready.as_ref() == unready
    });
    !is_the_same
}

/// Returns the reason for the reconcile that follows a rename.
fn after_rename(run: &Running) -> Arc<Reason> {
    match run.reason().trigger {
        Trigger::Renamed => run.reason().clone(),
        _ => Arc::new(Reason::bare(Trigger::Renamed).after(Some(run.reason().clone()))),
    }
}

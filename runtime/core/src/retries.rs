//! Failures: when a reconcile is tried again, when its failures are forgotten, and what else runs by the clock.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use crate::core::Core;
use crate::resource::{Cancelled, Failure, Slot, Stage};
use crate::timeline::Alarm;
use crate::{Cause, Error, ErrorKind, InvocationId, Mono, OnExhausted, Reason, RetryPolicy, Settled, Why};

/// The code of the error of an invocation that took too long.
pub(crate) const DEADLINE_CODE: &str = "deadline";

impl Core {
    /// The policy in force: the resource's own, or that of its kind. What can't run here is not tried again.
    pub(crate) fn retry_policy(&self, slot: Slot) -> RetryPolicy {
        match (self.options(slot), &self.slots[slot].row.retry) {
            (None, _) => RetryPolicy::Never,
            (Some(_), Some(own)) => **own,
            (Some(options), None) => options.retry,
        }
    }

    /// How many failures in a row are to be remembered after a reconcile, and until when if it succeeded.
    pub(crate) fn attempts_after(&mut self, slot: Slot, failed: bool) -> u32 {
        let attempts = self.slots[slot].row.attempts;
        if failed {
            self.clear_forgiving(slot);
            return attempts.saturating_add(1);
        }
        match self.retry_policy(slot) {
            RetryPolicy::Backoff { reset_after, .. } if attempts > 0 && !reset_after.is_zero() => {
                if self.slots[slot].extra().forgive_at.is_none() {
                    let at = self.now.mono.after(reset_after);
                    self.slots[slot].extra_mut().forgive_at = Some(at);
                    self.timeline.set(at, Alarm::Forgive(slot));
                }
                attempts
            }
            _ => 0,
        }
    }

    /// It has stayed successful for long enough.
    pub(crate) fn forgive(&mut self, slot: Slot) {
        self.slots[slot].extra_mut().forgive_at = None;
        self.write(slot, |row| row.attempts = 0);
    }

    fn clear_forgiving(&mut self, slot: Slot) {
        if let Some(extra) = &mut self.slots[slot].extra
            && let Some(at) = extra.forgive_at.take()
        {
            self.timeline.clear(at, Alarm::Forgive(slot));
        }
    }

    /// A reconcile has completed: what was to be tried again no longer is, unless this failure asks for it. Gives
    /// back whether the attempts are used up.
    pub(crate) fn plan_retry(&mut self, slot: Slot, error: Option<&Error>) -> bool {
        self.clear_retry(slot);
        let Some(error) = error.filter(|error| error.kind == ErrorKind::Transient) else {
            return false;
        };
        self.slots[slot].extra_mut().failure = Some(Failure {
            at: self.now.mono,
            retry_after: error.retry_after,
        });
        self.set_retry(slot)
    }

    /// Sets when the failure that stands is tried again, if its policy has it so. Gives back whether the attempts are
    /// used up.
    fn set_retry(&mut self, slot: Slot) -> bool {
        let policy = self.retry_policy(slot);
        let (
            Some(failure),
            RetryPolicy::Backoff {
                base, cap, attempts, ..
            },
        ) = (self.slots[slot].extra().failure, policy)
        else {
            return false;
        };
        let failures = self.slots[slot].row.attempts;
        if failures >= attempts {
            return true;
        }
        let doublings = failures.saturating_sub(1).min(31);
        let wait = base.saturating_mul(1 << doublings).min(cap);
        let wait = failure.retry_after.unwrap_or_else(|| self.spread(slot, wait));
        let at = failure.at.after(wait).max(self.now.mono);
        self.slots[slot].extra_mut().retry_at = Some(at);
        self.timeline.set(at, Alarm::Retry(slot));
        false
    }

    /// The resource has another policy: it holds also for the failure that stands, whose wait is counted from when it
    /// failed. Asks for nothing by itself.
    pub(crate) fn follow_new_policy(&mut self, slot: Slot) {
        if !self.slots[slot].is_live() {
            return;
        }
        let was_set = self.drop_retry_time(slot);
        let exhausted = self.set_retry(slot);
        self.follow_new_reset(slot);
        let (rest, resource) = (self.rest(slot), &self.slots[slot]);
        if let Some(before @ (Settled::Failed | Settled::Retrying)) = resource.settled()
            && *before != rest
            && !resource.has_op()
        {
            self.set_stage(slot, Stage::Settled(rest.into()));
        }
        if exhausted && was_set {
            self.ask_owner(slot);
        }
    }

    /// What is to be forgotten for its success is so by the new policy, from now on.
    fn follow_new_reset(&mut self, slot: Slot) {
        if self.slots[slot].extra().forgive_at.is_some() {
            self.clear_forgiving(slot);
            let attempts = self.attempts_after(slot, false);
            if attempts != self.slots[slot].row.attempts {
                self.write(slot, |row| row.attempts = attempts);
            }
        }
    }

    /// The same wait every time under test; else somewhere in its second half.
    fn spread(&self, slot: Slot, wait: Duration) -> Duration {
        let Some(seed) = self.limits.jitter else {
            return wait;
        };
        let mut hasher = DefaultHasher::new();
        (seed, self.slots[slot].row.uid, self.slots[slot].row.attempts).hash(&mut hasher);
        let part = u32::try_from(hasher.finish() % 1_000).unwrap_or(0);
        wait / 2 + wait / 2_000 * part
    }

    fn clear_retry(&mut self, slot: Slot) {
        self.drop_retry_time(slot);
        if let Some(extra) = &mut self.slots[slot].extra {
            extra.failure = None;
        }
    }

    /// Gives back whether there was one.
    fn drop_retry_time(&mut self, slot: Slot) -> bool {
        let extra = self.slots[slot].extra.as_mut();
        let Some(at) = extra.and_then(|extra| extra.retry_at.take()) else {
            return false;
        };
        self.timeline.clear(at, Alarm::Retry(slot));
        true
    }

    /// Request 7. One that runs already tries again by that.
    pub(crate) fn retry_reconcile(&mut self, slot: Slot) {
        self.slots[slot].extra_mut().retry_at = None;
        let runs = self.slots[slot]
            .run()
            .is_some_and(|run| run.cancelled == Cancelled::No);
        if runs || !self.is_serving() {
            self.slots[slot].extra_mut().failure = None;
            return;
        }
        if let Some(later) = self.put_off(slot) {
            self.slots[slot].extra_mut().retry_at = Some(later);
            return self.timeline.set(later, Alarm::Retry(slot));
        }
        self.slots[slot].extra_mut().failure = None;
        let reason = self.reason_to_retry(slot);
        self.ask(slot, &reason);
    }

    /// Request 7, with what had asked for the run that failed.
    pub(crate) fn reason_to_retry(&self, slot: Slot) -> Arc<Reason> {
        Arc::new(match &self.slots[slot].row.last_run {
            Some(failed) => Reason::retried(&failed.reason),
            None => Reason::bare(Why::Retry),
        })
    }

    /// `retry(name)`: what has failed is tried now, its failures forgotten.
    pub(crate) fn retry_by_hand(&mut self, slot: Slot, cause: Cause) {
        let resource = &self.slots[slot];
        if resource.has_op() {
            return self.retry_op(slot);
        }
        if resource.is_live() && resource.row.error.is_some() {
            self.forget_attempts(slot);
            self.ask(slot, &Arc::new(Reason::because(Why::Retry, cause)));
        }
    }

    /// Requests 2 and 4 forget how often it has failed.
    pub(crate) fn forget_attempts(&mut self, slot: Slot) {
        if self.slots[slot].row.attempts > 0 {
            self.clear_forgiving(slot);
            self.write(slot, |row| row.attempts = 0);
        }
    }

    /// Request 9: the owner of what has used up its attempts decides what becomes of the rest.
    pub(crate) fn ask_owner(&mut self, slot: Slot) {
        let row = &self.slots[slot].row;
        let owner = row.owner.and_then(|owner| self.slots.find(owner));
        let Some(owner) = owner.filter(|owner| *owner != slot && self.slots[*owner].is_live()) else {
            return;
        };
        let asks = self
            .options(owner)
            .is_some_and(|options| options.on_exhausted == OnExhausted::AskOwner);
        if asks {
            let before = row.last_run.as_ref().map(|last| last.reason.clone());
            let reason = Reason::because(Why::Recovered, self.cause_of(slot)).after(before);
            self.ask(owner, &Arc::new(reason));
        }
    }

    /// A completed reconcile puts the next look for drift off.
    pub(crate) fn plan_resync(&mut self, slot: Slot) {
        self.clear_resync(slot);
        if let Some(interval) = self.options(slot).and_then(|options| options.resync) {
            let at = self.now.mono.after(interval);
            self.slots[slot].extra_mut().resync_at = Some(at);
            self.timeline.set(at, Alarm::Resync(slot));
        }
    }

    fn clear_resync(&mut self, slot: Slot) {
        if let Some(extra) = &mut self.slots[slot].extra
            && let Some(at) = extra.resync_at.take()
        {
            self.timeline.clear(at, Alarm::Resync(slot));
        }
    }

    /// Request 6.
    pub(crate) fn resync(&mut self, slot: Slot) {
        self.slots[slot].extra_mut().resync_at = None;
        if !self.is_serving() {
            return;
        }
        if let Some(later) = self.put_off(slot) {
            self.slots[slot].extra_mut().resync_at = Some(later);
            return self.timeline.set(later, Alarm::Resync(slot));
        }
        self.plan_resync(slot);
        self.ask(slot, &Arc::new(Reason::bare(Why::Resync)));
    }

    /// Nothing is tried again for this resource any more.
    pub(crate) fn clear_retries(&mut self, slot: Slot) {
        self.clear_retry(slot);
        self.clear_forgiving(slot);
        self.clear_resync(slot);
    }

    /// When an invocation that starts now has taken too long.
    pub(crate) fn set_deadline(&mut self, slot: Slot, invocation: InvocationId) -> Option<Mono> {
        let deadline = self.options(slot).and_then(|options| options.deadline)?;
        let at = self.now.mono.after(deadline);
        self.timeline.set(at, Alarm::Deadline(invocation));
        Some(at)
    }

    pub(crate) fn deadline_is_over(&mut self, invocation: InvocationId) {
        let Some(slot) = self.runs.get(&invocation).copied() else {
            return;
        };
        if self.slots[slot]
            .run()
            .is_some_and(|run| run.cancelled == Cancelled::No)
        {
            self.cancel_run(slot, Cancelled::ByDeadline);
        }
    }

    pub(crate) fn deadline_error(&self, slot: Slot) -> Error {
        let deadline = self.options(slot).and_then(|options| options.deadline);
        let seconds = deadline.unwrap_or_default().as_secs_f64();
        let mut error = Error::transient(DEADLINE_CODE, format!("it did not finish within {seconds} s"));
        error.hint = Some(Arc::from("its kind bounds how long one invocation may take"));
        error
    }
}

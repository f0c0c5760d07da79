//! The operator's hands, and what runs by the clock: pauses, retries, deadlines, resyncs.

use std::time::Duration;

use rand::Rng;
use watershed_core::{Call, Error, ErrorKind, Input, Mono, RetryPolicy, Uid};

use crate::world::{Check, Expected, Simulation};

/// Returns the time that a success must last for waits to be short again; none if they are at once.
fn reset_after(policy: RetryPolicy) -> Option<Duration> {
    match policy {
        RetryPolicy::Backoff { reset_after, .. } => Some(reset_after).filter(|wait| !wait.is_zero()),
        _ => None,
    }
}

impl Simulation {
    /// Pause, resume, retry, or once in spite of a pause.
    pub(crate) fn operate(&mut self) -> Check {
        let target = self.taste.clone().live_target(&mut self.rng, &self.catalog);
        let id = self.next_call();
        let which = self.rng.random_range(0..5);
        let call = match which {
            0 => Call::Pause(target.clone()),
            1 | 2 => Call::Resume(target.clone()),
            3 => Call::Retry(target.clone()),
            _ => Call::ReconcileOnce(target.clone()),
        };
        let Some(uid) = self.catalog.resolve(&target) else {
            if which == 3 {
                return Ok(()); // it also finds what is being deleted: left to the core's own tests
            }
            self.calls.insert(id, Expected::Refused);
            return self.input(Input::Call { id, by: None, call });
        };
        match which {
            0..3 => self.note_pause(uid, which == 0),
            3 if self.ops.contains_key(&uid) || !self.is_durable() => return Ok(()),
            3 => self.note_retry(uid),
            _ => {
                let paused = self.catalog.items[&uid].paused;
                self.past(uid).forced |= paused;
                self.expect_handle(id, uid, false);
                return self.input(Input::Call { id, by: None, call });
            }
        }
        self.calls.insert(id, Expected::Done);
        self.input(Input::Call { id, by: None, call })
    }

    fn note_pause(&mut self, uid: Uid, pause: bool) {
        let Some(item) = self.catalog.items.get_mut(&uid) else {
            return;
        };
        let was_paused = std::mem::replace(&mut item.paused, pause);
        if was_paused && !pause && std::mem::take(&mut self.past(uid).missed) {
            self.note_asked(uid);
            self.note_disturbed(uid);
            self.must_unsettle.insert(uid);
        }
    }

    fn note_retry(&mut self, uid: Uid) {
        if self.published.get(&uid).is_some_and(|row| row.error.is_some()) {
            self.forget_attempts(uid);
            // By hand, it is put off by nothing.
            self.must_unsettle.insert(uid);
            self.note_timed(uid);
        }
    }

    /// Edits, refreshes and retries by hand forget how often it has failed.
    pub(crate) fn forget_attempts(&mut self, uid: Uid) {
        let past = self.past(uid);
        (past.attempts, past.backed_off, past.forgive_at) = (0, 0, None);
    }

    /// The policy in force: the resource's own, or that of its kind.
    pub(crate) fn policy(&self, uid: Uid) -> RetryPolicy {
        let of_kind = self.options(uid).map(|options| options.retry);
        let own = self.catalog.items.get(&uid).and_then(|item| item.retry);
        of_kind.map_or(RetryPolicy::Never, |of_kind| own.unwrap_or(of_kind))
    }

    /// A reconcile completed: when it is tried again, and what is forgotten when. Gives back whether its attempts are
    /// used up.
    pub(crate) fn note_result(&mut self, uid: Uid, error: Option<&Error>) -> bool {
        let (now, policy) = (self.now.mono, self.policy(uid));
        let past = self.past(uid);
        (past.failure, past.retry_at) = (None, None);
        (past.forced, past.missed) = (false, false);
        let Some(error) = error else {
            // A success ends the row; waits stay long until it has lasted.
            past.backed_off = past.backed_off.max(past.attempts);
            past.attempts = 0;
            let wait = reset_after(policy).filter(|_| past.backed_off > 0);
            past.forgive_at = wait.map(|wait| past.forgive_at.unwrap_or(now.after(wait)));
            past.backed_off = wait.map_or(0, |_| past.backed_off);
            return false;
        };
        past.forgive_at = None;
        past.backed_off = past.backed_off.max(past.attempts) + 1;
        past.attempts += 1;
        if error.kind != ErrorKind::Transient {
            return false;
        }
        past.failure = Some((now, error.retry_after));
        self.plan_retry(uid)
    }

    /// Plans the retry of the failure that stands. Returns true if its attempts are used up.
    fn plan_retry(&mut self, uid: Uid) -> bool {
        let (now, policy) = (self.now.mono, self.policy(uid));
        let past = self.past(uid);
        past.retry_at = None;
        let (
            Some((failed_at, retry_after)),
            RetryPolicy::Backoff {
                base, cap, attempts, ..
            },
        ) = (past.failure, policy)
        else {
            return false;
        };
        if past.attempts >= attempts {
            return true;
        }
        let wait = (1..past.backed_off).fold(base, |wait, _| (wait * 2).min(cap));
        past.retry_at = Some(failed_at.after(retry_after.unwrap_or(wait.min(cap))).max(now));
        false
    }

    /// Another policy holds also for the failure that stands, and for what is to be forgotten.
    pub(crate) fn note_policy(&mut self, uid: Uid) {
        if !self.catalog.is_live(uid) {
            return;
        }
        let (now, policy) = (self.now.mono, self.policy(uid));
        let was_planned = self.past(uid).retry_at.is_some();
        let exhausted = self.plan_retry(uid);
        let past = self.past(uid);
        if past.forgive_at.take().is_some() {
            past.forgive_at = reset_after(policy).map(|wait| now.after(wait));
            past.backed_off = past.forgive_at.map_or(0, |_| past.backed_off);
        }
        if exhausted && was_planned {
            self.note_exhausted(uid);
        }
        self.take_up_retry(uid);
    }

    /// One that is due by now is not waited for.
    pub(crate) fn take_up_retry(&mut self, uid: Uid) {
        let now = self.now.mono;
        if self.past(uid).retry_at.take_if(|at| *at <= now).is_some() {
            self.retry_falls_due(uid);
        }
    }

    /// A completed reconcile puts the next look for drift off.
    pub(crate) fn note_resync(&mut self, uid: Uid) {
        let options = self.options(uid);
        let interval = options.and_then(|options| Some(options.resync?.max(options.requeue_interval)));
        self.past(uid).resync_at = interval.map(|interval| self.now.mono.after(interval));
    }

    /// Invocations that have taken too long are cancelled and have failed, unless something above them fell due before
    /// that and cancelled them to run again.
    pub(crate) fn deadlines_pass(&mut self, at: Mono) {
        for run in self.running.values_mut() {
            if run.deadline_to_come().is_none_or(|it| it > at) {
                continue;
            }
            run.deadline = None;
            run.overdue = !self.must_cancel.contains(&run.uid);
            self.must_cancel.insert(run.uid);
            self.may_cancel.insert(run.uid);
        }
    }

    /// Retries, resyncs and the forgetting of failures.
    pub(crate) fn retries_fall_due(&mut self, mono: Mono) {
        let live: Vec<Uid> = self.catalog.items.keys().copied().collect();
        for uid in live
            .into_iter()
            .filter(|uid| self.catalog.is_live(*uid))
            .collect::<Vec<_>>()
        {
            let past = self.past(uid);
            if past.forgive_at.take_if(|at| *at <= mono).is_some() {
                past.backed_off = 0;
            }
            let retry = past.retry_at.take_if(|at| *at <= mono).is_some();
            let resync = past.resync_at.take_if(|at| *at <= mono).is_some();
            if resync {
                match self.timed_counts(uid) {
                    None => self.note_resync(uid),
                    later => self.past(uid).resync_at = later,
                }
            }
            if retry {
                self.retry_falls_due(uid);
            }
        }
    }

    /// One that runs tries again by that, unless it was cancelled, perhaps by this very input.
    fn retry_falls_due(&mut self, uid: Uid) {
        if self.run_of(uid).is_none_or(|run| run.cancelled) {
            let later = self.timed_counts(uid);
            let past = self.past(uid);
            past.retry_at = later;
            past.failure = past.failure.filter(|_| later.is_some());
            return;
        }
        self.past(uid).failure = None;
        self.owe(uid);
        let below: Vec<Uid> = self.catalog.descendants(uid).into_iter().collect();
        self.may_cancel.extend(below);
        for run in self.running.values_mut().filter(|run| run.uid == uid) {
            run.stopped = false;
        }
    }
}

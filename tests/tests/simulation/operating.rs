//! The operator's hands, and what runs by the clock: pauses, retries, deadlines, resyncs.

use rand::Rng;
use watershed_core::{Call, ErrorKind, Input, Mono, OnExhausted, RetryPolicy, Uid};

use crate::world::{Check, Expected, World};

impl World {
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
                self.expect_handle(id, uid);
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
        if was_paused && !pause {
            self.budget += 1 + 2 * self.catalog.descendants(uid).len() as u64;
            if std::mem::take(&mut self.past(uid).missed) {
                self.note_asked(uid);
                self.note_disturbed(uid);
                self.must_unsettle.insert(uid);
            }
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

    /// Requests 2 and 4 forget how often it has failed.
    pub(crate) fn forget_attempts(&mut self, uid: Uid) {
        let past = self.past(uid);
        (past.attempts, past.forgive_at) = (0, None);
    }

    /// A reconcile completed: when it is tried again, and what is forgotten when.
    pub(crate) fn note_result(&mut self, uid: Uid, error: Option<&ErrorKind>) -> bool {
        let now = self.now.mono;
        let policy = self.options(uid).map(|options| options.retry);
        let past = self.past(uid);
        (past.retry_at, past.forced, past.missed) = (None, false, false);
        let Some(RetryPolicy::Backoff {
            base,
            cap,
            attempts,
            reset_after,
        }) = policy
        else {
            past.attempts = if error.is_some() { past.attempts + 1 } else { 0 };
            return false;
        };
        let Some(kind) = error else {
            if past.attempts == 0 || reset_after.is_zero() {
                past.attempts = 0;
            } else {
                past.forgive_at.get_or_insert(now.after(reset_after));
            }
            return false;
        };
        past.forgive_at = None;
        past.attempts += 1;
        let failures = past.attempts;
        if *kind != ErrorKind::Transient {
            return false;
        }
        if failures < attempts {
            let wait = (1..failures).fold(base, |wait, _| (wait * 2).min(cap));
            past.retry_at = Some(now.after(wait.min(cap)));
            return false;
        }
        true
    }

    /// The attempts of a resource are used up: its owner is asked, after all else has come of the run.
    pub(crate) fn note_exhausted(&mut self, uid: Uid) {
        let owner = self.catalog.items[&uid].owner;
        let owner = owner.filter(|owner| *owner != uid && self.catalog.is_live(*owner));
        let asks = |owner: &Uid| {
            self.options(*owner)
                .is_some_and(|options| options.on_exhausted == OnExhausted::AskOwner)
        };
        if let Some(owner) = owner.filter(asks) {
            self.note_asked(owner);
            self.note_disturbed(owner);
            self.must_unsettle.insert(owner);
        }
    }

    /// A completed reconcile puts the next look for drift off.
    pub(crate) fn note_resync(&mut self, uid: Uid) {
        let interval = self.options(uid).and_then(|options| options.resync);
        self.past(uid).resync_at = interval.map(|interval| self.now.mono.after(interval));
    }

    /// Invocations that have taken too long are cancelled and have failed.
    pub(crate) fn deadlines_pass(&mut self) {
        let mono = self.now.mono;
        let late = |at| at <= mono;
        let mut cancelled = Vec::new();
        for run in self.running.values_mut().filter(|run| !run.cancelled) {
            if run.deadline.is_some_and(late) {
                run.overdue = true;
                cancelled.push(run.uid);
            }
        }
        self.must_cancel.extend(cancelled.iter().copied());
        self.by_other.extend(cancelled.iter().copied());
        self.may_cancel.extend(cancelled);
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
                past.attempts = 0;
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
        let runs = self.run_of(uid).cloned();
        if runs.as_ref().is_none_or(|run| run.cancelled) {
            let later = self.timed_counts(uid);
            self.past(uid).retry_at = later;
            return;
        }
        let below: Vec<Uid> = self.catalog.descendants(uid).into_iter().collect();
        self.budget += 1 + 2 * below.len() as u64;
        self.note_may_linger(&below);
        self.by_time.extend(below.iter().copied());
        self.may_cancel.extend(below);
        for run in self.running.values_mut().filter(|run| run.uid == uid) {
            run.stopped = false;
        }
    }
}

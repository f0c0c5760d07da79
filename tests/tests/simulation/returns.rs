//! What comes back to the core: invocations, commits and time, and what the naive reference makes of it.

use std::time::Duration;

use rand::Rng;
use watershed_core::{CommitError, Error, ErrorKind, Input, InvocationId, Mono, Phase, Returned, Uid};

use crate::world::{Check, Past, Run, World};

impl World {
    /// An invocation comes back.
    pub(crate) fn returns(&mut self, invocation: InvocationId, result: Returned) -> Check {
        let Some(run) = self.running.remove(&invocation) else {
            return Ok(());
        };
        let uid = run.uid;
        if run.abandoned {
            return self.returns_after_all(invocation, &run, result);
        }
        let late = Returned::Failed(Error::transient("deadline", "it took too long"));
        let told = if run.overdue { &late } else { &result };
        let done = matches!(told, Returned::Done(_));
        if !self.catalog.items.contains_key(&uid) {
            return self.input(Input::Returned { invocation, result });
        }
        match (run.cancelled && !run.overdue, run.phase) {
            (true, Phase::Reconcile) => {}
            (true, phase) => {
                let same = self.catalog.items[&uid].deleted == (phase == Phase::Delete);
                self.op_failed_if(uid, run.stopped && same);
            }
            (false, Phase::Delete) if done => {
                self.catalog.items.remove(&uid);
                self.ops.remove(&uid);
                self.past.remove(&uid);
            }
            (false, Phase::Rename) if done => {
                if let Some(item) = self.catalog.items.get_mut(&uid) {
                    item.former.clear();
                }
                self.ops.remove(&uid);
                self.past(uid).attempts = 0;
                self.note_asked(uid);
            }
            (false, Phase::Delete | Phase::Rename) => self.op_failed_if(uid, true),
            (false, Phase::Reconcile) => self.completed(&run, told),
        }
        self.input(Input::Returned { invocation, result })
    }

    /// Whatever it says is dropped; what it kept out is asked for.
    fn returns_after_all(&mut self, invocation: InvocationId, run: &Run, result: Returned) -> Check {
        let kept: Vec<Uid> = self.catalog.items.keys().copied().collect();
        for uid in kept {
            if !self.catalog.is_live(uid) {
                continue;
            }
            let shares = self.catalog.items[&uid]
                .names()
                .intersection(&run.names)
                .next()
                .is_some();
            if uid == run.uid || shares {
                self.budget += 1 + 2 * self.catalog.descendants(uid).len() as u64;
            }
            if uid == run.uid {
                self.note_asked(uid);
            }
        }
        self.input(Input::Returned { invocation, result })
    }

    fn op_failed_if(&mut self, uid: Uid, failed: bool) {
        if let Some(op) = self.ops.get_mut(&uid).filter(|_| failed) {
            op.counts = false;
            self.past(uid).attempts += 1;
        }
    }

    fn completed(&mut self, run: &Run, result: &Returned) {
        let (step, wall) = (self.step, self.now.wall);
        let below = self.catalog.descendants(run.uid);
        let error = match result {
            Returned::Done(_) => None,
            Returned::Failed(error) => Some(&error.kind),
            Returned::Panicked(_) => Some(&ErrorKind::Permanent),
        };
        self.note_result(run.uid, error);
        self.note_resync(run.uid);
        let past = self.past(run.uid);
        (past.completed_start, past.completed_end) = (run.started, step);
        past.completed_seeing = run.sees_refs_of;
        // A time in the past asks for it again at once: it has settled in between all the same.
        past.seen_through_since_start = true;
        past.retrigger = match result {
            Returned::Done(outcome) => outcome.retrigger,
            Returned::Failed(error) if error.retrigger.is_some() => error.retrigger,
            _ => past.retrigger,
        };
        let is_past = past.retrigger.is_some_and(|at| at <= wall);
        past.past_times = if is_past { past.past_times + 1 } else { 0 };
        if is_past {
            past.retrigger = None;
            self.budget += 1 + 2 * below.len() as u64;
            self.note_may_linger(&below.into_iter().collect::<Vec<_>>());
        }
    }

    /// A timed request may have come for an ancestor of these.
    pub(crate) fn note_may_linger(&mut self, below: &[Uid]) {
        let runs = self.running.values_mut();
        for run in runs.filter(|run| below.contains(&run.uid)) {
            run.may_linger = true;
        }
    }

    pub(crate) fn answer_commit(&mut self) -> Check {
        let Some(commit) = self.store.in_flight.clone() else {
            return Ok(());
        };
        if self.rng.random_bool(0.85) {
            return self.commit(commit.id);
        }
        // It may have gone through although it says that it failed.
        if self.rng.random_bool(0.5) {
            self.store.write();
        }
        self.store.failures += 1;
        self.store.in_flight = None;
        let error = CommitError::Failed("disk".into());
        self.input(Input::CommitFailed {
            commit: commit.id,
            error,
        })?;
        // The core asks again by its timer; failing for 30 s is another test's.
        let at = self.timer.unwrap_or(self.now.mono);
        self.pass_to(at)?;
        let again = self.store.in_flight.as_ref().map(|commit| commit.id);
        if again == Some(commit.id) {
            self.commit(commit.id)
        } else {
            Err("the commit was not tried again".into())
        }
    }

    pub(crate) fn commit(&mut self, id: watershed_core::CommitId) -> Check {
        self.store.write();
        self.store.in_flight = None;
        self.store.failures = 0;
        self.input(Input::Committed(id))
    }

    fn pass_to(&mut self, at: Mono) -> Check {
        self.pass(at.since(self.now.mono).max(Duration::from_millis(2_000)))
    }

    pub(crate) fn pass(&mut self, wait: Duration) -> Check {
        self.now.mono = self.now.mono.after(wait);
        self.now.wall = self.now.wall.after(wait);
        self.time_falls_due();
        self.input(Input::Time)
    }

    /// Retrigger times fall due; deadlines of finishing invocations pass.
    fn time_falls_due(&mut self) {
        let wall = self.now.wall;
        let due: Vec<Uid> = self
            .past
            .iter()
            .filter(|(_, past)| past.retrigger.is_some_and(|at| at <= wall))
            .map(|(uid, _)| *uid)
            .collect();
        for uid in due {
            self.past(uid).retrigger = None;
            if self.catalog.is_live(uid) {
                self.note_timed(uid);
                self.must_unsettle.insert(uid);
            }
        }
        let mono = self.now.mono;
        let late: Vec<Uid> = self
            .running
            .values()
            .filter(|run| run.finish_by.is_some_and(|by| by <= mono))
            .map(|run| run.uid)
            .collect();
        self.must_cancel.extend(late.iter().copied());
        self.may_cancel.extend(late);
        self.deadlines_pass();
        for run in self.running.values_mut() {
            run.abandoned |= run.abandon_at.is_some_and(|at| at <= mono);
        }
        self.retries_fall_due();
        let waited = |past: &Past| past.nudges.and_then(|(_, waiting)| waiting);
        let nudged: Vec<Uid> = self
            .past
            .iter()
            .filter(|(_, past)| waited(past).is_some_and(|(_, due)| due <= mono))
            .map(|(uid, _)| *uid)
            .collect();
        for uid in nudged {
            self.nudge_counts(uid);
        }
        // When a failed rename is tried again and a time in the past taken up is not worked out here.
        let sources = self.catalog.items.keys().copied().filter(|uid| {
            self.ops.get(uid).is_some_and(|op| !op.counts)
                || self.past.get(uid).is_some_and(|past| past.past_times > 0)
        });
        let below: Vec<Uid> = sources.flat_map(|uid| self.catalog.descendants(uid)).collect();
        self.note_may_linger(&below);
        self.may_cancel.extend(below);
        let lingers = self.running.values().filter(|run| run.may_linger);
        self.may_cancel.extend(lingers.map(|run| run.uid));
        let count = self.catalog.items.len() as u64;
        self.budget += count * (1 + count);
    }
}

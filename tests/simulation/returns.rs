//! Returns of invocations, commits and time, and their effects on the naive reference.

use std::time::Duration;

use rand::Rng;
use watershed_core::{
    CommitError, Error, Input, InvocationId, Mono, Now, Phase, Returned, Settled, Stage, Timestamp, Uid,
};

use crate::starvation::DEFERRED_FOR;
use crate::world::{Check, Past, Run, Simulation};

impl Simulation {
    /// An invocation comes back.
    pub(crate) fn returns(&mut self, invocation: InvocationId, result: Returned) -> Check {
        let Some(run) = self.running.remove(&invocation) else {
            return Ok(());
        };
        let uid = run.uid;
        let is_passed_over = matches!(&result, Returned::Done(outcome) if outcome.passed_over);
        let is_dropped = run.cancelled || run.abandoned || run.overdue;
        if let Some(item) = self.catalog.items.get_mut(&uid) {
            item.ran |= is_dropped || !is_passed_over;
        }
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
            (true, Phase::Reconcile) => self.owe_still(uid),
            (true, phase) => {
                let same = self.catalog.items[&uid].deleted == (phase == Phase::Delete);
                self.op_failed_if(uid, run.stopped && same);
            }
            (false, Phase::Delete) if done => {
                self.note_leaves(uid, self.catalog.items[&uid].owner);
                self.catalog.items.remove(&uid);
                self.ops.remove(&uid);
                self.past.remove(&uid);
            }
            (false, Phase::Rename) if done => {
                if let Some(item) = self.catalog.items.get_mut(&uid) {
                    item.former.clear();
                }
                self.ops.remove(&uid);
                let now = self.now.mono;
                let past = self.past(uid);
                past.waiting_since = Some(now);
                self.forget_attempts(uid);
                self.note_error_gone(uid);
                self.note_asked(uid);
            }
            (false, Phase::Delete | Phase::Rename) => self.op_failed_if(uid, true),
            (false, Phase::Reconcile) => self.completed(&run, told),
        }
        self.input(Input::Returned { invocation, result })
    }

    /// Notes the late return of an abandoned invocation: its result is dropped, and the resources that it kept out are
    /// asked for.
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
                self.owe_still(uid);
            }
            let waits = matches!(
                self.stages.get(&uid),
                Some(Stage::Settled(Settled::Abandoned { .. }))
            );
            if uid == run.uid {
                self.note_asked(uid);
            }
            if uid == run.uid || (shares && waits) {
                self.note_disturbed(uid);
            }
        }
        self.input(Input::Returned { invocation, result })
    }

    fn op_failed_if(&mut self, uid: Uid, failed: bool) {
        let now = self.now.mono;
        if failed && self.ops.contains_key(&uid) {
            let past = self.past(uid);
            past.attempts += 1;
            past.waiting_since = Some(now);
            let wait = (1..past.attempts).fold(1, |wait: u64, _| (wait * 2).min(300));
            if let Some(op) = self.ops.get_mut(&uid) {
                op.counts = false;
                op.retry_at = Some(now.after(Duration::from_secs(wait)));
            }
        }
    }

    fn completed(&mut self, run: &Run, result: &Returned) {
        if matches!(result, Returned::Done(outcome) if outcome.passed_over) {
            return self.passed_over(run);
        }
        let step = self.step;
        let panic = match result {
            Returned::Panicked(message) => Error::permanent("panic", message.clone()),
            _ => Error::permanent("panic", ""),
        };
        let error = match result {
            Returned::Done(_) => None,
            Returned::Failed(error) => Some(error),
            Returned::Panicked(_) => Some(&panic),
        };
        let exhausted = self.note_result(run.uid, error);
        let told = error.cloned();
        self.note_resync(run.uid);
        let mono = self.now.mono;
        let past = self.past(run.uid);
        (past.passed_over, past.completed_start, past.completed_end) = (false, run.started, step);
        past.completed_seeing = run.sees_refs_of;
        past.waiting_since = Some(mono);
        // Requeued at once, it has settled in between all the same.
        past.seen_through_since_start = true;
        self.note_requeue(run, result);
        // An owner that is asked has been disturbed before a time that is due at once is looked at.
        self.note_left(run, (result, told.as_ref()));
        if exhausted {
            self.note_exhausted(run.uid);
        }
        self.requeue_falls_due(run.uid);
        self.take_up_retry(run.uid);
    }

    /// It did nothing on purpose: what stands of the run before stays, and what it was asked for is owed still.
    fn passed_over(&mut self, run: &Run) {
        let (step, mono) = (self.step, self.now.mono);
        self.note_resync(run.uid);
        self.owe_still(run.uid);
        let past = self.past(run.uid);
        (past.passed_over, past.completed_start, past.completed_end) = (true, run.started, step);
        past.completed_seeing = run.sees_refs_of;
        past.waiting_since = Some(mono);
        (past.forced, past.missed) = (false, false);
        past.seen_through_since_start = true;
    }

    /// The time that a completed run returned takes the place of what was still to come, no nearer to its start than
    /// the kind's interval.
    fn note_requeue(&mut self, run: &Run, result: &Returned) {
        let (at, wait) = match result {
            Returned::Done(outcome) => (outcome.retrigger, outcome.requeue_after),
            Returned::Failed(error) if error.retrigger.is_some() || error.requeue_after.is_some() => {
                (error.retrigger, error.requeue_after)
            }
            _ => return,
        };
        let Now { wall, mono } = self.now;
        let interval = self.options(run.uid).map(|options| options.requeue_interval);
        // A clock that was set back since makes it begin now.
        let earliest = run.begun_wall.min(wall).after(interval.unwrap_or_default());
        let past = self.past(run.uid);
        past.requeue = at.map(|at| at.max(earliest));
        past.wait_over = wait.map(|wait| mono.after(since(wall.after(wait).max(earliest), wall)));
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

    /// Somebody sets the clock on the wall, by up to a day; the other one goes on.
    pub(crate) fn clock_jumps(&mut self) -> Check {
        let most = if self.rng.random_bool(0.5) {
            20_000
        } else {
            86_400_000
        };
        self.now.wall.0 += self.rng.random_range(-most..=most);
        self.time_falls_due();
        self.input(Input::Time)
    }

    /// Has everything due on either clock fall due, each at its own time: that decides the order where one step spans
    /// several times.
    fn time_falls_due(&mut self) {
        while let Some(at) = self.first_alarm().filter(|at| *at <= self.now.mono) {
            self.alarms_ring(at);
        }
        let wall = self.now.wall;
        for uid in self.due(|past| past.requeue.is_some_and(|at| at <= wall)) {
            self.requeue_falls_due(uid);
        }
    }

    /// The time of the first alarm on the clock that never jumps.
    fn first_alarm(&self) -> Option<Mono> {
        let live = self.past.iter().filter(|(uid, _)| self.catalog.is_live(**uid));
        let alarms = live.flat_map(|(_, past)| {
            [
                past.nudge_at,
                past.retry_at,
                past.forgive_at,
                past.resync_at,
                past.wait_over,
            ]
        });
        let ops = self.ops.values().map(|op| op.retry_at);
        let open = self.running.values();
        let runs = open.flat_map(|run| [run.deadline_to_come(), run.end_to_come()]);
        alarms.chain(ops).chain(runs).flatten().min()
    }

    /// Has the alarms of one time ring, in the order in which the core takes them.
    fn alarms_ring(&mut self, at: Mono) {
        let failed = self.ops.iter();
        let failed = failed.filter(|(_, op)| op.retry_at.is_some_and(|it| it <= at));
        let failed: Vec<Uid> = failed.map(|(uid, _)| *uid).collect();
        for uid in failed {
            let later = if self.catalog.is_live(uid) {
                self.timed_counts(uid)
            } else {
                None
            };
            if let Some(op) = self.ops.get_mut(&uid) {
                op.retry_at = later;
            }
        }
        for uid in self.due(|past| past.nudge_at.is_some_and(|it| it <= at)) {
            if self.catalog.is_live(uid) {
                self.past(uid).nudge_at = None;
                self.note_nudge(uid);
            }
        }
        self.retries_fall_due(at);
        for uid in self.due(|past| past.wait_over.is_some_and(|it| it <= at)) {
            self.requeue_falls_due(uid);
        }
        self.deadlines_pass(at);
        for run in self.running.values_mut() {
            run.abandoned |= run.abandon_at.is_some_and(|it| it <= at);
        }
    }

    fn due(&self, is_due: impl Fn(&Past) -> bool) -> Vec<Uid> {
        let due = self.past.iter().filter(|(_, past)| is_due(past));
        due.map(|(uid, _)| *uid).collect()
    }

    /// Unless the clock was set back meanwhile. One that is deferred has another time.
    fn requeue_falls_due(&mut self, uid: Uid) {
        let Now { wall, mono } = self.now;
        let past = self.past(uid);
        let is_over = past.wait_over.is_some_and(|at| at <= mono);
        let is_due = is_over || past.requeue.is_some_and(|at| at <= wall);
        if is_due && self.catalog.is_live(uid) {
            let later = self.timed_counts(uid);
            let past = self.past(uid);
            (past.requeue, past.wait_over) = (None, later.map(|_| mono.after(DEFERRED_FOR)));
        }
    }
}

/// The time from one moment to a later one; none if that is not later.
pub(crate) fn since(at: Timestamp, from: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(at.0 - from.0).unwrap_or(0))
}

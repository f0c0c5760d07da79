//! Random moves, and their effects on the naive reference.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::Rng;
use rand::seq::IndexedRandom;
use watershed_core::{
    Batch, Call, CallId, Error, Input, InvocationId, Outcome, Phase, Refreshes, Returned, StateVersion,
    Target, Timestamp, Uid, Update, Work,
};

use crate::awaited::call_of;
use crate::model::{Asked, Item};
use crate::world::{Check, Expected, Handle, Op, Run, Simulation};

/// Until then a world is filled, however steady it is later.
const STEADY_FROM: u64 = 60;

impl Simulation {
    /// One random thing happens.
    pub(crate) fn advance(&mut self) -> Check {
        self.begin_step();
        if self.stale.is_some() && self.rng.random_bool(0.2) {
            return self.advance_stale();
        }
        if self.taste.steady && self.step > STEADY_FROM && self.rng.random_bool(0.9) {
            return self.advance_steadily();
        }
        match self.rng.random_range(0..100) {
            0..18 => self.edit_by_caller(),
            18..27 => self.request(),
            27..31 => self.nudge(),
            31..34 => self.cancel(),
            34..36 => self.wait_until_idle(),
            36..46 => self.call_from_inside(),
            46..49 => self.operate(),
            72..90 => self.answer_commit(),
            90..96 => self.pass(Duration::from_millis(self.rng.clone().random_range(1..3_000))),
            96 => self.pass(Duration::from_secs(61)),
            97 => self.forget(),
            98 => self.end(),
            99 => self.clock_jumps(),
            _ => self.complete(),
        }
    }

    /// Something outside moves, time passes, and what runs takes its time.
    fn advance_steadily(&mut self) -> Check {
        match self.rng.random_range(0..10) {
            0..4 => self.nudge(),
            4..7 => self.pass(Duration::from_millis(self.rng.clone().random_range(1..1_500))),
            7 => self.complete(),
            _ => self.answer_commit(),
        }
    }

    pub(crate) fn begin_step(&mut self) {
        self.step += 1;
        self.must_cancel.clear();
        self.may_cancel.clear();
        self.must_unsettle.clear();
        self.was_released = false;
    }

    pub(crate) fn next_call(&mut self) -> CallId {
        self.next_call += 1;
        CallId(self.next_call)
    }

    fn edit_by_caller(&mut self) -> Check {
        if !self.core.accepts_calls() {
            return Ok(());
        }
        let batch = self.taste.clone().batch(&mut self.rng, &self.catalog);
        self.edit(batch, None)
    }

    fn edit(&mut self, batch: Batch, by: Option<InvocationId>) -> Check {
        let id = self.next_call();
        let own = by
            .and_then(|by| self.running.get(&by))
            .map(|run| (run.uid, run.cancelled));
        let refused = by.is_some()
            && own.is_none_or(|(uid, cancelled)| cancelled || !self.catalog.items.contains_key(&uid));
        let own = own.map(|(uid, _)| uid);
        let before = self.catalog.clone();
        let kinds = self.kinds.clone();
        let unsupported = move |item: &Item| !kinds.iter().any(|options| options.kind == item.key.kind);
        let result = if refused {
            Err(())
        } else {
            self.catalog.apply(&batch, own, &unsupported)
        };
        let expected = if result.is_ok() {
            Expected::Applied
        } else {
            Expected::Refused
        };
        self.calls.insert(id, expected);
        let asked = result.unwrap_or_default();
        self.note_edit(&asked, own, &before);
        let since = self.last_invocation + 1;
        let call = call_of(id, by, batch);
        let is_expected = matches!(self.calls.get(&id), Some(Expected::Applied));
        if is_expected {
            self.expect_ends(id, by, since, &asked);
        }
        self.input(Input::Call { id, by, call })?;
        if is_expected {
            self.see_running(id);
        }
        let revision = self.core.revision();
        for uid in asked
            .edited
            .iter()
            .chain(&asked.ref_changed)
            .chain(&asked.deleted)
        {
            self.past(*uid).hold = revision;
        }
        Ok(())
    }

    /// Notes the requests, cancels and marks of an edit.
    fn note_edit(&mut self, asked: &Asked, own: Option<Uid>, before: &crate::model::Catalog) {
        let mut direct: BTreeSet<Uid> = asked.ref_changed.iter().copied().collect();
        direct.extend(asked.edited.iter().copied().filter(|uid| own != Some(*uid)));
        for uid in self.catalog.items.keys().copied().collect::<Vec<_>>() {
            if self.catalog.on_cycle(uid) && !before.on_cycle(uid) {
                direct.insert(uid);
                self.note_error_gone(uid);
            } else if self.catalog.is_live(uid) && before.on_cycle(uid) && !self.catalog.on_cycle(uid) {
                self.note_asked(uid);
                self.note_disturbed(uid);
                self.must_unsettle.insert(uid);
            }
        }
        if let Some(own) = own.filter(|own| asked.edited.contains(own)) {
            self.note_own_edit(own, asked, &mut direct);
            let spec_version = self.catalog.items[&own].spec_version;
            for run in self.running.values_mut().filter(|run| run.uid == own) {
                run.spec_version = spec_version;
            }
        }
        for uid in &direct {
            self.note_cancelling(*uid);
            self.forget_attempts(*uid);
        }
        for uid in asked.deleted.iter().chain(&asked.taken_up) {
            self.must_cancel.insert(*uid);
        }
        let gone = asked.gone.iter().copied().filter(|uid| own != Some(*uid));
        self.must_cancel.extend(gone);
        self.may_cancel.extend(self.must_cancel.iter().copied());
        self.note_ops(asked, own, before);
        for uid in &asked.repoliced {
            self.note_policy(*uid);
        }
    }

    /// C5: an own edit counts as seen, unless new refs add an ancestor that is unsettled once the batch is done.
    fn note_own_edit(&mut self, own: Uid, asked: &Asked, direct: &mut BTreeSet<Uid>) {
        if !asked.rewired.contains(&own) {
            return;
        }
        let unsettled = |uid: Uid| {
            let asked_for = |asked: &Uid| *asked == uid || self.catalog.ancestors(uid).contains(asked);
            self.is_unsettled(uid) || direct.iter().chain(&self.must_unsettle).any(asked_for)
        };
        let parents = self.catalog.parents(own);
        if parents
            .into_iter()
            .any(|parent| parent != own && unsettled(parent))
        {
            direct.insert(own);
        } else if let Some(run) = self.running.values_mut().find(|run| run.uid == own) {
            run.sees_refs_of = self.step;
        }
    }

    fn note_ops(&mut self, asked: &Asked, own: Option<Uid>, before: &crate::model::Catalog) {
        for uid in asked.gone.iter().chain(&asked.taken_up) {
            self.ops.remove(uid);
            self.ops.values_mut().for_each(|op| {
                op.waits.remove(uid);
            });
        }
        for uid in &asked.gone {
            self.past.remove(uid);
            let owner = before.items.get(uid).and_then(|item| item.owner);
            self.note_leaves(*uid, owner);
        }
        for uid in asked.deleted.iter().chain(&asked.renamed).chain(&asked.taken_up) {
            // What asks anew outdoes an earlier `cancel(name)` of an invocation that has yet to return.
            for run in self.running.values_mut().filter(|run| run.uid == *uid) {
                run.stopped = false;
                run.overdue &= own == Some(*uid);
            }
            let item = &self.catalog.items[uid];
            if item.is_marked() && self.is_supported(item) {
                self.ops.insert(
                    *uid,
                    Op {
                        counts: true,
                        waits: BTreeSet::new(),
                        retry_at: None,
                    },
                );
            }
            if asked.taken_up.contains(uid) {
                self.owe(*uid);
                self.note_taken_up(*uid);
            }
            let past = self.past(*uid);
            if asked.deleted.contains(uid) || asked.taken_up.contains(uid) {
                (past.requeue, past.wait_over, past.nudge_at) = (None, None, None);
                (past.attempts, past.backed_off) = (0, 0);
                (past.failure, past.retry_at) = (None, None);
                (past.forgive_at, past.resync_at) = (None, None);
                // Taken up, it is a new one, and gates like a new one.
                let over = asked.deleted.contains(uid);
                (past.seen_settled_since_start, past.seen_through_since_start) = (over, over);
            }
        }
        // Deletes wait for those of what referred to them or was owned by them, circles ignored.
        let targets = |uid: &Uid| -> BTreeSet<Uid> {
            let item = &before.items[uid];
            let refs = item
                .refs
                .iter()
                .filter_map(|reference| before.live(&reference.key()));
            refs.chain(item.owner.filter(|owner| before.items.contains_key(owner)))
                .collect()
        };
        let reaches = |from: &Uid, to: &Uid| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![*from]);
            while let Some(next) = open.pop() {
                if asked.deleted.contains(&next) && seen.insert(next) {
                    open.extend(targets(&next));
                }
            }
            seen.contains(to)
        };
        for uid in &asked.deleted {
            if !self.ops.contains_key(uid) {
                continue;
            }
            for target in targets(uid) {
                if target != *uid
                    && !reaches(&target, uid)
                    && asked.deleted.contains(&target)
                    && let Some(op) = self.ops.get_mut(&target)
                {
                    op.waits.insert(*uid);
                }
            }
        }
    }

    /// Requests 2 and 4: the resource and all below become pending, and what runs there is cancelled.
    fn note_cancelling(&mut self, uid: Uid) {
        self.note_asked(uid);
        self.note_disturbed(uid);
        if let Some(op) = self.ops.get_mut(&uid) {
            op.retry_at = None;
        }
        for run in self.running.values_mut().filter(|run| run.uid == uid) {
            run.overdue = false;
        }
        let below = self.catalog.descendants(uid);
        self.must_unsettle.insert(uid);
        self.must_unsettle.extend(below.iter().copied());
        self.must_cancel.insert(uid);
        let regular = |uid: &Uid| self.run_of(*uid).is_some_and(|run| run.phase == Phase::Reconcile);
        let running: Vec<Uid> = below.into_iter().filter(regular).collect();
        self.must_cancel.extend(running);
        self.may_cancel.extend(self.must_cancel.iter().copied());
    }

    fn request(&mut self) -> Check {
        let target = self.taste.clone().live_target(&mut self.rng, &self.catalog);
        let id = self.next_call();
        let refresh = self.rng.random_bool(0.3);
        let full = self.rng.random_bool(0.5);
        let Some(uid) = self.catalog.resolve(&target) else {
            self.calls.insert(id, Expected::Refused);
            return self.input(Input::Call {
                id,
                by: None,
                call: Call::Reconcile(target),
            });
        };
        self.expect_handle(id, uid, refresh);
        if !refresh {
            return self.input(Input::Call {
                id,
                by: None,
                call: Call::Reconcile(target),
            });
        }
        if let Some(item) = self.catalog.items.get_mut(&uid) {
            let Refreshes { plain, full: counter } = &mut item.refreshes;
            *(if full { counter } else { plain }) += 1;
        }
        self.input(Input::Call {
            id,
            by: None,
            call: Call::Refresh { target, full },
        })?;
        self.past(uid).hold = self.core.revision();
        Ok(())
    }

    fn nudge(&mut self) -> Check {
        let target = self.taste.clone().live_target(&mut self.rng, &self.catalog);
        let id = self.next_call();
        match self.catalog.resolve(&target) {
            None => {
                self.calls.insert(id, Expected::Refused);
            }
            Some(uid) => {
                self.note_nudge(uid);
                self.calls.insert(id, Expected::Done);
            }
        }
        self.input(Input::Call {
            id,
            by: None,
            call: Call::Nudge(target),
        })
    }

    /// Request 4, and what its handle has to be told. A refresh is for other work than what failed.
    pub(crate) fn expect_handle(&mut self, id: CallId, uid: Uid, forgets: bool) {
        self.note_cancelling(uid);
        if forgets {
            self.forget_attempts(uid);
        }
        let mut members = self.catalog.descendants(uid);
        members.insert(uid);
        let handle = Handle {
            asked: self.step,
            since: self.last_invocation + 1,
            members,
            outcome: false,
            settled: false,
            forgotten: false,
        };
        self.handles.insert(id, handle);
        self.calls.insert(id, Expected::Handle);
    }

    /// Request 8: it counts at once, unless it is deferred; one that is deferred already keeps its time.
    pub(crate) fn note_nudge(&mut self, uid: Uid) {
        let later = self.timed_counts(uid);
        let past = self.past(uid);
        past.nudge_at = later.map(|later| past.nudge_at.unwrap_or(later));
    }

    fn cancel(&mut self) -> Check {
        let target = self.taste.clone().live_target(&mut self.rng, &self.catalog);
        let id = self.next_call();
        // By its uid, what is being deleted is found as well; only a delete that runs is cancelled.
        let deleted = match &target {
            Target::Uid(uid) => self.catalog.items.contains_key(uid).then_some(*uid),
            Target::Key(_) | Target::Name(_) => None,
        };
        match self.catalog.resolve(&target).or(deleted) {
            None => {
                self.calls.insert(id, Expected::Refused);
            }
            Some(uid) if !self.catalog.is_live(uid) && !self.running.values().any(|run| run.uid == uid) => {
                self.calls.insert(id, Expected::Done);
            }
            Some(uid) => {
                self.calls.insert(id, Expected::Done);
                self.must_cancel.insert(uid);
                self.may_cancel.insert(uid);
                let unsettled = self.is_unsettled(uid);
                self.past(uid).stopped |= unsettled;
                for run in self.running.values_mut().filter(|run| run.uid == uid) {
                    (run.stopped, run.overdue) = (true, false);
                }
            }
        }
        self.input(Input::Call {
            id,
            by: None,
            call: Call::Cancel(target),
        })
    }

    fn wait_until_idle(&mut self) -> Check {
        let id = self.next_call();
        self.calls.insert(id, Expected::Idle);
        self.input(Input::Call {
            id,
            by: None,
            call: Call::WaitUntilIdle,
        })
    }

    fn call_from_inside(&mut self) -> Check {
        let Some((by, run)) = self.any_run() else {
            return Ok(());
        };
        match self.rng.random_range(0..4) {
            0 => {
                let batch = self.taste.clone().batch(&mut self.rng, &self.catalog);
                self.edit(batch, Some(by))
            }
            1 => self.edit_itself(by, &run),
            _ => self.write_state(by, &run),
        }
    }

    fn edit_itself(&mut self, by: InvocationId, run: &Run) -> Check {
        let target = Target::Uid(run.uid);
        let edit = if self.rng.random_bool(0.2) {
            watershed_core::Edit::delete(target)
        } else {
            let spec = [self.rng.random_range(0..4_u8)].as_slice().into();
            watershed_core::Edit::update(
                target,
                Update {
                    spec: Some((spec, 1)),
                    ..Update::default()
                },
            )
        };
        self.edit(edit.into(), Some(by))
    }

    fn write_state(&mut self, by: InvocationId, run: &Run) -> Check {
        let id = self.next_call();
        let state = [self.rng.random_range(0..4_u8)];
        let expected = self
            .rng
            .random_bool(0.1)
            .then(|| StateVersion(self.rng.random_range(0..3)));
        let answer = match self.catalog.items.get_mut(&run.uid) {
            None => Expected::Refused,
            Some(_) if run.abandoned => Expected::Refused,
            Some(item) if expected.is_some_and(|expected| expected != item.state_version) => {
                Expected::Refused
            }
            Some(item) => {
                if item.state.as_deref() != Some(&state) {
                    item.state = Some(state.to_vec());
                    item.state_version = item.state_version.next();
                }
                Expected::Done
            }
        };
        self.calls.insert(id, answer);
        let call = Call::WriteState {
            state: state.as_slice().into(),
            expected,
        };
        self.input(Input::Call {
            id,
            by: Some(by),
            call,
        })
    }

    fn any_run(&mut self) -> Option<(InvocationId, Run)> {
        let running: Vec<_> = self.running.iter().map(|(id, run)| (*id, run.clone())).collect();
        running.choose(&mut self.rng).cloned()
    }

    fn complete(&mut self) -> Check {
        let Some((invocation, run)) = self.any_run() else {
            return Ok(());
        };
        // One that was cancelled may ignore that for a while.
        if run.cancelled && self.rng.random_bool(0.3) {
            return Ok(());
        }
        let wall = self.now.wall.0;
        let (retrigger, requeue_after) = match self.rng.random_range(0..12) {
            0 => (Some(Timestamp(wall - 5)), None),
            1 => {
                // A time, a wait, or both: by the same draw, so that seeds mean what they did.
                let ms = self.rng.random_range(1..20_000);
                let (at, wait) = (Timestamp(wall + ms), Duration::from_millis(ms as u64));
                match ms % 4 {
                    0 => (None, Some(wait)),
                    1 => (Some(at), Some(wait)),
                    2 => (Some(at), Some(wait / 2)),
                    _ => (Some(at), None),
                }
            }
            _ => (None, None),
        };
        let result = match self.rng.random_range(0..8) {
            0 => {
                let mut error = match self.rng.random_bool(0.6) {
                    true => Error::transient("flaky", "it did not work this time"),
                    false => Error::permanent("broken", "it does not work"),
                };
                (error.retrigger, error.requeue_after) = (retrigger, requeue_after);
                let seconds = self.rng.random_range(0..6);
                error.retry_after = self.rng.random_bool(0.2).then(|| Duration::from_secs(seconds));
                Returned::Failed(error)
            }
            1 => Returned::Panicked("oh".into()),
            2 if self.taste.passes_over && run.phase == Phase::Reconcile => {
                Returned::Done(Outcome::passed_over())
            }
            _ => {
                let outcome = Outcome {
                    work: Work::Built,
                    retrigger,
                    requeue_after,
                    ..Outcome::default()
                };
                Returned::Done(match self.taste.owners_look {
                    true => {
                        let draw = self.rng.random();
                        self.looked_at(run.uid, outcome, draw)
                    }
                    false => outcome,
                })
            }
        };
        self.returns(invocation, result)
    }

    fn forget(&mut self) -> Check {
        let open: Vec<CallId> = self.handles.keys().copied().collect();
        let drawn = open.choose(&mut self.rng).copied();
        let Some(call) = drawn.filter(|call| !self.calls.contains_key(call)) else {
            return Ok(());
        };
        if let Some(handle) = self.handles.get_mut(&call) {
            handle.forgotten = true;
        }
        self.input(Input::Forget(call))
    }
}

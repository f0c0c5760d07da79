//! Nothing external happens any more: the world must come to rest, and rightly so (C11).

use watershed_core::{Input, Outcome, Parents, Required, Returned, Settled, Stage, Uid, Work};

use crate::world::{Check, Simulation, ensure};

/// More than enough rounds for a catalog of this size: each round ends an invocation or a commit.
const ROUNDS_MAX: usize = 5_000;

impl Simulation {
    /// Lets everything return and commit, without any further request, until nothing moves.
    pub(crate) fn settle(&mut self) -> Check {
        for _ in 0..ROUNDS_MAX {
            self.begin_step();
            if let Some(commit) = self.store.in_flight.as_ref().map(|commit| commit.id) {
                self.commit(commit)?;
            } else if let Some(invocation) = self.running.keys().next().copied() {
                let done = Returned::Done(Outcome::from_work(Work::Checked));
                self.returns(invocation, done)?;
            } else {
                // One more look, in case only a flush was missing.
                self.input(Input::Time)?;
                if self.running.is_empty() && self.store.in_flight.is_none() {
                    return self.check_rest();
                }
            }
            self.check_rules()?;
        }
        Err("it does not come to rest".into())
    }

    fn check_rest(&mut self) -> Check {
        self.check_rules()?;
        self.check_explanations()?;
        ensure(self.is_durable(), "durability", || {
            "changes that nobody commits".into()
        })?;
        for (uid, item) in &self.catalog.items {
            ensure(!self.is_unsettled(*uid), "C11", || {
                format!("deadlock: {} is still pending", item.key)
            })?;
        }
        ensure(self.core.is_idle(), "C18", || "it is not idle".into())?;
        if let Some((call, expected)) = self.calls.iter().next() {
            return Err(format!("{call:?} was never answered with {expected:?}"));
        }
        for (call, handle) in self.handles.iter().filter(|(_, handle)| !handle.forgotten) {
            ensure(handle.outcome, "handles", || {
                format!("{call:?} never had an outcome")
            })?;
            ensure(handle.settled, "handles", || format!("{call:?} never settled"))?;
        }
        self.handles.clear();
        self.check_ends_at_rest()?;
        let live: Vec<Uid> = self
            .catalog
            .items
            .keys()
            .copied()
            .filter(|uid| self.catalog.is_live(*uid))
            .collect();
        live.into_iter().try_for_each(|uid| self.check_c11(uid))
    }

    /// Its last completed invocation started after the last request for it and its parents' last completions.
    fn check_c11(&self, uid: Uid) -> Check {
        let item = &self.catalog.items[&uid];
        let excused = match self.stages.get(&uid) {
            Some(Stage::Settled(Settled::Retrying)) => self.ops.contains_key(&uid),
            Some(Stage::Settled(why)) => !matches!(why, Settled::Idle | Settled::Failed),
            _ => false,
        };
        let Some(past) = self.past.get(&uid) else {
            return Ok(());
        };
        let attempts = self.store.rows[&uid].attempts;
        ensure(attempts == past.attempts, "retries", || {
            format!("{} has failed {attempts} times, not {}", item.key, past.attempts)
        })?;
        if excused || past.stopped {
            return Ok(());
        }
        ensure(past.completed_start >= past.asked, "C11", || {
            format!(
                "{} was asked for at {} and last started at {}",
                item.key, past.asked, past.completed_start
            )
        })?;
        let changed = self
            .options(uid)
            .is_some_and(|options| options.parents == Parents::Changed);
        for parent in self.catalog.parents(uid) {
            let finished = self.past.get(&parent).map_or(0, |past| past.completed_end);
            ensure(changed || past.completed_seeing >= finished, "C11", || {
                format!(
                    "{} did not run after {}",
                    item.key, self.catalog.items[&parent].key
                )
            })?;
        }
        // The run before the one that was passed over may have seen less.
        match changed && !past.passed_over {
            true => self.check_seen(uid),
            false => Ok(()),
        }
    }

    /// Released by `parents: changed` only if it had seen what there is to see.
    fn check_seen(&self, uid: Uid) -> Check {
        let row = &self.store.rows[&uid];
        let Some(seen) = row.last_run.as_ref().and_then(|last| last.seen.as_ref()) else {
            return Err(format!("C11: {} never ran", row.key()));
        };
        for (reference, seen) in row.refs.iter().zip(seen.refs.iter()) {
            let target = self
                .catalog
                .live(&reference.key())
                .map(|uid| (uid, self.catalog.items[&uid].state_version));
            let edge = reference.required != Required::Exists;
            ensure(!edge || seen.target == target, "C11", || {
                format!("{} missed a change of {reference}", row.key())
            })?;
        }
        Ok(())
    }
}

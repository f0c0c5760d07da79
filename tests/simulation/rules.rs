//! The rules, checked after each step by recomputing everything from the naive catalog.

use std::collections::BTreeSet;

use watershed_core::{InvocationId, Key, Kind, Phase, Pool, Required, Settled, Stage, Target, Uid};

use crate::model::Item;
use crate::world::{Check, Release, Run, Simulation, ensure};

impl Simulation {
    /// Everything that holds between any two inputs.
    pub(crate) fn check_rules(&mut self) -> Check {
        self.note_settled();
        self.check_closure()?;
        self.check_c2()?;
        self.check_c4()?;
        self.check_starts()?;
        self.note_open_gate();
        self.check_stages()?;
        self.check_progress()
    }

    fn note_settled(&mut self) {
        let step = self.step;
        let settled: Vec<Uid> = self
            .catalog
            .items
            .keys()
            .copied()
            .filter(|uid| !self.is_unsettled(*uid))
            .collect();
        for uid in settled {
            let past = self.past(uid);
            past.settled = step;
            (past.seen_settled_since_start, past.seen_through_since_start) = (true, true);
        }
    }

    fn key(&self, uid: Uid) -> Key {
        self.catalog
            .items
            .get(&uid)
            .map_or_else(|| Key::new("gone", "gone"), |item| item.key.clone())
    }

    /// C4: asking for a resource makes it and all of its descendants pending.
    fn check_closure(&self) -> Check {
        for uid in self
            .catalog
            .items
            .keys()
            .filter(|uid| self.catalog.is_live(**uid) && self.is_unsettled(**uid))
        {
            for below in self.catalog.descendants(*uid) {
                ensure(self.is_unsettled(below), "C4", || {
                    format!("{} is settled below {}", self.key(below), self.key(*uid))
                })?;
            }
        }
        for uid in self
            .must_unsettle
            .iter()
            .filter(|uid| self.catalog.is_live(**uid))
        {
            let idle = matches!(
                self.stages.get(uid),
                Some(Stage::Settled(Settled::Idle | Settled::Failed))
            );
            let released = self
                .options(*uid)
                .is_some_and(|options| options.kind.as_str() == "changed");
            ensure(!idle || released, "C4", || {
                format!(
                    "{} was asked for and is settled: {:?}",
                    self.key(*uid),
                    self.past.get(uid)
                )
            })?;
        }
        Ok(())
    }

    fn regular(&self) -> impl Iterator<Item = &Run> {
        self.active().filter(|run| run.phase == Phase::Reconcile)
    }

    /// C2: on any path at most one invocation that is not cancelled.
    fn check_c2(&self) -> Check {
        for run in self.regular().filter(|run| !run.cancelled) {
            let above = self.catalog.ancestors(run.uid);
            for other in self
                .regular()
                .filter(|other| !other.cancelled && other.uid != run.uid)
            {
                ensure(!above.contains(&other.uid), "C2", || {
                    format!(
                        "{} and {} run on one path",
                        self.key(run.uid),
                        self.key(other.uid)
                    )
                })?;
            }
        }
        Ok(())
    }

    fn check_c4(&self) -> Check {
        for run in self
            .running
            .values()
            .filter(|run| run.started < self.step && self.must_cancel.contains(&run.uid))
        {
            ensure(run.cancelled, "C4", || {
                format!("{} was not cancelled", self.key(run.uid))
            })?;
        }
        for run in self.regular().filter(|run| self.catalog.on_cycle(run.uid)) {
            ensure(run.cancelled, "C7", || {
                format!("{} runs on a cycle", self.key(run.uid))
            })?;
        }
        Ok(())
    }

    /// C3, C6 and C7, for what started in this step.
    fn check_starts(&self) -> Check {
        for (id, run) in self.running.iter().filter(|(_, run)| run.started == self.step) {
            let Some(item) = self.catalog.items.get(&run.uid) else {
                continue;
            };
            match run.phase {
                Phase::Delete => self.check_delete(run.uid, item)?,
                Phase::Rename => {
                    let deletes = self.counting(true);
                    ensure(!item.former.is_empty() && !item.deleted, "C6", || {
                        format!("{} has no mark", item.key)
                    })?;
                    ensure(deletes.is_empty() || self.was_released, "C6", || {
                        format!("{} is renamed before deletes", item.key)
                    })?;
                }
                Phase::Reconcile => self.check_regular(*id, run.uid, item)?,
            }
        }
        Ok(())
    }

    fn check_delete(&self, uid: Uid, item: &Item) -> Check {
        ensure(item.deleted, "C6", || {
            format!("{} is not to be deleted", item.key)
        })?;
        let Some(op) = self.ops.get(&uid) else {
            return Err(format!("C6: {} has nothing to delete", item.key));
        };
        let first = op
            .waits
            .iter()
            .find(|other| self.ops.get(other).is_some_and(|op| op.counts));
        let is_unsure = self.released.as_ref().is_some_and(|release| release.unsure);
        ensure(first.is_none() || is_unsure, "C6", || {
            format!("{} is deleted before what refers to it", item.key)
        })
    }

    fn check_regular(&self, id: InvocationId, uid: Uid, item: &Item) -> Check {
        let key = &item.key;
        ensure(!item.is_marked(), "C6", || {
            format!("{key} has an unfinished delete or rename")
        })?;
        for above in self.catalog.ancestors(uid) {
            ensure(!self.is_unsettled(above), "C3", || {
                format!("{key} starts below {}", self.key(above))
            })?;
        }
        let below = self.catalog.descendants(uid);
        let before = self.running.range(..id).map(|(_, run)| run);
        let before = before.filter(|run| !run.abandoned);
        for run in before.filter(|run| run.uid != uid && below.contains(&run.uid)) {
            ensure(false, "C3", || {
                format!("{key} starts while {} runs below", self.key(run.uid))
            })?;
        }
        ensure(!self.catalog.on_cycle(uid), "C7", || {
            format!("{key} is on a cycle")
        })?;
        let held = !self.counting(true).is_empty() || !self.counting(false).is_empty();
        ensure(!held || self.was_released, "C6", || {
            format!("{key} starts before deletes and renames")
        })?;
        ensure(self.holder(uid, item).is_none(), "C6", || {
            format!("{key} starts on a name that is held")
        })?;
        let mut family = self.catalog.ancestors(uid);
        family.insert(uid);
        let stuck = self
            .running
            .values()
            .find(|run| run.abandoned && family.contains(&run.uid));
        ensure(stuck.is_none(), "C10", || {
            format!("{key} starts below an abandoned invocation")
        })?;
        let forced = self.past.get(&uid).is_some_and(|past| past.forced);
        ensure(!item.paused || forced, "C19", || {
            format!("{key} starts although it is paused")
        })?;
        ensure(!self.is_gated(uid), "request 1", || {
            format!("{key} starts before the first kinds")
        })?;
        ensure(self.unmet(item).is_none(), "refs", || {
            format!("{key} starts without a ref")
        })?;
        let strict = item
            .refs
            .iter()
            .filter(|reference| reference.required == Required::Ready);
        let mut targets = strict.filter_map(|reference| self.catalog.live(&reference.key()));
        let unready = targets.find(|target| !self.was_left_ready(*target));
        ensure(unready.is_none(), "refs", || {
            format!(
                "{key} starts although {} is not ready",
                self.key(unready.unwrap_or(uid))
            )
        })
    }

    /// Deletes, or renames, that hold others back.
    pub(crate) fn counting(&self, deletes: bool) -> Vec<Uid> {
        let counts = |uid: &Uid| {
            self.catalog
                .items
                .get(uid)
                .is_some_and(|item| item.deleted == deletes)
        };
        self.ops
            .iter()
            .filter(|(uid, op)| op.counts && counts(uid))
            .map(|(uid, _)| *uid)
            .collect()
    }

    /// Returns a resource that still has to do with the present name of another.
    fn holder(&self, uid: Uid, item: &Item) -> Option<Uid> {
        let holds = |(other, op_item): &(&Uid, &Item)| {
            **other != uid && self.ops.contains_key(other) && op_item.names().contains(&item.key)
        };
        self.catalog.items.iter().find(holds).map(|(other, _)| *other)
    }

    pub(crate) fn waiting_for_names(&self) -> Vec<Uid> {
        let waits = |stage: &Stage| matches!(stage, Stage::Settled(Settled::WaitingForName { .. }));
        let waiting = self.stages.iter().filter(|(_, stage)| waits(stage));
        waiting.map(|(uid, _)| *uid).collect()
    }

    /// Request 9: what they waited for is there, though they may have settled again at once.
    pub(crate) fn note_free_names(&mut self, waiting: &[Uid]) {
        for uid in waiting {
            if self.has_its_name(*uid) {
                self.note_disturbed(*uid);
            }
        }
    }

    /// They are asked for again, and what is below them with them, even where they settle at once, as paused ones do.
    pub(crate) fn owe_what_has_its_name(&mut self, waiting: &[Uid]) {
        for uid in waiting {
            if self.has_its_name(*uid) {
                self.owe(*uid);
            }
        }
    }

    fn has_its_name(&self, uid: Uid) -> bool {
        let item = self.catalog.items.get(&uid).filter(|item| !item.deleted);
        // What held it may have deleted itself, and run on under the name (C1).
        let is_used = |item: &Item| {
            self.running
                .values()
                .any(|run| run.uid != uid && run.names.contains(&item.key))
        };
        item.is_some_and(|item| self.holder(uid, item).is_none() && !is_used(item))
    }

    fn unmet(&self, item: &Item) -> Option<Key> {
        let missing = |key: &Key| self.catalog.live(key).is_none();
        let unmet = item
            .refs
            .iter()
            .find(|reference| reference.required != Required::Completed && missing(&reference.key()));
        unmet.map(|reference| reference.key())
    }

    fn is_gated(&self, uid: Uid) -> bool {
        let is_first = |uid: Uid| self.options(uid).is_some_and(|options| options.first);
        let waits = |other: &Uid| {
            let fresh = !self
                .past
                .get(other)
                .is_some_and(|past| past.seen_through_since_start);
            fresh
                && is_first(*other)
                && self.catalog.is_live(*other)
                && self.catalog.ancestors(*other).into_iter().all(is_first)
        };
        !is_first(uid) && self.catalog.items.keys().any(waits)
    }

    /// Once the gate was opened for those that wait for another kind, it stays open.
    fn note_open_gate(&mut self) {
        let is_first = |uid: Uid| self.options(uid).is_some_and(|options| options.first);
        let passed = self
            .regular()
            .any(|run| run.started == self.step && !is_first(run.uid));
        // It may have opened for one that waits for another kind, although nothing could start then either.
        let may_have_opened_for =
            |uid: Uid| self.catalog.is_live(uid) && !self.catalog.ancestors(uid).into_iter().all(is_first);
        let first = self.catalog.items.keys().copied().filter(|uid| is_first(*uid));
        let first: Vec<Uid> = first.filter(|uid| passed || may_have_opened_for(*uid)).collect();
        for uid in first {
            self.past(uid).seen_through_since_start = true;
        }
    }

    /// A resource of a `first` kind that waits for one of another kind holds the rest back while anything runs.
    fn may_be_gated(&self, uid: Uid) -> bool {
        let is_first = |uid: Uid| self.options(uid).is_some_and(|options| options.first);
        let fresh = |uid: &Uid| {
            !self
                .past
                .get(uid)
                .is_some_and(|past| past.seen_settled_since_start)
        };
        let mut first = self
            .catalog
            .items
            .keys()
            .filter(|uid| is_first(**uid) && self.catalog.is_live(**uid));
        !is_first(uid) && self.active().next().is_some() && first.any(fresh)
    }

    /// Checks the stages of settled resources.
    fn check_stages(&self) -> Check {
        for (uid, stage) in &self.stages {
            let (Stage::Settled(why), Some(item)) = (stage, self.catalog.items.get(uid)) else {
                continue;
            };
            let right = match why {
                Settled::OnCycle => self.catalog.on_cycle(*uid),
                Settled::Unsupported => !self.is_supported(item),
                Settled::Cancelled => self.past.get(uid).is_some_and(|past| past.stopped),
                Settled::Retrying => {
                    self.ops.get(uid).is_some_and(|op| !op.counts)
                        || self.past.get(uid).is_some_and(|past| past.retry_at.is_some())
                }
                Settled::Paused => item.paused,
                Settled::Abandoned { .. } => self.is_kept_out(*uid),
                Settled::WaitingForName { .. } => self.holder(*uid, item).is_some() || self.clashes(item),
                Settled::WaitingForRef(reference) => {
                    self.catalog.live(&reference.key()).is_none() || reference.required == Required::Ready
                }
                Settled::Idle | Settled::Failed => {
                    self.is_supported(item) && !item.is_marked() && !self.catalog.on_cycle(*uid)
                }
                Settled::Unreadable(_) => false,
            };
            ensure(right, "stage", || {
                let explained = self.core.explain(&Target::Uid(*uid));
                let past = self.past.get(uid);
                format!("{} says {why:?}: {past:?} {explained:?}", item.key)
            })?;
        }
        Ok(())
    }

    /// No lost wake-ups: with room to run and nothing awaited, whatever could start has started.
    fn check_progress(&self) -> Check {
        if !self.is_durable() || self.active().count() >= self.limits.concurrency {
            return Ok(());
        }
        for (uid, item) in &self.catalog.items {
            if matches!(self.stages.get(uid), Some(Stage::Pending))
                && self.has_room(item)
                && !self.clashes(item)
            {
                let waits = if item.deleted {
                    self.delete_waits(*uid)
                } else {
                    self.regular_waits(*uid, item)
                };
                ensure(waits, "C11", || {
                    format!("{} waits for nothing: {item:?} {:?}", item.key, self.ops.get(uid))
                })?;
            }
        }
        Ok(())
    }

    pub(crate) fn has_room(&self, item: &Item) -> bool {
        let options = self.kinds.iter().find(|options| options.kind == item.key.kind);
        let limit = options
            .and_then(|options| options.concurrency)
            .unwrap_or(usize::MAX);
        let of_kind = self
            .active()
            .filter(|run| run.names.iter().any(|name| name.kind == item.key.kind));
        let pool = options.and_then(|options| options.pool.as_ref());
        of_kind.count() < limit && pool.is_none_or(|pool| self.places_taken(pool) < pool.limit)
    }

    /// Returns the number of invocations with a place in a pool; abandoned ones keep theirs if it is exclusive.
    pub(crate) fn places_taken(&self, pool: &Pool) -> usize {
        let of_pool = |kind: &Kind| {
            let mut kinds = self.kinds.iter().filter(|options| options.kind == *kind);
            kinds.any(|options| options.pool.as_ref().is_some_and(|other| other.name == pool.name))
        };
        let takes = |run: &&Run| {
            (pool.exclusive || !run.abandoned) && run.names.iter().any(|name| of_pool(&name.kind))
        };
        self.running.values().filter(takes).count()
    }

    /// C10: its own invocation, one above it, or one that has a name of one of them, is abandoned.
    fn is_kept_out(&self, uid: Uid) -> bool {
        let mut family = self.catalog.ancestors(uid);
        family.insert(uid);
        family.iter().any(|uid| self.keeps_out(*uid))
    }

    fn keeps_out(&self, uid: Uid) -> bool {
        let names = self.catalog.items[&uid].names();
        let holds = |run: &&Run| run.uid == uid || run.names.intersection(&names).next().is_some();
        self.running
            .values()
            .filter(|run| run.abandoned)
            .any(|run| holds(&run))
    }

    /// Deletes and renames that an abandoned invocation keeps out hold nobody back.
    pub(crate) fn free_kept_out(&mut self) {
        let kept: Vec<Uid> = self.ops.keys().copied().collect();
        for uid in kept
            .into_iter()
            .filter(|uid| self.keeps_out(*uid))
            .collect::<Vec<_>>()
        {
            if let Some(op) = self.ops.get_mut(&uid) {
                op.counts = false;
            }
        }
    }

    /// C1 keeps it out.
    pub(crate) fn clashes(&self, item: &Item) -> bool {
        let names = item.names();
        self.running
            .values()
            .any(|run| run.names.intersection(&names).next().is_some())
    }

    fn delete_waits(&self, uid: Uid) -> bool {
        let counting: BTreeSet<Uid> = self
            .counting(true)
            .into_iter()
            .filter(|other| *other != uid)
            .collect();
        !counting.is_empty()
    }

    fn regular_waits(&self, uid: Uid, item: &Item) -> bool {
        let family = if self.catalog.on_cycle(uid) {
            self.cycle_of(uid)
        } else {
            BTreeSet::from([uid])
        };
        // A member of a cycle may wait for a rename of another that C1 or a limit keeps out.
        let kept_out = |other: &Uid| {
            let item = &self.catalog.items[other];
            *other != uid && (self.clashes(item) || !self.has_room(item))
        };
        let renaming = |other: &Uid| self.ops.get(other).is_some_and(|op| op.counts || kept_out(other));
        let deletes = !self.counting(true).is_empty();
        if !item.former.is_empty() && (deletes || self.ops.get(&uid).is_some_and(|op| op.counts)) {
            return deletes;
        }
        let above = |uid: &Uid| {
            self.catalog
                .parents(*uid)
                .into_iter()
                .any(|it| !family.contains(&it) && self.is_unsettled(it))
        };
        let held = !self.counting(true).is_empty() || !self.counting(false).is_empty();
        let below = self.catalog.descendants(uid);
        family.iter().any(above)
            || family
                .iter()
                .any(|uid| self.run_of(*uid).is_some() || renaming(uid))
            || self.active().any(|run| below.contains(&run.uid))
            || held
            || self.is_gated(uid)
            || self.may_be_gated(uid)
    }

    pub(crate) fn cycle_of(&self, uid: Uid) -> BTreeSet<Uid> {
        let below = self.catalog.descendants(uid);
        self.catalog
            .ancestors(uid)
            .intersection(&below)
            .copied()
            .collect()
    }

    /// Time passes for deletes and renames that hold others back.
    pub(crate) fn age_ops(&mut self) {
        self.release_if_due();
        self.was_released |= self.released.is_some();
    }

    /// Once a drain is over its limit, what is unfinished counts no longer, and what is pending starts before the next.
    fn release_if_due(&mut self) {
        let now = self.now.mono;
        let counts = self.ops.values().any(|op| op.counts);
        match &self.released {
            Some(release) if release.over => (self.released, self.drain) = (None, counts.then_some(now)),
            Some(_) => return,
            None => {}
        }
        let is_over = |since| now.since(since) >= self.limits.drain_limit;
        if !counts || !self.drain.is_some_and(is_over) {
            return;
        }
        let first = self.pending_regular();
        // One whose rename has failed may be pending as regular work or for that rename.
        let unsure = first.is_empty() || first.iter().any(|uid| self.ops.contains_key(uid));
        self.ops.values_mut().for_each(|op| op.counts = false);
        self.drain = None;
        self.released = Some(Release {
            first,
            fresh: true,
            over: false,
            unsure,
        });
    }

    fn pending_regular(&self) -> BTreeSet<Uid> {
        let pending = |uid: &Uid| {
            let counts = self.ops.get(uid).is_some_and(|op| op.counts);
            let waits = matches!(self.stages.get(uid), Some(Stage::Pending) | None);
            self.catalog.is_live(*uid) && !counts && waits
        };
        self.catalog.items.keys().copied().filter(pending).collect()
    }

    /// After an input: when the drain began, and whether all that were pending at its limit have had their turn.
    pub(crate) fn follow_drain(&mut self) {
        let counts = self.ops.values().any(|op| op.counts);
        let Some(mut release) = self.released.take() else {
            self.drain = counts.then(|| self.drain.unwrap_or(self.now.mono));
            return;
        };
        if std::mem::take(&mut release.fresh) {
            // What has become pending with the same input may have done so before or after.
            release.unsure |= !self.pending_regular().is_subset(&release.first);
        }
        let (before, live) = (release.first.len(), |uid: &Uid| self.catalog.is_live(*uid));
        release.first.retain(live);
        let deleted = before - release.first.len();
        release
            .first
            .retain(|uid| matches!(self.stages.get(uid), Some(Stage::Pending) | None));
        let at_rest = self.is_durable() && self.catalog.items.keys().all(|uid| !self.is_unsettled(*uid));
        if release.unsure && at_rest {
            // Whichever they were, they have had their turn.
            self.released = Some(Release {
                over: true,
                unsure: false,
                ..release
            });
        } else if release.unsure || !release.first.is_empty() {
            self.released = Some(release);
        } else if deleted == before {
            self.drain = counts.then_some(self.now.mono); // gone before the queue was looked at
        } else {
            self.released = Some(Release {
                over: true,
                ..release
            });
        }
    }
}

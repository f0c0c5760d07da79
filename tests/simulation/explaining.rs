//! Checks of `explain` against the naive reference.

use std::collections::BTreeSet;
use std::time::Duration;

use watershed_core::{Blocker, Explanation, Phase, Required, Settled, Stage, Subject, Target, Uid};

use crate::model::Item;
use crate::starvation::DEFERRED_FOR;
use crate::world::{Check, Simulation, ensure};

/// As many failures at the root as are named.
const ROOTS_MAX: usize = 16;

impl Simulation {
    /// Checks that the explanation of each resource is true.
    pub(crate) fn check_explanations(&self) -> Check {
        let known: Vec<Uid> = self.catalog.items.keys().copied().collect();
        known.into_iter().try_for_each(|uid| self.check_explanation(uid))
    }

    fn check_explanation(&self, uid: Uid) -> Check {
        let said = self
            .core
            .explain(&Target::Uid(uid))
            .map_err(|error| error.to_string())?;
        let key = &self.catalog.items[&uid].key;
        let is_true = |holds: bool, what: &str| {
            ensure(holds, "explain", || {
                format!("{key}: {what}: {said:?} {:?}", self.past.get(&uid))
            })
        };
        is_true(said.subject.uid == uid && said.subject.key == *key, "is another")?;
        let row = self.store.rows.get(&uid);
        if let Some(row) = row.filter(|_| self.is_durable()) {
            is_true(said.attempts == row.attempts, "attempts")?;
            is_true(said.retry == self.policy(uid), "the policy")?;
            is_true(said.next_reconcile == row.next_reconcile, "the next time")?;
            is_true(self.stages.get(&uid) == Some(&said.stage), "the stage")?;
        }
        let stands = said.waits_for.as_ref().map_or(uid, |subject| subject.uid);
        if stands != uid {
            let above = self.catalog.ancestors(uid);
            is_true(above.contains(&stands), "waits for what is not above it")?;
            is_true(said.stage == Stage::Pending, "waits and is not pending")?;
        }
        is_true(self.is_reason(stands, &said), "the reason")?;
        is_true(self.are_roots(uid, &said.blocked_by), "the roots of failure")
    }

    /// Returns true if what keeps a resource from running is the case.
    fn is_reason(&self, uid: Uid, said: &Explanation) -> bool {
        let item = &self.catalog.items[&uid];
        let past = self.past.get(&uid).cloned().unwrap_or_default();
        match &said.because {
            Blocker::Runs {
                invocation,
                phase,
                cancelled,
            } => {
                let run = self.running.get(invocation);
                run.is_some_and(|run| {
                    run.uid == uid && run.phase == *phase && run.cancelled == *cancelled && !run.abandoned
                })
            }
            Blocker::Settled(why) => !self.may_be_unsettled(uid) && self.is_settled_so(uid, why),
            Blocker::RetryIn(wait) => {
                let at = self.ops.get(&uid).map_or(past.retry_at, |op| op.retry_at);
                let is_planned = at
                    .is_some_and(|at| at.since(self.now.mono) == *wait && *wait <= Duration::from_secs(300));
                // Of what falls due together, the order decides which is deferred (C17); the reference has its own.
                is_planned || *wait <= DEFERRED_FOR
            }
            Blocker::Cycle(message) => self.catalog.on_cycle(uid) && message.contains(item.key.name.as_str()),
            Blocker::AwaitsCommit(revision) => *revision > self.store.revision || !self.is_durable(),
            Blocker::Gate(subject) => {
                let options = self.options(subject.uid);
                options.is_some_and(|options| options.first) && subject.uid != uid
            }
            Blocker::DeletesFirst { running, .. } => {
                self.run_in(running, Phase::Delete)
                    && self.ops.keys().any(|uid| self.catalog.items[uid].deleted)
            }
            Blocker::RenamesFirst { running, .. } => {
                self.run_in(running, Phase::Rename) && !self.counting(false).is_empty()
            }
            Blocker::ControllerFull(limit) => {
                *limit == self.limits.concurrency && self.active().count() >= *limit
            }
            Blocker::KindFull(limit) => {
                let full = |uid: &Uid| {
                    let options = self.options(*uid);
                    options.is_some_and(|options| options.concurrency == Some(*limit))
                        && !self.has_room(&self.catalog.items[uid])
                };
                self.node_of(uid).iter().any(full)
            }
            Blocker::PoolFull(name) => {
                let full = |uid: &Uid| {
                    let pool = self.options(*uid).and_then(|options| options.pool.as_ref());
                    pool.is_some_and(|pool| pool.name == *name && self.places_taken(pool) >= pool.limit)
                };
                self.node_of(uid).iter().any(full)
            }
            Blocker::RunsBelow(subject) => {
                let below = self.catalog.descendants(uid);
                (below.contains(&subject.uid) || subject.uid == uid) && self.run_of(subject.uid).is_some()
            }
            Blocker::NameInUse(subject) => self.running.values().any(|run| run.uid == subject.uid),
            // Nothing is about to start or to settle between two inputs.
            Blocker::Next => !self.is_durable(),
        }
    }

    /// A resource, or the cycle that it is on.
    fn node_of(&self, uid: Uid) -> BTreeSet<Uid> {
        let mut node = self.cycle_of(uid);
        node.insert(uid);
        node
    }

    /// Readers may be behind while a commit is under way.
    fn may_be_unsettled(&self, uid: Uid) -> bool {
        self.is_durable() && self.is_unsettled(uid)
    }

    fn is_settled_so(&self, uid: Uid, why: &Settled) -> bool {
        let item = &self.catalog.items[&uid];
        match why {
            Settled::Paused => item.paused,
            Settled::WaitingForRef(reference) => {
                let target = self.catalog.live(&reference.key());
                let is_missed = |target| {
                    reference.required == Required::Ready
                        && (!self.was_left_ready(target) || self.counts_as_failed(target))
                };
                item.refs.contains(reference) && target.is_none_or(is_missed)
            }
            Settled::WaitingForName { holder, .. } => {
                let held = self.catalog.items.get(holder);
                let holds = |held: &Item| self.ops.contains_key(holder) && held.names().contains(&item.key);
                held.is_some_and(holds) || self.clashes(item) || !self.is_durable()
            }
            Settled::Unsupported => !self.is_supported(item),
            Settled::OnCycle => self.catalog.on_cycle(uid),
            Settled::Failed => {
                self.store.rows.get(&uid).is_none_or(|row| row.error.is_some()) || !self.is_durable()
            }
            Settled::Idle => {
                self.store.rows.get(&uid).is_none_or(|row| row.error.is_none()) || !self.is_durable()
            }
            Settled::Cancelled => self.past.get(&uid).is_some_and(|past| past.stopped),
            Settled::Retrying | Settled::Abandoned { .. } | Settled::Unreadable(_) => true,
        }
    }

    fn run_in(&self, running: &[Subject], phase: Phase) -> bool {
        let runs = |subject: &Subject| self.run_of(subject.uid).is_some_and(|run| run.phase == phase);
        running.iter().all(runs)
    }

    /// To those below it: by its error, or by how it has settled.
    fn counts_as_failed(&self, uid: Uid) -> bool {
        let settled = match self.stages.get(&uid) {
            Some(Stage::Settled(why)) => matches!(
                why,
                Settled::WaitingForRef(_)
                    | Settled::Abandoned { .. }
                    | Settled::WaitingForName { .. }
                    | Settled::OnCycle
                    | Settled::Retrying
            ),
            _ => false,
        };
        settled || self.store.rows.get(&uid).is_some_and(|row| row.error.is_some())
    }

    /// The failures above it that have none above them, found by walking up through failures alone.
    fn are_roots(&self, uid: Uid, said: &[Subject]) -> bool {
        if !self.is_durable() {
            return true; // readers, and this, may be behind
        }
        let failed = |uid: &Uid| self.counts_as_failed(*uid);
        let above =
            |uid: Uid| -> BTreeSet<Uid> { self.catalog.parents(uid).into_iter().filter(failed).collect() };
        let (mut found, mut open) = (BTreeSet::from([uid]), vec![uid]);
        while let Some(next) = open.pop() {
            open.extend(above(next).into_iter().filter(|parent| found.insert(*parent)));
        }
        let roots: BTreeSet<Uid> = found
            .into_iter()
            .filter(|other| *other != uid && above(*other).is_empty())
            .collect();
        let said: BTreeSet<Uid> = said.iter().map(|subject| subject.uid).collect();
        match roots.len() <= ROOTS_MAX {
            true => said == roots,
            false => said.len() == ROOTS_MAX && said.is_subset(&roots),
        }
    }
}

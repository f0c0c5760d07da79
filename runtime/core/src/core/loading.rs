//! Opening of a stored catalog, with the requests of a start (request 1).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::Core;
use super::stopping::Service;
use crate::calls::waiters::Waiters;
use crate::graph::Graph;
use crate::graph::cycles::CYCLE_CODE;
use crate::graph::lifecycle::Event;
use crate::graph::resource::{Life, Resource};
use crate::journal::Journal;
use crate::schedule::barrier::Barrier;
use crate::schedule::decision::rest;
use crate::schedule::retries::{Retries, plan_resync};
use crate::schedule::scheduler::Scheduler;
use crate::schedule::starvation::Starvation;
use crate::timers::{Requeue, Timers};
use crate::types::index::Slot;
use crate::{
    AtStart, Effect, Key, Kind, KindOptions, Limits, Now, OptionsProblem, Reason, RunResult, Stored,
    StoredRow, Trigger, Uid,
};

/// Reasons to refuse a stored catalog or its options.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    /// Two live rows have the same kind and name.
    #[error("the catalog holds \"{key}\" twice: {first} and {second}")]
    DuplicateName {
        /// Shared kind and name.
        key: Key,
        /// Uid of one of the two resources.
        first: Uid,
        /// Uid of the other resource.
        second: Uid,
    },
    /// Two rows have the same uid.
    #[error("the catalog holds {0} twice")]
    DuplicateUid(Uid),
    /// A row has a later revision than the catalog.
    #[error("row {0} is newer than its catalog")]
    RowFromTheFuture(Uid),
    /// Options with which no controller can work.
    #[error(transparent)]
    Options(#[from] OptionsProblem),
    /// A kind is registered twice.
    #[error("kind \"{0}\" is registered twice")]
    DuplicateKind(Kind),
}

/// Loaded resources that need further steps, each list in order of slots.
#[derive(Default)]
struct Loaded {
    /// Live resources with refs.
    with_refs: Vec<Slot>,
    /// Live resources of kinds that come first at a start, or that have a resync interval.
    of_special_kinds: Vec<Slot>,
    /// Live resources whose stored error describes a cycle.
    on_cycle_before: Vec<Slot>,
    /// Resources with an unfinished delete or rename.
    marked: Vec<Slot>,
}

impl Core {
    /// Opens a stored catalog and makes the requests of a start. The returned effects are the first to carry out.
    ///
    /// # Errors
    /// If the catalog breaks an invariant that the core relies upon, two kinds have one name, or with a limit nothing
    /// could run.
    pub fn open(
        now: Now,
        limits: Limits,
        kinds: Vec<KindOptions>,
        stored: Stored,
    ) -> Result<(Core, Vec<Effect>), OpenError> {
        limits.check(&kinds)?;
        let mut core = Core {
            now,
            graph: Graph::with_capacity(stored.rows.len()),
            scheduler: Scheduler::new(&limits),
            barrier: Barrier::new(limits.drain_limit),
            starvation: Starvation::new(limits.starvation_slack),
            retries: Retries::new(limits.jitter),
            timers: Timers::default(),
            journal: Journal::new(&limits, stored.epoch, stored.revision),
            waiters: Waiters::default(),
            service: Service::Serving,
            limits,
            releases: 0,
            out: Vec::new(),
        };
        // Kinds that run have the first numbers, for the scheduler counts them by number.
        let (passive, active): (Vec<_>, Vec<_>) = kinds.into_iter().partition(|options| options.passive);
        for options in active.into_iter().chain(passive) {
            if !core.graph.register(options.clone()) {
                return Err(OpenError::DuplicateKind(options.kind));
            }
            if !options.passive {
                core.scheduler.register(&core.graph, &options);
            }
        }
        let mut rows = stored.rows;
        // Claims on a name stand in the order of the deletes. Otherwise slots are in the order of starts, which then
        // touches memory in order.
        rows.sort_by_cached_key(|stored| {
            let deletion = stored.row.intents.deletion.map(|deletion| deletion.revision);
            (deletion, stored.row.name.prefix())
        });
        let mut loading = Loading {
            core,
            loaded: Loaded::default(),
            may_rest: HashSet::new(),
        };
        loading.make_room(&rows);
        for row in rows {
            loading.load(row)?;
        }
        loading.link();
        loading.request_at_start();
        let mut core = loading.core;
        core.run_timers();
        core.pump();
        let effects = std::mem::take(&mut core.out);
        Ok((core, effects))
    }
}

/// A stored catalog that is being loaded.
struct Loading {
    core: Core,
    loaded: Loaded,
    /// Resources that are requested only if unsettled, whatever their kind says.
    may_rest: HashSet<Slot>,
}

impl Loading {
    /// Reserves space for the names of each kind.
    fn make_room(&mut self, rows: &[StoredRow]) {
        let mut counts: BTreeMap<&Kind, usize> = BTreeMap::new();
        for stored in rows {
            *counts.entry(&stored.row.kind).or_default() += 1;
        }
        for (kind, count) in counts {
            self.core.graph.reserve_names(kind, count);
        }
    }

    /// Loads one row, and notes which further steps it needs. Most rows need none and are visited only once.
    fn load(&mut self, stored: StoredRow) -> Result<(), OpenError> {
        let StoredRow {
            row,
            unreadable,
            may_rest,
        } = stored;
        // A store that was restored in part. Going on would give out revisions that watchers have seen with other rows.
        if row.revision > self.core.journal.revision() {
            return Err(OpenError::RowFromTheFuture(row.uid));
        }
        if self.core.graph.find(row.uid).is_some() {
            return Err(OpenError::DuplicateUid(row.uid));
        }
        let kind = self.core.graph.intern_kind(&row.kind);
        let name = self.core.graph.intern(kind, &row.name);
        let life = if row.intents.is_deleted() {
            Life::Deleted
        } else {
            Life::Live
        };
        if let (Some(first), Life::Live) = (self.core.graph.live_uid(name), life) {
            return Err(OpenError::DuplicateName {
                key: row.key(),
                first,
                second: row.uid,
            });
        }
        let at = row
            .next_reconcile
            .filter(|_| life == Life::Live && unreadable.is_none());
        let length = row.last_run.as_ref().and_then(|last| last.requeue_after);
        let mut resource = Resource::new(row, kind, name, life);
        resource.set_stored();
        resource.publish();
        if let Some(error) = unreadable {
            resource.set_unreadable(error);
        }
        let slot = self.core.graph.insert(resource);
        if may_rest {
            self.may_rest.insert(slot);
        }
        self.note(slot);
        self.core.graph.measure_stored(slot);
        self.core
            .graph
            .set_owner(slot, None, self.core.graph[slot].row().owner);
        match life {
            Life::Live => self.core.graph.bind(slot),
            Life::Deleted | Life::Gone => self.core.graph.claim(slot),
        }
        if at.is_some() {
            let requeue = Requeue::stored(at, length, self.core.now.wall);
            self.core.timers.set_requeue(slot, self.core.now, requeue);
        }
        let reason = match self.core.graph.unrunnable(slot) {
            Some(why) => why,
            None => rest(&self.core.graph, &self.core.timers, slot),
        };
        self.core.on(slot, Event::Settled(reason));
        Ok(())
    }

    fn note(&mut self, slot: Slot) {
        let resource = &self.core.graph[slot];
        let row = resource.row();
        if row.intents.is_deleted() || row.intents.is_renamed() {
            self.loaded.marked.push(slot);
        }
        if !resource.is_live() {
            return;
        }
        if !row.refs.is_empty() {
            self.loaded.with_refs.push(slot);
        }
        let options = self.core.graph.options(slot);
        if options.is_some_and(|options| options.first || options.resync.is_some()) {
            self.loaded.of_special_kinds.push(slot);
        }
        if row.error.as_ref().is_some_and(|error| &*error.code == CYCLE_CODE) {
            self.loaded.on_cycle_before.push(slot);
        }
    }

    fn link(&mut self) {
        let loaded = std::mem::take(&mut self.loaded);
        // Only now is every name bound, so that each edge is counted once and from either end.
        for &slot in &loaded.with_refs {
            self.core.graph.attach(slot);
        }
        for &slot in &loaded.of_special_kinds {
            plan_resync(&self.core.graph, &mut self.core.timers, self.core.now.mono, slot);
            self.core.scheduler.gate_if_first(&mut self.core.graph, slot);
        }
        // Cycles are not stored: errors that spell them out are compared with what is found.
        let changes = self.core.graph.find_cycles(&loaded.with_refs, &BTreeSet::new());
        let is_on_none = |slot: &Slot| self.core.graph[*slot].cycle().is_none();
        let stale: Vec<Slot> = loaded
            .on_cycle_before
            .iter()
            .copied()
            .filter(is_on_none)
            .collect();
        self.core.journal.write_cycle_errors(
            &mut self.core.graph,
            self.core.now.wall,
            (changes.regrouped(), &stale),
        );
        let is_deleted = |slot: &Slot| self.core.graph[*slot].life() == Life::Deleted;
        let deleted: Vec<Slot> = loaded.marked.iter().copied().filter(is_deleted).collect();
        self.order_loaded_deletes(&deleted);
        for &slot in &loaded.marked {
            self.core.claim_former_names(slot);
            self.core.begin_op(slot);
        }
    }

    /// Orders loaded deletes. Refs are stored by name, so deleted resources with that name count as targets as well.
    fn order_loaded_deletes(&mut self, deleted: &[Slot]) {
        let order: Vec<(Slot, Vec<Slot>)> = deleted
            .iter()
            .filter(|slot| self.core.graph.can_run(**slot))
            .map(|slot| (*slot, self.core.graph.stored_targets(*slot)))
            .collect();
        self.core.barrier.order_deletes(&mut self.core.graph, &order);
    }

    fn request_at_start(&mut self) {
        let reason = Arc::new(Reason::bare(Trigger::Start));
        let asked: Vec<Slot> = self.core.graph.iter().map(|(slot, _)| slot).collect();
        let mut unrequested = HashSet::new();
        for slot in asked {
            if !self.core.graph[slot].is_live() {
                self.core.set_pending(slot, reason.clone());
            } else if !self.core.graph.can_run(slot) || self.is_settled_as_stored(slot) {
                unrequested.insert(slot);
            } else {
                self.core.request(slot, &reason);
            }
        }
        for slot in unrequested {
            // Unless a request for something above has made it pending after all.
            if !self.core.graph[slot].is_unsettled() {
                self.core.scheduler.leave_gate(&mut self.core.graph, slot);
            }
        }
    }

    /// Returns true if the stored last run succeeded, left the resource ready, and saw its present inputs: with
    /// `request_if_unsettled` no request is needed.
    fn is_settled_as_stored(&self, slot: Slot) -> bool {
        let resource = &self.core.graph[slot];
        let options = self.core.graph.options(slot);
        let asks_always = options.is_none_or(|options| options.at_start == AtStart::AskAlways);
        let asks = asks_always && !self.may_rest.contains(&slot);
        let row = resource.row();
        if asks || resource.has_op() || row.error.is_some() || row.unready.is_some() {
            return false;
        }
        let Some(last) = &resource.row().last_run else {
            return false;
        };
        let Some(seen) = &last.seen else { return false };
        matches!(last.result, RunResult::Done(_)) && *seen == self.core.graph.see(slot)
    }
}

//! Graph of resources with names, links, cycles and owners, and the counts of their stages.
//!
//! All of it is private to this folder. The graph says who stands above and below, which of them are unsettled or
//! run, and moves stages ([`Graph::on`]); it knows no store, no clock and no limit. What happens to a resource puts it
//! on the *agenda*, the list of what is to be considered again.

mod claims;
pub(crate) mod components;
pub(crate) mod cycles;
mod edges;
mod fields;
pub(crate) mod kinds;
pub(crate) mod lifecycle;
mod names;
pub(crate) mod owners;
pub(crate) mod requests;
pub(crate) mod resource;
pub(crate) mod settling;
mod slots;
pub(crate) mod stages;
mod status;
mod targets;
mod views;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::{Index, IndexMut};

use cycles::Cycles;
use kinds::Kinds;
use lifecycle::Event;
use names::{NameEntry, Names};
use resource::{Life, Resource, Running};
use slots::Slots;

use crate::types::index::{KindId, NameId, Slot};
use crate::{InvocationId, Kind, KindOptions, Mono, Name, Uid};
use rustc_hash::FxBuildHasher;

/// Counts of visited resources and edges.
#[derive(Clone, Copy, Debug, Default)]
struct Visits {
    nodes: u64,
    edges: u64,
}

/// Every stored resource, and removed ones whose invocation has yet to return.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Graph {
    slots: Slots,
    names: Names,
    kinds: Kinds,
    cycles: Cycles,
    /// Owned resources of each owner, by the owner's uid.
    owned: HashMap<Uid, BTreeSet<Slot>, FxBuildHasher>,
    /// Resources to evaluate, each at most once.
    agenda: VecDeque<Slot>,
    /// Resources whose stage or progress is not published yet, each at most once.
    touched: Vec<Slot>,
    /// Resources of invocations that have not returned, by invocation.
    runs: HashMap<InvocationId, Slot, FxBuildHasher>,
    /// Number of invocations that were abandoned and have not returned.
    abandoned: usize,
    /// Number of resources that are pending or running.
    unsettled: usize,
    /// Start of the present period with unsettled resources.
    restless_since: Mono,
    /// Number of periods with unsettled resources so far.
    restless_times: u64,
    /// Resources that were pending when the cohort was formed and have neither started nor settled since.
    cohort: HashSet<Slot>,
    visits: Visits,
}

impl Graph {
    /// Creates a graph with space for `count` resources.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self {
            slots: Slots::with_capacity(count),
            ..Self::default()
        }
    }

    /// Reserves space for `count` more names of a kind.
    pub(crate) fn reserve_names(&mut self, kind: &Kind, count: usize) {
        let kind = self.kinds.intern(kind);
        self.names.reserve(kind, count);
    }

    /// Registers a kind; returns false if it is registered already.
    pub(crate) fn register(&mut self, options: KindOptions) -> bool {
        self.kinds.register(options)
    }

    /// Returns every kind that was registered or used by a resource.
    pub(crate) fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// Returns the options of a resource's kind, if it is registered here.
    pub(crate) fn options(&self, slot: Slot) -> Option<&KindOptions> {
        self.kinds[self.slots[slot].kind].options.as_ref()
    }

    pub(crate) fn intern_kind(&mut self, kind: &Kind) -> KindId {
        self.kinds.intern(kind)
    }

    /// Returns the index of a name, adding the name if it is new.
    pub(crate) fn intern(&mut self, kind: KindId, name: &Name) -> NameId {
        self.names.intern(kind, name)
    }

    /// Adds a resource that is not bound to its name yet.
    pub(crate) fn insert(&mut self, resource: Resource) -> Slot {
        self.slots.insert(resource)
    }

    /// Removes a resource whose names are released already.
    pub(crate) fn remove(&mut self, slot: Slot) {
        self.slots.remove(slot);
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&Resource> {
        self.slots.get(slot)
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut Resource> {
        self.slots.get_mut(slot)
    }

    pub(crate) fn find(&self, uid: Uid) -> Option<Slot> {
        self.slots.find(uid)
    }

    /// Lists every resource, in order of slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &Resource)> {
        self.slots.iter()
    }

    /// Lists every resource that is stored, or will be with the next commit.
    pub(crate) fn stored(&self) -> impl Iterator<Item = (Slot, &Resource)> {
        self.slots.iter().filter(|(_, it)| it.life != Life::Gone)
    }

    /// Returns the highest slot in use plus one.
    pub(crate) fn bound(&self) -> usize {
        self.slots.bound()
    }

    /// Returns the entry of a name, with its live resource, claimants and referrers.
    pub(crate) fn name(&self, id: NameId) -> &NameEntry {
        &self.names[id]
    }

    /// Lists every name in use.
    pub(crate) fn names(&self) -> impl Iterator<Item = (NameId, &NameEntry)> {
        self.names.iter()
    }

    pub(crate) fn cycles(&self) -> &Cycles {
        &self.cycles
    }

    /// Returns how many resources and edges were visited.
    pub(crate) fn visits(&self) -> (u64, u64) {
        (self.visits.nodes, self.visits.edges)
    }

    /// Counts a resource visited by another module.
    pub(crate) fn visit(&mut self) {
        self.visits.nodes += 1;
    }

    /// Counts edges visited by another module.
    pub(crate) fn visit_edges(&mut self, count: usize) {
        self.visits.edges += count as u64;
    }

    /// Adds a resource to those that are evaluated before the input ends.
    pub(crate) fn enqueue(&mut self, slot: Slot) {
        let listed = &mut self.slots[slot].listed;
        if !listed.queued {
            listed.queued = true;
            self.agenda.push_back(slot);
        }
    }

    /// Takes the next resource to evaluate.
    pub(crate) fn next_on_agenda(&mut self) -> Option<Slot> {
        while let Some(slot) = self.agenda.pop_front() {
            if let Some(resource) = self.slots.get_mut(slot) {
                resource.listed.queued = false;
                return Some(slot);
            }
        }
        None
    }

    /// Returns the resources to evaluate.
    pub(crate) fn agenda(&self) -> &VecDeque<Slot> {
        &self.agenda
    }

    /// Marks the status of a resource for publication.
    pub(crate) fn touch_status(&mut self, slot: Slot) {
        let listed = &mut self.slots[slot].listed;
        if !std::mem::replace(&mut listed.status_dirty, true) {
            self.touched.push(slot);
        }
    }

    /// Takes the list of resources with unpublished statuses. The caller gives it back empty, to reuse its memory.
    pub(crate) fn take_touched(&mut self) -> Vec<Slot> {
        std::mem::take(&mut self.touched)
    }

    pub(crate) fn give_back_touched(&mut self, emptied: Vec<Slot>) {
        debug_assert!(emptied.is_empty() && self.touched.is_empty());
        self.touched = emptied;
    }

    /// Moves a resource to its next stage and updates the counts; returns the invocation that this ends.
    #[inline]
    pub(crate) fn on(&mut self, slot: Slot, event: Event, now: Mono) -> Option<Box<Running>> {
        match &event {
            Event::Started(run) => {
                self.runs.insert(run.invocation, slot);
            }
            Event::Abandoned(_) => self.abandoned += 1,
            _ => {}
        }
        let lifecycle = &mut self.slots[slot].lifecycle;
        let before = lifecycle.is_unsettled();
        let was_aside = lifecycle.abandoned().is_some();
        let run = lifecycle.on(event);
        let (after, pending) = (lifecycle.is_unsettled(), lifecycle.pending().is_some());
        if let Some(run) = &run {
            self.runs.remove(&run.invocation);
            self.abandoned -= usize::from(was_aside);
        }
        match (before, after) {
            (false, true) => {
                // A stretch without rest begins. Only within one can anything starve (C17), and its number tells whether
                // a result is of this one.
                if self.unsettled == 0 {
                    self.restless_since = now;
                    self.restless_times += 1;
                }
                self.unsettled += 1;
            }
            (true, false) => self.unsettled -= 1,
            _ => {}
        }
        if !pending {
            self.leave_cohort(slot);
        }
        self.touch_status(slot);
        run
    }

    /// Returns how many resources are pending or running.
    pub(crate) fn unsettled(&self) -> usize {
        self.unsettled
    }

    /// Returns since when something has been unsettled without a break, and how often that has begun.
    pub(crate) fn restless(&self) -> (Mono, u64) {
        (self.restless_since, self.restless_times)
    }

    /// Returns how many invocations are abandoned.
    pub(crate) fn abandoned(&self) -> usize {
        self.abandoned
    }

    /// Returns how many invocations have not returned and are not abandoned.
    pub(crate) fn active(&self) -> usize {
        // Those have given back their places (C10).
        self.runs.len() - self.abandoned
    }

    /// Returns the resource of an unreturned invocation.
    pub(crate) fn run(&self, invocation: InvocationId) -> Option<Slot> {
        self.runs.get(&invocation).copied()
    }

    /// Lists every unreturned invocation, in no particular order.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (InvocationId, Slot)> + '_ {
        self.runs.iter().map(|(invocation, slot)| (*invocation, *slot))
    }

    /// Forms the cohort of pending resources for which `fits` is true.
    pub(crate) fn begin_cohort(&mut self, fits: impl Fn(&Resource) -> bool) {
        let members = self
            .slots
            .iter()
            .filter(|(_, it)| it.pending().is_some() && fits(it));
        self.cohort = members.map(|(slot, _)| slot).collect();
    }

    /// Removes a resource from the cohort.
    pub(crate) fn leave_cohort(&mut self, slot: Slot) {
        if !self.cohort.is_empty() {
            self.cohort.remove(&slot);
        }
    }

    /// Returns true if the whole cohort has started or settled.
    pub(crate) fn cohort_is_over(&self) -> bool {
        self.cohort.is_empty()
    }
}

impl Index<Slot> for Graph {
    type Output = Resource;

    fn index(&self, slot: Slot) -> &Resource {
        &self.slots[slot]
    }
}

impl IndexMut<Slot> for Graph {
    fn index_mut(&mut self, slot: Slot) -> &mut Resource {
        &mut self.slots[slot]
    }
}

/// Deliberate faults for tests of the consistency check.
#[cfg(test)]
impl Graph {
    pub(crate) fn forget_runs(&mut self) {
        self.runs.clear();
    }

    pub(crate) fn plant_run(&mut self, invocation: InvocationId, slot: Slot) {
        self.runs.insert(invocation, slot);
    }

    pub(crate) fn plant_abandoned(&mut self) {
        self.abandoned += 1;
    }

    pub(crate) fn plant_on_agenda(&mut self, slot: Slot) {
        self.agenda.push_back(slot);
    }

    pub(crate) fn count_unsettled(&mut self, count: impl FnOnce(&mut usize)) {
        count(&mut self.unsettled);
    }

    pub(crate) fn plant_owned(&mut self, owner: Option<Uid>, slot: Slot) {
        match owner {
            Some(owner) => {
                self.owned.entry(owner).or_default().insert(slot);
            }
            None => self.owned.clear(),
        }
    }

    pub(crate) fn unbind_only(&mut self, name: NameId) {
        self.names[name].live = None;
    }

    pub(crate) fn cycles_mut(&mut self) -> &mut Cycles {
        &mut self.cycles
    }

    pub(crate) fn options_mut(&mut self, kind: KindId) -> Option<&mut KindOptions> {
        self.kinds[kind].options.as_mut()
    }
}

//! The scheduler: ready resources, their order, and the limits of concurrency (the contract's C12).
//!
//! First the priority, then the longest remaining path to a leaf by past durations, then kind and name. What waits for
//! long is promoted, so that nothing starves. Before the resources of `first` kinds have settled once, the *gate* keeps
//! all others from their regular invocations.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use super::barrier::Barrier;
use super::concurrency::ConcurrencyLimits;
use super::ready::{Rank, Ready, waited_steps};
use crate::graph::Graph;
use crate::timers::{LEAST_WAIT, Timer, Timers};
use crate::types::index::{KindId, Slot};
use crate::{InvocationId, KindOptions, Limits, Mono, Phase, Priority};

const PHASES: [Phase; 3] = [Phase::Delete, Phase::Rename, Phase::Reconcile];

/// Result of taking the first entry of a ready queue.
#[derive(Debug)]
pub(crate) enum Next {
    /// The resource should start, if it still may.
    Start(Slot),
    /// The resource must be evaluated first: its rank or name changed after it was queued.
    Consider(Slot),
    /// The entry no longer applies and is ignored.
    Stale,
}

/// Ready queues, concurrency limits and the gate.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Scheduler {
    concurrency_limits: ConcurrencyLimits,
    /// Number of entries in the ready queues of each phase, stale ones included. If it is 0, no queue is searched.
    listed: [usize; PHASES.len()],
    /// Registered kinds, ordered by name, as they start.
    order: Vec<KindId>,
    /// Resources of `first` kinds that hold the gate closed; empty once all have settled.
    gate: BTreeSet<Slot>,
    next_invocation: InvocationId,
    starts: u64,
    concurrency: usize,
    promote_after: Duration,
}

impl Scheduler {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            concurrency_limits: ConcurrencyLimits::default(),
            listed: [0; PHASES.len()],
            order: Vec::new(),
            gate: BTreeSet::new(),
            next_invocation: InvocationId(1),
            starts: 0,
            concurrency: limits.concurrency,
            promote_after: limits.promote_after,
        }
    }

    /// Adds the queues and limits of a kind that the graph has just registered.
    pub(crate) fn register(&mut self, graph: &Graph, options: &KindOptions) {
        let kinds = graph.kinds();
        self.concurrency_limits.register(options);
        self.order.extend(kinds.find(&options.kind));
        // By name and not by number: numbers follow the order of registration, which says nothing to a person.
        self.order.sort_by(|a, b| kinds[*a].kind().cmp(kinds[*b].kind()));
    }

    pub(crate) fn concurrency_limits(&self) -> &ConcurrencyLimits {
        &self.concurrency_limits
    }

    pub(crate) fn concurrency_limits_mut(&mut self) -> &mut ConcurrencyLimits {
        &mut self.concurrency_limits
    }

    /// Returns how many invocations may run at a time.
    pub(crate) fn concurrency(&self) -> usize {
        self.concurrency
    }

    /// Returns the id that the next started invocation will get.
    pub(crate) fn next_invocation(&self) -> InvocationId {
        self.next_invocation
    }

    /// Returns how many invocations have started so far.
    pub(crate) fn starts(&self) -> u64 {
        self.starts
    }

    /// Takes a place for an invocation that starts, and returns its id.
    pub(crate) fn enter(&mut self, kind: KindId) -> InvocationId {
        let invocation = self.next_invocation;
        self.next_invocation = invocation.next();
        self.starts += 1;
        self.concurrency_limits.enter(kind);
        invocation
    }

    /// Adds a resource to its ready queue.
    pub(crate) fn push_ready(&mut self, graph: &mut Graph, slot: Slot, phase: Phase, now: Mono) {
        let resource = &mut graph[slot];
        // Listed in this phase already. An entry whose rank has changed since is found stale when it is popped.
        if resource.set_ready(Some(phase)) == Some(phase) {
            return;
        }
        let since = match resource.pending_mut() {
            Some(pending) => pending.begin_ready(now),
            None => now,
        };
        let resource = &graph[slot];
        let ready = Ready::new(rank(graph, slot), since, resource.row().name.clone(), slot);
        self.concurrency_limits.ready(resource.kind(), phase).push(ready);
        self.listed[phase as usize] += 1;
    }

    /// Takes the entry that starts first in a phase, if any may start.
    pub(crate) fn pop(&mut self, graph: &mut Graph, barrier: &Barrier, phase: Phase) -> Option<Next> {
        if self.listed[phase as usize] == 0 {
            return None;
        }
        // The limit of the controller comes first: it is one comparison, the kinds are many.
        if graph.active() >= self.concurrency {
            return None;
        }
        let kind = self.next_kind(graph, barrier, phase)?;
        let ready = self.concurrency_limits.ready(kind, phase).pop()?;
        self.listed[phase as usize] -= 1;
        Some(take_ready(graph, &ready, kind, phase))
    }

    /// Returns the kind whose first entry starts first, among kinds with a free place.
    fn next_kind(&mut self, graph: &Graph, barrier: &Barrier, phase: Phase) -> Option<KindId> {
        let mut first: Option<(Rank, KindId)> = None;
        // Kinds are few and their queues are ordered, so the best of the heads is the best of all.
        for index in 0..self.order.len() {
            let kind = self.order[index];
            let Some(rank) = self.concurrency_limits.ready(kind, phase).first() else {
                continue;
            };
            let gates = graph.kinds()[kind].options().is_some_and(|it| it.first);
            let may = self.concurrency_limits.has_room(kind) && self.phase_may_start(barrier, phase, gates);
            // Strictly less: of equal ranks the kind that comes first by name starts, which keeps the order
            // deterministic.
            if may && first.is_none_or(|(before, _)| rank < before) {
                first = Some((rank, kind));
            }
        }
        first.map(|(_, kind)| kind)
    }

    /// Returns true if neither the gate nor the barrier keeps a phase from starting.
    pub(crate) fn phase_may_start(&self, barrier: &Barrier, phase: Phase, first_kind: bool) -> bool {
        // Deletes and renames pass the gate: the kinds that it waits for are often the ones that make those edits.
        let gated = phase == Phase::Reconcile && !first_kind && !self.gate.is_empty();
        !gated && !barrier.blocks(phase)
    }

    /// Sets the timer for promotions, if any resource waits for a place.
    pub(crate) fn promote_later(&self, timers: &mut Timers, now: Mono) {
        let waits = self.listed.iter().any(|listed| *listed > 0);
        // One timer for all: each promotion looks at whatever is old enough.
        if waits && timers.due(Timer::Promote).is_none() {
            timers.set(Timer::Promote, now.after(self.promote_after.max(LEAST_WAIT)));
        }
    }

    /// Promotes the resources that have waited long enough for a place, once per interval waited.
    pub(crate) fn promote_waiting(&mut self, graph: &mut Graph, now: Mono) {
        for index in 0..self.order.len() {
            let kind = self.order[index];
            for phase in PHASES {
                let taken = self
                    .concurrency_limits
                    .ready(kind, phase)
                    .take_older(now, self.promote_after);
                self.listed[phase as usize] -= taken.len();
                for ready in taken {
                    graph.visit();
                    let steps = waited_steps(now, ready.since, self.promote_after);
                    promote(graph, ready.slot, (kind, phase), steps);
                }
            }
        }
    }

    /// Adds a resource of a `first` kind to the gate, which keeps other reconciles from starting until it has settled.
    pub(crate) fn gate_if_first(&mut self, graph: &mut Graph, slot: Slot) {
        if graph.options(slot).is_some_and(|options| options.first) {
            graph[slot].set_gate(true);
            self.gate.insert(slot);
        }
    }

    /// Takes a resource out of the gate after it has settled, or because nothing should wait for it.
    pub(crate) fn leave_gate(&mut self, graph: &mut Graph, slot: Slot) {
        if graph[slot].set_gate(false) {
            self.gate.remove(&slot);
        }
    }

    /// Opens the gate unconditionally; returns whether it was closed.
    pub(crate) fn open_gate(&mut self, graph: &mut Graph) -> bool {
        for slot in &self.gate {
            graph[*slot].set_gate(false);
        }
        !std::mem::take(&mut self.gate).is_empty()
    }

    /// Returns the resources that hold the gate closed.
    pub(crate) fn gate(&self) -> &BTreeSet<Slot> {
        &self.gate
    }
}

/// Returns the place of a resource in the order of starts.
fn rank(graph: &Graph, slot: Slot) -> Rank {
    let resource = &graph[slot];
    let level = match resource.pending() {
        Some(pending) => pending.priority().level() - i64::from(pending.promoted()),
        None => Priority::Normal.level(),
    };
    Rank {
        level,
        path: Reverse(resource.path_ms()),
    }
}

/// Checks an entry against its resource. An entry is stale if the resource is queued for another phase, or if the slot
/// belongs to a resource of another kind.
fn take_ready(graph: &mut Graph, ready: &Ready, kind: KindId, phase: Phase) -> Next {
    let Some(resource) = graph.get(ready.slot).filter(|it| it.kind() == kind) else {
        return Next::Stale;
    };
    // Queues are not searched when a rank changes, which would cost a walk for each change; entries are checked here
    // instead.
    let present = rank(graph, ready.slot) == ready.rank && resource.row().name.same_case(&ready.name);
    if resource.ready() != Some(phase) {
        return Next::Stale;
    }
    graph[ready.slot].set_ready(None);
    if present {
        Next::Start(ready.slot)
    } else {
        // An entry of an earlier time must not cost its resource the turn.
        Next::Consider(ready.slot)
    }
}

fn promote(graph: &mut Graph, slot: Slot, (kind, phase): (KindId, Phase), steps: u32) {
    let Some(resource) = graph.get_mut(slot).filter(|it| it.kind() == kind) else {
        return;
    };
    if resource.ready() != Some(phase) {
        return;
    }
    resource.set_ready(None);
    if let Some(pending) = resource.pending_mut() {
        pending.promote(steps);
    }
    // Listed anew with its new rank: entries of a heap can't be moved in place.
    graph.enqueue(slot);
}

#[cfg(test)]
impl Scheduler {
    pub(crate) fn set_concurrency(&mut self, concurrency: usize) {
        self.concurrency = concurrency;
    }

    pub(crate) fn plant_gate(&mut self, slot: Slot) {
        self.gate.insert(slot);
    }
}

//! The order of starts within the limits of the controller, kinds and pools (the contract's C12).
//!
//! First the priority, then the longest remaining path to a leaf by past durations, then kind and name. A request lends
//! its priority to its pending ancestors, and what waits for long is promoted, so that nothing starves.

use std::cmp::Reverse;
use std::time::Duration;

use crate::core::Core;
use crate::resource::{KindId, Slot};
use crate::schedule::ready::{Rank, Ready};
use crate::timers::Timer;
use crate::{Mono, Phase, Priority, RunResult, Timestamp};

impl Core {
    pub(crate) fn push_ready(&mut self, slot: Slot, phase: Phase) {
        let now = self.now.mono;
        let resource = &mut self.slots[slot];
        if resource.listed.ready.replace(phase) == Some(phase) {
            return;
        }
        let since = match resource.pending_mut() {
            Some(pending) => *pending.ready_since.get_or_insert(now),
            None => now,
        };
        let rank = self.rank(slot);
        let resource = &self.slots[slot];
        let ready = Ready::new(rank, since, resource.row.name.clone(), slot);
        let kind = resource.kind;
        self.kinds[kind].ready(phase).push(ready);
    }

    fn rank(&self, slot: Slot) -> Rank {
        let resource = &self.slots[slot];
        let level = match resource.pending() {
            Some(pending) => pending.priority.level() - i64::from(pending.promoted),
            None => Priority::Normal.level(),
        };
        Rank {
            level,
            path: Reverse(resource.path_ms),
        }
    }

    /// Starts what is ready: deletes, then renames, then the rest, each by rank, kind and name, as far as the limits
    /// allow.
    pub(crate) fn start_ready(&mut self) {
        for phase in [Phase::Delete, Phase::Rename, Phase::Reconcile] {
            while self.active() < self.limits.concurrency
                && let Some(kind) = self.next_kind(phase)
                && let Some(ready) = self.kinds[kind].ready(phase).pop()
            {
                if self.take_ready(&ready, kind, phase) {
                    self.start_if_still_ready(ready.slot, phase);
                }
            }
        }
        self.promote_later();
    }

    /// The kind whose next one starts first, of those that have a place left.
    fn next_kind(&mut self, phase: Phase) -> Option<KindId> {
        let mut first: Option<(Rank, KindId)> = None;
        for index in 0..self.kinds.registered.len() {
            let kind = self.kinds.registered[index];
            let Some(rank) = self.kinds[kind].ready(phase).first() else {
                continue;
            };
            let gates = self.kinds[kind].options.as_ref().is_some_and(|it| it.first);
            let may = self.kinds.has_room(kind) && self.phase_may_start(phase, gates);
            if may && first.is_none_or(|(before, _)| rank < before) {
                first = Some((rank, kind));
            }
        }
        first.map(|(_, kind)| kind)
    }

    /// Whether an entry still speaks of its resource: another phase, name or rank is stale, and so is a slot that
    /// belongs to a resource of another kind by now.
    fn take_ready(&mut self, ready: &Ready, kind: KindId, phase: Phase) -> bool {
        let Some(resource) = self.slots.get(ready.slot).filter(|it| it.kind == kind) else {
            return false;
        };
        let present = self.rank(ready.slot) == ready.rank && resource.row.name.same_case(&ready.name);
        if resource.listed.ready != Some(phase) {
            return false;
        }
        self.slots[ready.slot].listed.ready = None;
        if !present {
            // An entry of an earlier time must not cost it its turn: it is listed anew before anything else starts.
            self.consider(ready.slot);
        }
        present
    }

    /// The priority that the parents of something pending inherit.
    pub(crate) fn inheritable(&self, slot: Slot) -> Priority {
        let pending = self.slots[slot].pending();
        pending.map_or(Priority::Background, |pending| pending.inheritable)
    }

    /// A request of this priority came for a pending resource: it counts for it, and for what it waits for. Walks only
    /// what has a lower one.
    pub(crate) fn raise_priority(&mut self, slot: Slot, priority: Priority) {
        let mut open = vec![slot];
        while let Some(slot) = open.pop() {
            let Some(pending) = self.slots[slot].pending_mut() else {
                continue;
            };
            if !pending.inherit(priority) {
                continue;
            }
            self.counters.nodes += 1;
            self.slots[slot].listed.ready = None;
            self.enqueue(slot);
            let parents: Vec<Slot> = self.parents(slot).collect();
            self.counters.edges += parents.len() as u64;
            open.extend(parents);
        }
    }

    /// Something waits for a place: after a while it is promoted.
    fn promote_later(&mut self) {
        let waits = |kind: &KindId| self.kinds[*kind].has_waiting();
        if self.timers.due(Timer::Promote).is_none() && self.kinds.registered.iter().any(waits) {
            let at = self.now.mono.after(self.limits.promote_after);
            self.timers.set(Timer::Promote, at);
        }
    }

    /// Promotes what has waited long enough for a place, once for each time that it has waited so long.
    pub(crate) fn promote_waiting(&mut self) {
        let (now, step) = (self.now.mono, self.limits.promote_after);
        for index in 0..self.kinds.registered.len() {
            let kind = self.kinds.registered[index];
            for phase in [Phase::Delete, Phase::Rename, Phase::Reconcile] {
                for ready in self.kinds[kind].ready(phase).take_older(now, step) {
                    self.counters.nodes += 1;
                    self.promote(&ready, kind, phase);
                }
            }
        }
    }

    fn promote(&mut self, ready: &Ready, kind: KindId, phase: Phase) {
        let steps = waited_steps(self.now.mono, ready.since, self.limits.promote_after);
        let Some(resource) = self.slots.get_mut(ready.slot).filter(|it| it.kind == kind) else {
            return;
        };
        if resource.listed.ready != Some(phase) {
            return;
        }
        resource.listed.ready = None;
        if let Some(pending) = resource.pending_mut() {
            pending.promoted = pending.promoted.max(steps);
        }
        self.enqueue(ready.slot);
    }

    /// Takes over how long the last completed reconcile took.
    pub(crate) fn measure(&mut self, slot: Slot, started_at: Timestamp, ended_at: Timestamp) {
        let ms = ended_at.0.saturating_sub(started_at.0).max(0);
        self.slots[slot].duration_ms = u32::try_from(ms).unwrap_or(u32::MAX);
    }

    /// The same from what is stored.
    pub(crate) fn measure_stored(&mut self, slot: Slot) {
        let last = self.slots[slot].row.last_run.as_ref();
        let completed =
            last.filter(|last| last.phase == Phase::Reconcile && last.result != RunResult::Cancelled);
        if let Some((started_at, ended_at)) = completed.map(|last| (last.started_at, last.ended_at)) {
            self.measure(slot, started_at, ended_at);
        }
    }
}

/// How many times in a row something has waited as long as `step`.
pub(crate) fn waited_steps(now: Mono, since: Mono, step: Duration) -> u32 {
    let steps = now.since(since).as_millis() / step.as_millis().max(1);
    u32::try_from(steps).unwrap_or(u32::MAX)
}

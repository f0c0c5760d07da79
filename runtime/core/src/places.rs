//! Places are few (C12): who of the ready ones starts first, within the limits of the controller, kinds and pools.
//!
//! First the class of the request, then the longest way left to a leaf by past durations, then kind and name. What
//! waits for long is raised from class to class, so that nothing starves.

use std::cmp::Reverse;

use crate::core::Core;
use crate::ready::{Rank, Ready};
use crate::resource::{KindId, Slot, Stage};
use crate::timeline::Alarm;
use crate::{Class, Phase, RunResult, Timestamp};

impl Core {
    pub(crate) fn push_ready(&mut self, slot: Slot, phase: Phase) {
        let since = self.now.mono;
        let rank = self.rank(slot);
        let resource = &mut self.slots[slot];
        if resource.listed.ready.replace(phase) == Some(phase) {
            return;
        }
        let ready = Ready::new(rank, since, resource.row.name.clone(), slot);
        let kind = resource.kind;
        self.kinds[kind].ready(phase).push(ready);
    }

    fn rank(&self, slot: Slot) -> Rank {
        let resource = &self.slots[slot];
        let (late, class) = match &resource.stage {
            Stage::Pending(pending) => (pending.late, pending.class),
            _ => (false, Class::Parent),
        };
        Rank {
            late,
            class,
            path: Reverse(resource.path_ms),
        }
    }

    /// Starts what is ready: deletes, then renames, then the rest (C6), each by rank, kind and name, as far as the
    /// limits allow.
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
        self.age_if_waiting();
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

    /// The class that something pending lends to what it waits for. That of a parent's request says nothing of its own.
    pub(crate) fn class_to_lend(&self, slot: Slot) -> Class {
        match &self.slots[slot].stage {
            Stage::Pending(pending) => pending.class.min(Class::Parent),
            _ => Class::Parent,
        }
    }

    /// What waits for this resource lends it a class, if that is one of a request.
    pub(crate) fn borrow_class(&mut self, slot: Slot, lent: Class) {
        if lent < Class::Parent
            && let Stage::Pending(pending) = &mut self.slots[slot].stage
        {
            pending.class = pending.class.min(lent);
        }
    }

    /// A request of this class came for a pending resource: it counts for it, and for what it waits for.
    pub(crate) fn lend_class(&mut self, slot: Slot, class: Class) {
        let mut open = vec![slot];
        while let Some(slot) = open.pop() {
            self.counters.nodes += 1;
            let Stage::Pending(pending) = &mut self.slots[slot].stage else {
                continue;
            };
            if pending.class <= class {
                continue;
            }
            pending.class = class;
            self.slots[slot].listed.ready = None;
            self.enqueue(slot);
            let parents: Vec<Slot> = self.parents(slot).collect();
            self.counters.edges += parents.len() as u64;
            open.extend(parents);
        }
    }

    fn age_if_waiting(&mut self) {
        if self.aging {
            return;
        }
        let mut registered = self.kinds.registered.iter();
        if registered.any(|kind| self.kinds[*kind].has_waiting()) {
            self.aging = true;
            let at = self.now.mono.after(self.limits.class_patience);
            self.timeline.set(at, Alarm::Age);
        }
    }

    /// Raises what has waited for a place since the last look, by one class.
    pub(crate) fn raise_what_waits(&mut self) {
        self.aging = false;
        let patience = u64::try_from(self.limits.class_patience.as_millis()).unwrap_or(u64::MAX);
        let than = crate::Mono(self.now.mono.0.saturating_sub(patience));
        for index in 0..self.kinds.registered.len() {
            let kind = self.kinds.registered[index];
            for phase in [Phase::Delete, Phase::Rename, Phase::Reconcile] {
                for ready in self.kinds[kind].ready(phase).take_older(than) {
                    self.counters.nodes += 1;
                    self.raise(&ready, kind, phase);
                }
            }
        }
    }

    fn raise(&mut self, ready: &Ready, kind: KindId, phase: Phase) {
        let Some(resource) = self.slots.get_mut(ready.slot).filter(|it| it.kind == kind) else {
            return;
        };
        if resource.listed.ready != Some(phase) {
            return;
        }
        resource.listed.ready = None;
        if let Stage::Pending(pending) = &mut resource.stage {
            pending.class = pending.class.raised();
            pending.late = false;
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

//! Transitions of one resource (pending, cancelled, settled) and their effects on its neighbours.

use std::collections::HashSet;
use std::sync::Arc;

use super::Graph;
use super::lifecycle::Event;
use super::resource::{Cancelled, Pending};
use crate::timers::{Timer, Timers};
use crate::types::index::Slot;
use crate::{Effect, Mono, Now, Phase, Priority, Reason, RunResult, Settled, Timestamp};
use rustc_hash::FxBuildHasher;

/// Collector for the outputs of a cancel: the effect, and the timer after which the invocation is abandoned.
pub(crate) struct Stops<'a> {
    timers: &'a mut Timers,
    out: &'a mut Vec<Effect>,
    now: Now,
}

impl<'a> Stops<'a> {
    pub(crate) fn new(timers: &'a mut Timers, out: &'a mut Vec<Effect>, now: Now) -> Self {
        Self { timers, out, now }
    }

    pub(super) fn now(&self) -> Mono {
        self.now.mono
    }
}

impl Graph {
    /// Makes a resource pending. The caller updates the edges of a live one.
    pub(crate) fn set_pending(&mut self, slot: Slot, reason: Arc<Reason>, now: Mono) {
        self.on(slot, Event::Asked(Pending::new(reason, now)), now);
        self.enqueue(slot);
    }

    /// Makes a resource pending whose invocation has returned. It inherits the priority of the requests that came
    /// meanwhile, and passes its own on to its parents.
    pub(crate) fn set_pending_again(&mut self, slot: Slot, reason: Arc<Reason>, now: Mono) {
        self.set_pending(slot, reason, now);
        if !self.slots[slot].is_live() {
            return;
        }
        let mut inherited = Priority::Background;
        let mut next = 0;
        while let Some((referrer, link)) = self.referrer(self.slots[slot].name, next) {
            next += 1;
            self.visits.edges += 1;
            if link.counted {
                inherited = inherited.min(self.inheritable(referrer.slot));
            }
        }
        if let Some(pending) = self.slots[slot].pending_mut() {
            pending.inherit(inherited);
        }
        // While it ran, requests lent it nothing: it was not pending. Its parents get it now, or they would wait in the
        // background for a person.
        let priority = self.inheritable(slot);
        if priority < Priority::Background {
            let parents: Vec<Slot> = self.parents(slot).collect();
            for parent in parents {
                self.raise_priority(parent, priority);
            }
        }
    }

    /// Settles a resource, or its whole cycle, and updates its children. Returns the representative of the node.
    pub(crate) fn settle(&mut self, slot: Slot, why: &Settled, now: Mono) -> Slot {
        let scc_root = self.scc_root(slot);
        debug_assert_eq!(
            self.slots[scc_root].unsettled_parents, 0,
            "pending is closed downwards"
        );
        let mut index = 0;
        while let Some(member) = self.member(scc_root, index) {
            index += 1;
            self.visits.nodes += 1;
            self.on(member, Event::Settled(why.clone()), now);
            let mut next = 0;
            while let Some((referrer, link)) = self.referrer(self.slots[member].name, next) {
                next += 1;
                self.visits.edges += 1;
                let below = self.scc_root(referrer.slot);
                if link.counted && below != scc_root {
                    self.slots[below].unsettled_parents -= 1;
                    // The last of its parents: only now can it start, so it is looked at once and not once per
                    // parent.
                    if self.slots[below].unsettled_parents == 0 {
                        self.enqueue(below);
                    }
                }
            }
        }
        // What runs below a settled resource is of no concern to it: only its next start waits for them.
        self.slots[scc_root].busy_children = 0;
        scc_root
    }

    /// Cancels an invocation; its result will be dropped.
    pub(crate) fn cancel_run(&mut self, slot: Slot, by: Cancelled, stops: &mut Stops<'_>) {
        let Some(run) = self.slots[slot].run_mut() else {
            return;
        };
        // The reconciler has its token already, and its deadline runs from the first cancel.
        if run.cancelled != Cancelled::No {
            run.cancelled = by;
            return;
        }
        run.cancelled = by;
        let invocation = run.invocation;
        stops.out.push(Effect::Cancel {
            invocation,
            by_caller: by == Cancelled::ByCaller,
        });
        // A shutdown has a grace period of its own, and names what did not return.
        if by != Cancelled::ByShutdown {
            self.set_patience(slot, stops);
        }
        self.touch_status(slot);
    }

    /// Sets the timer after which a cancelled invocation is abandoned.
    fn set_patience(&self, slot: Slot, stops: &mut Stops<'_>) {
        let wait = self.options(slot).map(|options| options.cancel_deadline);
        let at = stops.now().after(wait.unwrap_or_default());
        if let Some(timer) = self.slots[slot].run().map(|run| Timer::Abandon(run.invocation))
            && stops.timers.due(timer).is_none()
        {
            stops.timers.set(timer, at);
        }
    }

    /// Lists the unsettled resources among the roots and their descendants.
    pub(crate) fn unsettled_from(&mut self, roots: &[Slot]) -> Vec<Slot> {
        let mut seen = HashSet::<Slot, FxBuildHasher>::default();
        let mut members: Vec<Slot> = roots.to_vec();
        members.retain(|root| seen.insert(*root));
        let mut next = 0;
        while let Some(member) = members.get(next).copied() {
            next += 1;
            for child in self.children(member) {
                if seen.insert(child) {
                    members.push(child);
                }
            }
        }
        self.visits.nodes += members.len() as u64;
        // Last of all, for below what has settled something may be unsettled still.
        members.retain(|member| self.slots[*member].is_unsettled());
        members
    }

    /// Returns the priority that a pending resource passes on to its parents.
    pub(super) fn inheritable(&self, slot: Slot) -> Priority {
        let pending = self.slots[slot].pending();
        pending.map_or(Priority::Background, |pending| pending.inheritable)
    }

    /// Raises the priority of a pending resource and its pending ancestors. Visits only resources with a lower
    /// priority.
    pub(super) fn raise_priority(&mut self, slot: Slot, priority: Priority) {
        let mut open = vec![slot];
        while let Some(slot) = open.pop() {
            let Some(pending) = self.slots[slot].pending_mut() else {
                continue;
            };
            // Its parents have this priority or a higher one already: the walk ends here.
            if !pending.inherit(priority) {
                continue;
            }
            self.visits.nodes += 1;
            // Its entry in the ready queue has the old rank; considering it again makes another.
            self.slots[slot].listed.ready = None;
            self.enqueue(slot);
            let parents: Vec<Slot> = self.parents(slot).collect();
            self.visits.edges += parents.len() as u64;
            open.extend(parents);
        }
    }

    /// Stores the duration of a completed reconcile.
    pub(crate) fn measure(&mut self, slot: Slot, started_at: Timestamp, ended_at: Timestamp) {
        let ms = ended_at.0.saturating_sub(started_at.0).max(0);
        self.slots[slot].duration_ms = u32::try_from(ms).unwrap_or(u32::MAX);
    }

    /// Restores the duration of the last completed reconcile from the row.
    pub(crate) fn measure_stored(&mut self, slot: Slot) {
        let last = self.slots[slot].row.last_run.as_ref();
        let completed =
            last.filter(|last| last.phase == Phase::Reconcile && last.result != RunResult::Cancelled);
        if let Some((started_at, ended_at)) = completed.map(|last| (last.started_at, last.ended_at)) {
            self.measure(slot, started_at, ended_at);
        }
    }
}

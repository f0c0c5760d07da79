//! Requests: a resource and all of its descendants become pending.
//!
//! Pending is closed downwards: what is below an unsettled resource is unsettled. So a walk stops at what is
//! unsettled already, and another request for a pending resource costs O(1).

use std::collections::HashSet;
use std::sync::Arc;

use super::Graph;
use super::resource::Cancelled;
use super::settling::Stops;
use crate::types::index::Slot;
use crate::types::reason::Cancels;
use crate::{Mono, OnTimedAncestor, Phase, Priority, Reason, Trigger};
use rustc_hash::FxBuildHasher;

/// A resource in the depth-first walk, with the next edge to follow.
struct Frame {
    slot: Slot,
    next: usize,
    /// Reason for requesting the children; made when the first child is requested.
    parent_reason: Option<Arc<Reason>>,
}

impl Graph {
    /// Requests a live resource directly, not through a parent.
    pub(crate) fn request(&mut self, slot: Slot, reason: &Arc<Reason>, stops: &mut Stops<'_>) {
        let why = reason.trigger;
        self.visits.nodes += 1;
        debug_assert!(self.slots[slot].is_live());
        // With `Parents::Changed` a run that was requested by itself must not be released for want of changes.
        self.slots[slot].requested = true;
        // Fairness (C17) counts from the last request that is no timed one: an edit excuses a resource that has not
        // completed.
        if !why.is_timed() {
            self.slots[slot].disturbed = stops.now();
        }
        // Everything below is unsettled already if this is, so only a settled one starts a walk.
        if !self.slots[slot].is_unsettled() {
            return self.unsettle(slot, reason, why, stops);
        }
        if let Some(pending) = self.slots[slot].pending_mut() {
            // A request after `cancel(name)` takes the cancel back.
            pending.cancelled = false;
            // Only one reason is shown. A request of its own says more than a parent, and an edit more than a timer.
            if pending.reason.trigger == Trigger::Parent
                || (why.cancels() && !pending.reason.trigger.cancels())
            {
                pending.reason = reason.clone();
                self.touch_status(slot);
                if why.cancels() {
                    self.propagate_reason(slot);
                }
            }
            self.enqueue(slot);
            self.raise_priority(slot, reason.priority());
        } else if let Some(run) = self.slots[slot].run_mut() {
            // The invocation has seen the old spec and the old parents: one more run answers all requests that came
            // meanwhile.
            if run
                .rerun
                .as_ref()
                .is_none_or(|rerun| rerun.trigger == Trigger::Parent)
            {
                run.rerun = Some(reason.clone());
            }
            // The caller that cancelled wanted it to stop; this later request wants it to run.
            if run.cancelled == Cancelled::ByCaller {
                run.cancelled = Cancelled::ToRunAgain;
            }
            if why.cancels() {
                self.cancel_run(slot, Cancelled::ToRunAgain, stops);
                self.propagate_reason(slot);
            }
        }
        self.cancel_below(slot, why, stops);
    }

    /// Keeps the request that a pause holds back: `resume` makes one of all (C19), of the latest edit or else of the first.
    pub(crate) fn hold_back(&mut self, slot: Slot) {
        let asked = self.reason_to_come(slot);
        let is_edit = asked.as_ref().is_some_and(|it| it.trigger.forgets_failures());
        if is_edit || !self.slots[slot].is_missed() {
            self.slots[slot].set_missed(asked);
        }
    }

    /// Replaces the start-up reason of pending descendants with this more specific one. Visits each at most once.
    fn propagate_reason(&mut self, slot: Slot) {
        // A reason that adds nothing must not be propagated, or a cycle would be walked forever.
        let says_more = |reason: Arc<Reason>| !reason.is_only_the_start();
        if !self.reason_to_come(slot).is_some_and(says_more) {
            return;
        }
        let mut open = vec![slot];
        while let Some(above) = open.pop() {
            let mut reason = None;
            let mut next = 0;
            while let Some((referrer, link)) = self.referrer(self.slots[above].name, next) {
                next += 1;
                self.visits.edges += 1;
                let child = referrer.slot;
                let pending = self.slots[child].pending();
                let knows_less = pending.is_some_and(|it| link.counted && it.reason.is_only_the_start());
                if !knows_less {
                    continue;
                }
                let reason = reason.get_or_insert_with(|| self.reason_as_parent(above)).clone();
                if let Some(pending) = self.slots[child].pending_mut() {
                    pending.reason = reason;
                }
                self.touch_status(child);
                open.push(child);
            }
        }
    }

    /// Makes a settled resource and its settled descendants pending.
    fn unsettle(&mut self, slot: Slot, reason: &Arc<Reason>, why: Trigger, stops: &mut Stops<'_>) {
        let resource = &self.slots[slot];
        if resource.cycle.is_none() && self.names[resource.name].referrers.is_empty() {
            // Nothing is below it, as below most resources of a wide catalog.
            self.visits.nodes += 1;
            self.set_pending(slot, reason.clone(), stops.now());
            return self.sum_up(slot);
        }
        let mut frames: Vec<Frame> = Vec::new();
        // What is unsettled already is not walked here; something may still run below it.
        let mut unsettled_before: Vec<Slot> = Vec::new();
        unsettled_before.extend(self.enter(slot, reason, (why, stops.now()), &mut frames));
        while let Some(frame) = frames.last_mut() {
            let (above, next) = (frame.slot, frame.next);
            let Some((referrer, link)) = self.referrer(self.slots[above].name, next) else {
                frames.pop();
                self.sum_up(above);
                continue;
            };
            frame.next += 1;
            self.visits.edges += 1;
            let (child, scc_root) = (referrer.slot, self.scc_root(referrer.slot));
            // Members of a cycle act as one node: an edge inside it would make it wait for itself.
            if !link.counted || scc_root == self.scc_root(above) {
                continue;
            }
            // Settled or not, the child waits for this parent from now on. The edge is taken off when the parent settles.
            self.slots[scc_root].unsettled_parents += 1;
            if !self.slots[child].is_unsettled() {
                let reason = self.parent_reason(&mut frames);
                unsettled_before.extend(self.enter(child, &reason, (why, stops.now()), &mut frames));
                continue;
            }
            // It started with its parents settled. One of them is pending now, so its result is out of date.
            if self.slots[child].is_running() {
                let reason = self.parent_reason(&mut frames);
                self.touch_run(child, &reason, why, stops);
            }
            unsettled_before.push(child);
        }
        // Only after the walk: before that, counts of busy children are incomplete.
        for child in unsettled_before {
            self.cancel_below(child, why, stops);
        }
    }

    /// Makes a resource pending, together with its cycle. Returns a member of the cycle that was unsettled before.
    fn enter(
        &mut self,
        slot: Slot,
        reason: &Arc<Reason>,
        (why, now): (Trigger, Mono),
        frames: &mut Vec<Frame>,
    ) -> Option<Slot> {
        let scc_root = self.scc_root(slot);
        let mut index = 0;
        let mut unsettled_before = None;
        while let Some(member) = self.member(scc_root, index) {
            index += 1;
            // A member may have been requested by an earlier edit of the same batch, before the cycle closed.
            if self.slots[member].is_unsettled() {
                unsettled_before = Some(member);
                continue;
            }
            self.visits.nodes += 1;
            self.set_pending(member, reason.clone(), now);
            if let Some(pending) = self.slots[member].pending_mut() {
                pending.swept = why.cancels_below(); // by the walk that this belongs to
            }
            // Until its busy children are summed up, changes below it are left out of its count.
            self.slots[member].summing = true;
            frames.push(Frame {
                slot: member,
                next: 0,
                parent_reason: None,
            });
        }
        unsettled_before
    }

    /// Counts the busy children of a newly unsettled resource, after all children have done so.
    fn sum_up(&mut self, slot: Slot) {
        let scc_root = self.scc_root(slot);
        let was_busy = self.is_busy(scc_root);
        let (mut next, mut path, mut inherited) = (0, 0, Priority::Background);
        while let Some((referrer, link)) = self.referrer(self.slots[slot].name, next) {
            next += 1;
            let below = self.scc_root(referrer.slot);
            if !link.counted || below == scc_root {
                continue;
            }
            path = path.max(self.slots[referrer.slot].path_ms);
            // A waiting child lends its priority, so that a request for a leaf is not held up by a background parent.
            inherited = inherited.min(self.inheritable(referrer.slot));
            if self.is_busy(below) {
                self.slots[scc_root].busy_children += 1;
            }
        }
        self.slots[slot].path_ms = path.saturating_add(self.slots[slot].duration_ms);
        self.slots[slot].summing = false;
        if let Some(pending) = self.slots[slot].pending_mut() {
            pending.inherit(inherited);
        }
        // Parents of this walk count it when they are summed up; those that were unsettled before are corrected here.
        if !was_busy && self.is_busy(scc_root) {
            self.became_busy(scc_root);
        }
    }

    fn parent_reason(&self, frames: &mut [Frame]) -> Arc<Reason> {
        let Some(frame) = frames.last_mut() else {
            return Arc::new(Reason::bare(Trigger::Parent));
        };
        let parent = frame.slot;
        frame
            .parent_reason
            .get_or_insert_with(|| self.reason_as_parent(parent))
            .clone()
    }

    fn reason_as_parent(&self, parent: Slot) -> Arc<Reason> {
        let reason = Reason::because(Trigger::Parent, self.cause_of(parent));
        Arc::new(reason.after(self.reason_to_come(parent)))
    }

    /// Makes a running descendant run again, and cancels its invocation if the request cancels it.
    fn touch_run(&mut self, slot: Slot, reason: &Arc<Reason>, why: Trigger, stops: &mut Stops<'_>) {
        let on_timed = self.options(slot).map(|options| options.on_timed_ancestor);
        let cancels = match why.cancels_below() {
            Cancels::All => true,
            Cancels::Consenting => on_timed == Some(OnTimedAncestor::Cancel),
            Cancels::None => false,
        };
        let Some(run) = self.slots[slot].run_mut() else {
            return;
        };
        // Within a batch the walk may reach a parent that is not requested yet and so has no reason.
        let says_more = |rerun: &Arc<Reason>| !rerun.is_only_the_start() || reason.is_only_the_start();
        if !run.rerun.as_ref().is_some_and(says_more) {
            run.rerun = Some(reason.clone());
        }
        // A rename reads no refs, so changes of ancestors do not concern it.
        if cancels && run.cancelled == Cancelled::No && run.phase == Phase::Reconcile {
            self.cancel_run(slot, Cancelled::ToRunAgain, stops);
        }
    }

    /// Cancels the running descendants that the request cancels. Done once per pending resource and level, since
    /// nothing new starts below it.
    fn cancel_below(&mut self, slot: Slot, why: Trigger, stops: &mut Stops<'_>) {
        let level = why.cancels_below();
        if level == Cancels::None {
            return;
        }
        let mut open = vec![self.scc_root(slot)];
        let mut seen = HashSet::<Slot, FxBuildHasher>::default();
        while let Some(scc_root) = open.pop() {
            // Nothing runs below a node without busy children, so whole subgraphs are left out.
            if self.slots[scc_root].busy_children == 0 || !seen.insert(scc_root) {
                continue;
            }
            self.visits.nodes += 1;
            let mut index = 0;
            while let Some(member) = self.member(scc_root, index) {
                index += 1;
                if let Some(pending) = self.slots[member].pending_mut() {
                    // Swept at this level before, and nothing can have started below since.
                    if pending.swept >= level {
                        continue;
                    }
                    pending.swept = level;
                }
                let below: Vec<Slot> = self.children(member).collect();
                self.visits.edges += below.len() as u64;
                for child in below {
                    let child_rep = self.scc_root(child);
                    if child_rep != scc_root && self.is_busy(child_rep) {
                        if self.slots[child].is_running() {
                            self.touch_run(child, &self.reason_as_parent(member), why, stops);
                        }
                        open.push(child_rep);
                    }
                }
            }
        }
    }
}

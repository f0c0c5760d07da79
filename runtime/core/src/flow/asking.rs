//! Asking for a resource: it and all of its descendants become pending.
//!
//! Pending is closed downwards: what is below an unsettled resource is unsettled. So a walk stops at what is
//! unsettled already, and asking again for a pending resource costs O(1).

use std::collections::HashSet;
use std::sync::Arc;

use crate::core::Core;
use crate::resource::lifecycle::{At, Event};
use crate::resource::{Cancelled, Op, Pending, Slot};
use crate::types::reason::Cancels;
use crate::{Cause, Effect, OnTimedAncestor, Phase, Priority, QuickHash, Reason, Settled, Why};

/// One resource whose edges downwards are being walked.
struct Frame {
    slot: Slot,
    next: usize,
    /// Why its children are asked for; made when the first one is.
    parent_reason: Option<Arc<Reason>>,
}

impl Core {
    /// Asks for a live resource by a request of its own.
    pub(crate) fn ask(&mut self, slot: Slot, reason: &Arc<Reason>) {
        let why = reason.why;
        self.counters.nodes += 1;
        debug_assert!(self.slots[slot].is_live());
        self.slots[slot].own = true;
        if !why.is_timed() {
            self.slots[slot].disturbed = self.now.mono;
        }
        if why.cancels() {
            self.retry_rename_now(slot);
            self.forget_attempts(slot);
        }
        if !self.slots[slot].is_unsettled() {
            return self.unsettle(slot, reason, why);
        }
        if let Some(pending) = self.slots[slot].pending_mut() {
            pending.cancelled = false;
            if pending.reason.why == Why::Parent || (why.cancels() && !pending.reason.why.cancels()) {
                pending.reason = reason.clone();
                self.touch_status(slot);
                if why.cancels() {
                    self.tell_below(slot);
                }
            }
            self.enqueue(slot);
            self.raise_priority(slot, reason.priority());
        } else if let Some(run) = self.slots[slot].run_mut() {
            if run.again.as_ref().is_none_or(|again| again.why == Why::Parent) {
                run.again = Some(reason.clone());
            }
            if run.cancelled == Cancelled::ByCaller {
                run.cancelled = Cancelled::ToRunAgain;
            }
            if why.cancels() {
                self.cancel_run(slot, Cancelled::ToRunAgain);
                self.tell_below(slot);
            }
        }
        self.cancel_below(slot, why);
    }

    /// What is pending below only because the controller started runs because of this request as well, which says
    /// more. Each is told once.
    fn tell_below(&mut self, slot: Slot) {
        // What says no more itself would be told round a cycle for ever.
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
                self.counters.edges += 1;
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

    /// Makes a settled resource, and whatever is settled below it, pending.
    fn unsettle(&mut self, slot: Slot, reason: &Arc<Reason>, why: Why) {
        let resource = &self.slots[slot];
        if resource.cycle.is_none() && self.names[resource.name].referrers.is_empty() {
            // Nothing is below it, as below most resources of a wide catalog.
            self.counters.nodes += 1;
            self.set_pending(slot, reason.clone());
            return self.sum_up(slot);
        }
        let mut frames: Vec<Frame> = Vec::new();
        // What is unsettled already is not walked here; something may still run below it.
        let mut unsettled_before: Vec<Slot> = Vec::new();
        self.enter(slot, reason, why, &mut frames);
        while let Some(frame) = frames.last_mut() {
            let (above, next) = (frame.slot, frame.next);
            let Some((referrer, link)) = self.referrer(self.slots[above].name, next) else {
                frames.pop();
                self.sum_up(above);
                continue;
            };
            frame.next += 1;
            self.counters.edges += 1;
            let (child, rep) = (referrer.slot, self.rep(referrer.slot));
            if !link.counted || rep == self.rep(above) {
                continue;
            }
            self.slots[rep].unsettled_parents += 1;
            if !self.slots[child].is_unsettled() {
                let reason = self.parent_reason(&mut frames);
                self.enter(child, &reason, why, &mut frames);
                continue;
            }
            if self.slots[child].is_running() {
                let reason = self.parent_reason(&mut frames);
                self.touch_run(child, &reason, why);
            }
            unsettled_before.push(child);
        }
        for child in unsettled_before {
            self.cancel_below(child, why);
        }
    }

    /// Makes one resource pending, and with it the cycle that it is on.
    fn enter(&mut self, slot: Slot, reason: &Arc<Reason>, why: Why, frames: &mut Vec<Frame>) {
        let rep = self.rep(slot);
        let mut index = 0;
        while let Some(member) = self.member(rep, index) {
            index += 1;
            if self.slots[member].is_unsettled() {
                continue;
            }
            self.counters.nodes += 1;
            self.set_pending(member, reason.clone());
            if let Some(pending) = self.slots[member].pending_mut() {
                pending.swept = why.cancels_below(); // by the walk that this belongs to
            }
            self.slots[member].summing = true;
            frames.push(Frame {
                slot: member,
                next: 0,
                parent_reason: None,
            });
        }
    }

    /// Counts the busy children of a resource that has become unsettled, all of its children having done so.
    fn sum_up(&mut self, slot: Slot) {
        let rep = self.rep(slot);
        let was_busy = self.is_busy(rep);
        let (mut next, mut path, mut inherited) = (0, 0, Priority::Background);
        while let Some((referrer, link)) = self.referrer(self.slots[slot].name, next) {
            next += 1;
            let below = self.rep(referrer.slot);
            if !link.counted || below == rep {
                continue;
            }
            path = path.max(self.slots[referrer.slot].path_ms);
            inherited = inherited.min(self.inheritable(referrer.slot));
            if self.is_busy(below) {
                self.slots[rep].busy_children += 1;
            }
        }
        self.slots[slot].path_ms = path.saturating_add(self.slots[slot].duration_ms);
        self.slots[slot].summing = false;
        if let Some(pending) = self.slots[slot].pending_mut() {
            pending.inherit(inherited);
        }
        if !was_busy && self.is_busy(rep) {
            self.became_busy(rep);
        }
    }

    fn parent_reason(&self, frames: &mut [Frame]) -> Arc<Reason> {
        let Some(frame) = frames.last_mut() else {
            return Arc::new(Reason::bare(Why::Parent));
        };
        let parent = frame.slot;
        frame
            .parent_reason
            .get_or_insert_with(|| self.reason_as_parent(parent))
            .clone()
    }

    fn reason_as_parent(&self, parent: Slot) -> Arc<Reason> {
        let reason = Reason::because(Why::Parent, self.cause_of(parent));
        Arc::new(reason.after(self.reason_to_come(parent)))
    }

    /// This resource, as what is behind a request for another.
    pub(crate) fn cause_of(&self, slot: Slot) -> Cause {
        let row = &self.slots[slot].row;
        Cause::Resource {
            uid: row.uid,
            key: row.key(),
        }
    }

    /// Why it is going to run, if it is.
    pub(crate) fn reason_to_come(&self, slot: Slot) -> Option<Arc<Reason>> {
        match self.slots[slot].lifecycle.at() {
            At::Pending(pending) => Some(pending.reason.clone()),
            At::Running(run) => run.again.clone(),
            At::Settled(_) | At::Concluding => None,
        }
    }

    /// Why the invocation runs that a call comes from, if it comes from one.
    pub(crate) fn reason_of_run(&self, slot: Option<Slot>) -> Option<Arc<Reason>> {
        Some(self.slots[slot?].run()?.reason.clone())
    }

    /// A running resource below one that is asked for runs again, and is cancelled if the request cancels it.
    fn touch_run(&mut self, slot: Slot, reason: &Arc<Reason>, why: Why) {
        let on_timed = self.options(slot).map(|options| options.on_timed_ancestor);
        let cancels = match why.cancels_below() {
            Cancels::All => true,
            Cancels::Consenting => on_timed == Some(OnTimedAncestor::Cancel),
            Cancels::None => false,
        };
        let Some(run) = self.slots[slot].run_mut() else {
            return;
        };
        run.again.get_or_insert_with(|| reason.clone());
        // A rename reads no refs: what happens above it is nothing to it.
        if cancels && run.cancelled == Cancelled::No && run.phase == Phase::Reconcile {
            self.cancel_run(slot, Cancelled::ToRunAgain);
        }
    }

    /// A request for an unsettled resource: cancels what it cancels of what runs below, along busy nodes. While a
    /// resource is pending nothing new starts below it, so for each it is done once for each level.
    fn cancel_below(&mut self, slot: Slot, why: Why) {
        let level = why.cancels_below();
        if level == Cancels::None {
            return;
        }
        let reason = Arc::new(Reason::bare(Why::Parent));
        let mut open = vec![self.rep(slot)];
        let mut seen = HashSet::<Slot, QuickHash>::default();
        while let Some(rep) = open.pop() {
            if self.slots[rep].busy_children == 0 || !seen.insert(rep) {
                continue;
            }
            self.counters.nodes += 1;
            let mut index = 0;
            while let Some(member) = self.member(rep, index) {
                index += 1;
                if let Some(pending) = self.slots[member].pending_mut() {
                    if pending.swept >= level {
                        continue;
                    }
                    pending.swept = level;
                }
                let below: Vec<Slot> = self.children(member).collect();
                self.counters.edges += below.len() as u64;
                for child in below {
                    let child_rep = self.rep(child);
                    if child_rep != rep && self.is_busy(child_rep) {
                        if self.slots[child].is_running() {
                            self.touch_run(child, &reason, why);
                        }
                        open.push(child_rep);
                    }
                }
            }
        }
    }

    /// Tells an invocation to stop; what it returns is dropped.
    pub(crate) fn cancel_run(&mut self, slot: Slot, by: Cancelled) {
        let Some(run) = self.slots[slot].run_mut() else {
            return;
        };
        if run.cancelled != Cancelled::No {
            run.cancelled = by;
            return;
        }
        run.cancelled = by;
        let invocation = run.invocation;
        self.out.push(Effect::Cancel(invocation));
        if by != Cancelled::ByShutdown {
            self.set_patience(slot);
        }
        self.touch_status(slot);
    }

    /// Asked for, not yet started. For a live resource its edges must be seen to by the caller.
    pub(crate) fn set_pending(&mut self, slot: Slot, reason: Arc<Reason>) {
        self.on(slot, Event::Asked(Pending::new(reason, self.now.mono)));
        self.enqueue(slot);
    }

    /// The same for one whose invocation has returned. What waits for it may have been asked for meanwhile: it inherits
    /// the priority of that, and its parents inherit its own.
    pub(crate) fn set_pending_again(&mut self, slot: Slot, reason: Arc<Reason>) {
        self.set_pending(slot, reason);
        if !self.slots[slot].is_live() {
            return;
        }
        let mut inherited = Priority::Background;
        let mut next = 0;
        while let Some((referrer, link)) = self.referrer(self.slots[slot].name, next) {
            next += 1;
            self.counters.edges += 1;
            if link.counted {
                inherited = inherited.min(self.inheritable(referrer.slot));
            }
        }
        if let Some(pending) = self.slots[slot].pending_mut() {
            pending.inherit(inherited);
        }
        let priority = self.inheritable(slot);
        if priority < Priority::Background {
            let parents: Vec<Slot> = self.parents(slot).collect();
            for parent in parents {
                self.raise_priority(parent, priority);
            }
        }
    }

    /// Settles one resource, or all of the cycle that it is on, and tells those below.
    pub(crate) fn settle(&mut self, slot: Slot, why: &Settled) {
        let rep = self.rep(slot);
        debug_assert_eq!(
            self.slots[rep].unsettled_parents, 0,
            "pending is closed downwards"
        );
        let mut index = 0;
        while let Some(member) = self.member(rep, index) {
            index += 1;
            self.counters.nodes += 1;
            self.on(member, Event::Settled(why.clone()));
            let mut next = 0;
            while let Some((referrer, link)) = self.referrer(self.slots[member].name, next) {
                next += 1;
                self.counters.edges += 1;
                let below = self.rep(referrer.slot);
                if link.counted && below != rep {
                    self.slots[below].unsettled_parents -= 1;
                    if self.slots[below].unsettled_parents == 0 {
                        self.enqueue(below);
                    }
                }
            }
            self.store_requeue(member);
            self.on_settled(member);
        }
        self.slots[rep].busy_children = 0;
    }

    /// What follows for waits and gates when a resource has settled, or has gone.
    pub(crate) fn on_settled(&mut self, slot: Slot) {
        if self.slots[slot].gates {
            self.slots[slot].gates = false;
            self.gate.remove(&slot);
        }
        self.answer_settled(slot);
    }

    /// Has the resource considered before the input is done with.
    pub(crate) fn enqueue(&mut self, slot: Slot) {
        let listed = &mut self.slots[slot].listed;
        if !listed.queued {
            listed.queued = true;
            self.queue.push_back(slot);
        }
    }

    /// A rename that failed is tried at once when something asks for its resource anew.
    fn retry_rename_now(&mut self, slot: Slot) {
        if self.slots[slot].op == Op::Failed {
            self.rearm(slot);
        }
    }
}

//! The queue: what is considered, what is ready, and what starts first within the limits (C12).

use crate::core::Core;
use crate::resource::lifecycle::Event;
use crate::resource::{Life, NameId, Op, Slot};
use crate::timers::Timer;
use crate::{Parents, Phase, Required, Revision, RunResult, Settled};

/// What can be done with a resource now.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Nothing; whatever it waits for has it considered again.
    Wait,
    /// Nothing before this revision is committed.
    AwaitCommit(Revision),
    /// Considered by the first member of its cycle.
    AskFirst(Slot),
    /// It settles without an invocation.
    Release(Settled),
    /// It may start, as far as limits, gates and names allow.
    Start(Phase),
}

impl Core {
    /// Decides what becomes of a resource that something has happened to.
    pub(crate) fn consider(&mut self, slot: Slot) {
        self.counters.nodes += 1;
        match self.verdict(slot) {
            Verdict::Wait => {}
            Verdict::AwaitCommit(revision) => self.awaiting.entry(revision).or_default().push(slot),
            Verdict::AskFirst(first) => self.enqueue(first),
            Verdict::Release(why) => self.release(slot, &why),
            Verdict::Start(phase) => self.push_ready(slot, phase),
        }
    }

    pub(crate) fn verdict(&self, slot: Slot) -> Verdict {
        let resource = &self.slots[slot];
        let Some(pending) = resource.pending() else {
            return Verdict::Wait;
        };
        if resource.hold > self.commits.durable() {
            return Verdict::AwaitCommit(resource.hold);
        }
        let kept_out = self.kept_out(slot);
        if resource.life == Life::Deleted {
            return match kept_out {
                Some(why) => Verdict::Release(why),
                None => self.delete_verdict(slot),
            };
        }
        if let (Op::Due { .. }, true, None) = (resource.op, self.can_run(slot), &kept_out) {
            return Verdict::Start(Phase::Rename);
        }
        let rep = self.rep(slot);
        if self.slots[rep].unsettled_parents > 0 {
            return Verdict::Wait;
        }
        if resource.cycle.is_some() {
            return self.cycle_verdict(slot, rep);
        }
        if let Some(why) = kept_out.or_else(|| self.below_abandoned(slot)) {
            return Verdict::Release(why);
        }
        if let Some(why) = self.unrunnable(slot) {
            return Verdict::Release(why);
        }
        if resource.has_op() {
            return Verdict::Release(Settled::Retrying);
        }
        if pending.cancelled {
            return Verdict::Release(Settled::Cancelled);
        }
        if self.is_held_by_pause(slot) {
            return Verdict::Release(Settled::Paused);
        }
        self.regular_verdict(slot, rep)
    }

    fn delete_verdict(&self, slot: Slot) -> Verdict {
        let resource = &self.slots[slot];
        if !self.can_run(slot) {
            return Verdict::Release(self.unrunnable(slot).unwrap_or(Settled::Unsupported));
        }
        match resource.op {
            Op::Due { .. } if resource.extra().delete_waits == 0 => Verdict::Start(Phase::Delete),
            _ => Verdict::Wait,
        }
    }

    /// A cycle is released as one, when nothing above it is unsettled and none of its invocations runs.
    fn cycle_verdict(&self, slot: Slot, rep: Slot) -> Verdict {
        if slot != rep {
            return Verdict::AskFirst(rep);
        }
        let mut hold = Revision(0);
        let mut kept_out = None;
        let mut index = 0;
        while let Some(member) = self.member(rep, index) {
            index += 1;
            let resource = &self.slots[member];
            let why = self.kept_out(member);
            let renames = matches!(resource.op, Op::Due { .. }) && why.is_none();
            if resource.is_running() || renames {
                return Verdict::Wait;
            }
            hold = hold.max(resource.hold);
            kept_out = kept_out.or(why).or_else(|| self.below_abandoned(member));
        }
        if hold > self.commits.durable() {
            return Verdict::AwaitCommit(hold);
        }
        Verdict::Release(kept_out.unwrap_or(Settled::OnCycle))
    }

    /// Whether a reconciler is registered and the stored bytes could be read.
    pub(crate) fn can_run(&self, slot: Slot) -> bool {
        self.unrunnable(slot).is_none()
    }

    pub(crate) fn unrunnable(&self, slot: Slot) -> Option<Settled> {
        if let Some(error) = self.slots[slot].unreadable() {
            return Some(Settled::Unreadable(error.clone()));
        }
        self.options(slot).is_none().then_some(Settled::Unsupported)
    }

    fn regular_verdict(&self, slot: Slot, rep: Slot) -> Verdict {
        let resource = &self.slots[slot];
        let mut hold = Revision(0);
        for link in &resource.links {
            if let Some(target) = self.names[link.name].live {
                hold = hold.max(self.slots[target].hold);
            }
        }
        if hold > self.commits.durable() {
            return Verdict::AwaitCommit(hold);
        }
        if let Some(index) = self.unmet_ref(slot) {
            return Verdict::Release(Settled::WaitingForRef(resource.row.refs[index].clone()));
        }
        if self.is_unchanged(slot) {
            return Verdict::Release(self.rest(slot));
        }
        if self.slots[rep].busy_children > 0 {
            return Verdict::Wait;
        }
        Verdict::Start(Phase::Reconcile)
    }

    /// The first ref whose requirement does not hold.
    fn unmet_ref(&self, slot: Slot) -> Option<usize> {
        let unmet = |name: NameId, required: Required| match (required, self.names[name].live) {
            (Required::Completed, _) | (Required::Exists, Some(_)) => false,
            (_, None) => true,
            (Required::Ready, Some(target)) => !self.is_ready(target),
        };
        self.slots[slot]
            .links
            .iter()
            .position(|link| unmet(link.name, link.required))
    }

    /// Whether its last completed invocation succeeded and saw its present spec version.
    fn is_ready(&self, slot: Slot) -> bool {
        let resource = &self.slots[slot];
        if resource.is_failed() {
            return false;
        }
        let Some(seen) = resource.row.last_run.as_ref().and_then(|run| run.seen.as_ref()) else {
            return false;
        };
        seen.spec_version == resource.row.spec_version
    }

    /// `parents: changed`: nothing but finished parents asked for it, and nothing that it sees has changed.
    fn is_unchanged(&self, slot: Slot) -> bool {
        let resource = &self.slots[slot];
        let only_changed = self
            .options(slot)
            .is_some_and(|options| options.parents == Parents::Changed);
        if !only_changed || resource.own {
            return false;
        }
        let Some(last) = &resource.row.last_run else {
            return false;
        };
        let Some(seen) = &last.seen else { return false };
        matches!(last.result, RunResult::Done(_)) && self.refs_now(slot).eq(seen.refs.iter().copied())
    }

    /// How a resource stands that has nothing to do.
    pub(crate) fn rest(&self, slot: Slot) -> Settled {
        if self.timers.due(Timer::Retry(slot)).is_some() {
            Settled::Retrying
        } else if self.slots[slot].row.error.is_some() {
            Settled::Failed
        } else {
            Settled::Idle
        }
    }

    fn release(&mut self, slot: Slot, why: &Settled) {
        self.counters.releases += 1;
        if *why == Settled::Paused {
            self.slots[slot].extra_mut().missed = true;
        }
        if self.slots[slot].is_live() {
            self.settle(slot, why);
        } else {
            self.on(slot, Event::Settled(why.clone()));
            self.on_settled(slot);
        }
    }

    pub(crate) fn start_if_still_ready(&mut self, slot: Slot, phase: Phase) {
        match self.verdict(slot) {
            Verdict::Start(now) if now == phase => {}
            // Something else became of it meanwhile, which the next look at it finds out.
            _ => return self.consider(slot),
        }
        if self.user_of_its_names(slot).is_some() {
            return; // the return of that invocation has it considered again
        }
        if phase == Phase::Reconcile
            && let Some(why) = self.held_name(slot)
        {
            return self.release(slot, &why);
        }
        self.start(slot, phase);
    }

    /// Another resource with an invocation that began under one of its names (C1).
    pub(crate) fn user_of_its_names(&self, slot: Slot) -> Option<Slot> {
        self.slots[slot].names().find_map(|name| {
            let entry = &self.names[name];
            let mut claimants = entry.others.iter().copied().chain(entry.live);
            claimants.find(|other| {
                *other != slot
                    && self.slots[*other]
                        .run()
                        .is_some_and(|run| run.under.contains(name))
            })
        })
    }

    /// Who holds its name by a delete or rename that no longer counts (C6).
    pub(crate) fn held_name(&self, slot: Slot) -> Option<Settled> {
        let others = &self.names[self.slots[slot].name].others;
        let holds = |other: &&Slot| {
            let resource = &self.slots[**other];
            **other != slot && resource.has_op() && resource.life != Life::Gone
        };
        let holder = &self.slots[*others.iter().find(holds)?];
        Some(Settled::WaitingForName {
            holder: holder.row.uid,
            key: holder.row.key(),
        })
    }

    /// When nothing can start because a resource of a `first` kind waits for one that is not, the gate opens.
    pub(crate) fn open_gate_if_stuck(&mut self) -> bool {
        let stuck = !self.gate.is_empty()
            && self.active() == 0
            && self.awaiting.is_empty()
            && !self.barrier.blocks(Phase::Reconcile);
        if stuck {
            for slot in std::mem::take(&mut self.gate) {
                self.slots[slot].gates = false;
            }
        }
        stuck
    }
}

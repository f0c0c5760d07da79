//! Verdicts: what can be done with a resource now, decided anew each time from what is.

use crate::graph::Graph;
use crate::graph::resource::{Life, Op};
use crate::timers::{Timer, Timers};
use crate::types::index::Slot;
use crate::{Phase, Revision, Settled};

/// The thing to do with a resource now.
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

/// All that verdicts depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdicts<'a> {
    graph: &'a Graph,
    timers: &'a Timers,
    /// The committed revision.
    durable: Revision,
}

impl<'a> Verdicts<'a> {
    pub(crate) fn new(graph: &'a Graph, timers: &'a Timers, durable: Revision) -> Self {
        Self {
            graph,
            timers,
            durable,
        }
    }

    /// The verdict on one resource.
    pub(crate) fn of(&self, slot: Slot) -> Verdict {
        let resource = &self.graph[slot];
        let Some(pending) = resource.pending() else {
            return Verdict::Wait;
        };
        if resource.hold() > self.durable {
            return Verdict::AwaitCommit(resource.hold());
        }
        let kept_out = self.graph.kept_out(slot);
        if resource.life() == Life::Deleted {
            return match kept_out {
                Some(why) => Verdict::Release(why),
                None => self.delete_verdict(slot),
            };
        }
        if let (Op::Due { .. }, true, None) = (resource.op(), self.graph.can_run(slot), &kept_out) {
            return Verdict::Start(Phase::Rename);
        }
        let rep = self.graph.rep(slot);
        if self.graph[rep].unsettled_parents() > 0 {
            return Verdict::Wait;
        }
        if resource.cycle().is_some() {
            return self.cycle_verdict(slot, rep);
        }
        if let Some(why) = kept_out.or_else(|| self.graph.below_abandoned(slot)) {
            return Verdict::Release(why);
        }
        if let Some(why) = self.graph.unrunnable(slot) {
            return Verdict::Release(why);
        }
        if resource.has_op() {
            return Verdict::Release(Settled::Retrying);
        }
        if pending.is_cancelled() {
            return Verdict::Release(Settled::Cancelled);
        }
        if self.graph.is_held_by_pause(slot) {
            return Verdict::Release(Settled::Paused);
        }
        self.regular_verdict(slot, rep)
    }

    fn delete_verdict(&self, slot: Slot) -> Verdict {
        let resource = &self.graph[slot];
        if !self.graph.can_run(slot) {
            return Verdict::Release(self.graph.unrunnable(slot).unwrap_or(Settled::Unsupported));
        }
        match resource.op() {
            Op::Due { .. } if resource.delete_waits() == 0 => Verdict::Start(Phase::Delete),
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
        while let Some(member) = self.graph.member(rep, index) {
            index += 1;
            let resource = &self.graph[member];
            let why = self.graph.kept_out(member);
            let renames = matches!(resource.op(), Op::Due { .. }) && why.is_none();
            if resource.is_running() || renames {
                return Verdict::Wait;
            }
            hold = hold.max(resource.hold());
            kept_out = kept_out.or(why).or_else(|| self.graph.below_abandoned(member));
        }
        if hold > self.durable {
            return Verdict::AwaitCommit(hold);
        }
        Verdict::Release(kept_out.unwrap_or(Settled::OnCycle))
    }

    fn regular_verdict(&self, slot: Slot, rep: Slot) -> Verdict {
        let resource = &self.graph[slot];
        let mut hold = Revision(0);
        for link in resource.links() {
            if let Some(target) = self.graph.live(link.name()) {
                hold = hold.max(self.graph[target].hold());
            }
        }
        for owned in self.graph.watched_by(slot) {
            hold = hold.max(self.graph[owned].hold());
        }
        if hold > self.durable {
            return Verdict::AwaitCommit(hold);
        }
        if let Some(index) = self.graph.unmet_ref(slot) {
            return Verdict::Release(Settled::WaitingForRef(resource.row().refs[index].clone()));
        }
        if self.graph.is_unchanged(slot) {
            return Verdict::Release(rest(self.graph, self.timers, slot));
        }
        if self.graph[rep].busy_children() > 0 {
            return Verdict::Wait;
        }
        Verdict::Start(Phase::Reconcile)
    }
}

/// Returns the standing of a resource that has nothing to do.
pub(crate) fn rest(graph: &Graph, timers: &Timers, slot: Slot) -> Settled {
    if timers.due(Timer::Retry(slot)).is_some() {
        Settled::Retrying
    } else if graph[slot].row().error.is_some() {
        Settled::Failed
    } else {
        Settled::Idle
    }
}

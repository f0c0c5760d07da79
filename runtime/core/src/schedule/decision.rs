//! Decisions: the next step of a resource, computed anew each time from the present state.

use crate::graph::Graph;
use crate::graph::resource::{Life, Op};
use crate::timers::{Timer, Timers};
use crate::types::index::Slot;
use crate::{Phase, Revision, Settled};

/// Next step of a resource.
#[derive(Debug)]
pub(crate) enum Decision {
    /// Wait for an event that evaluates the resource again.
    Wait,
    /// Wait until this revision is committed.
    AwaitCommit(Revision),
    /// Leave the decision to the first member of the cycle.
    LeaveTo(Slot),
    /// Settle without an invocation, for this reason.
    Release(Settled),
    /// Start this phase, as far as limits, gate and names allow.
    Start(Phase),
}

/// Evaluator of resources, with the components that decisions depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decider<'a> {
    graph: &'a Graph,
    timers: &'a Timers,
    /// Latest committed revision.
    durable: Revision,
}

impl<'a> Decider<'a> {
    pub(crate) fn new(graph: &'a Graph, timers: &'a Timers, durable: Revision) -> Self {
        Self {
            graph,
            timers,
            durable,
        }
    }

    /// Evaluates one resource.
    pub(crate) fn of(&self, slot: Slot) -> Decision {
        let resource = &self.graph[slot];
        let Some(pending) = resource.pending() else {
            return Decision::Wait;
        };
        // A reconciler must not see a spec, refs or name that a crash could take back.
        if resource.hold() > self.durable {
            return Decision::AwaitCommit(resource.hold());
        }
        let kept_out = self.graph.kept_out(slot);
        // A delete waits for no parent: it has no refs any more, only an output.
        if resource.life() == Life::Deleted {
            return match kept_out {
                Some(why) => Decision::Release(why),
                None => self.decide_delete(slot),
            };
        }
        // A rename comes before the count of parents: it moves an output and reads nothing.
        if let (Op::Due { .. }, true, None) = (resource.op(), self.graph.can_run(slot), &kept_out) {
            return Decision::Start(Phase::Rename);
        }
        let scc_root = self.graph.scc_root(slot);
        if self.graph[scc_root].unsettled_parents() > 0 {
            return Decision::Wait;
        }
        if resource.cycle().is_some() {
            return self.decide_cycle(slot, scc_root);
        }
        // Whoever may still write an output, or a parent's, must have returned first (C10).
        if let Some(why) = kept_out.or_else(|| self.graph.below_abandoned(slot)) {
            return Decision::Release(why);
        }
        if let Some(why) = self.graph.unrunnable(slot) {
            return Decision::Release(why);
        }
        // A rename that failed is retried by its own timer; a reconcile under a name whose output was not moved would
        // build it twice.
        if resource.has_op() {
            return Decision::Release(Settled::Retrying);
        }
        if pending.is_cancelled() {
            return Decision::Release(Settled::Cancelled);
        }
        if self.graph.is_held_by_pause(slot) {
            return Decision::Release(Settled::Paused);
        }
        self.decide_regular(slot, scc_root)
    }

    fn decide_delete(&self, slot: Slot) -> Decision {
        let resource = &self.graph[slot];
        if !self.graph.can_run(slot) {
            return Decision::Release(self.graph.unrunnable(slot).unwrap_or(Settled::Unsupported));
        }
        match resource.op() {
            Op::Due { .. } if resource.delete_waits() == 0 => Decision::Start(Phase::Delete),
            _ => Decision::Wait,
        }
    }

    /// Evaluates a cycle: it settles as one when no parent is unsettled and no member runs.
    fn decide_cycle(&self, slot: Slot, scc_root: Slot) -> Decision {
        // One member decides for all, or a cycle would be released once for each of them.
        if slot != scc_root {
            return Decision::LeaveTo(scc_root);
        }
        let mut hold = Revision(0);
        let mut kept_out = None;
        let mut index = 0;
        while let Some(member) = self.graph.member(scc_root, index) {
            index += 1;
            let resource = &self.graph[member];
            let why = self.graph.kept_out(member);
            let renames = matches!(resource.op(), Op::Due { .. }) && why.is_none();
            // Members that ran when the cycle closed come back first; none of them starts again (C7).
            if resource.is_running() || renames {
                return Decision::Wait;
            }
            hold = hold.max(resource.hold());
            kept_out = kept_out.or(why).or_else(|| self.graph.below_abandoned(member));
        }
        if hold > self.durable {
            return Decision::AwaitCommit(hold);
        }
        Decision::Release(kept_out.unwrap_or(Settled::OnCycle))
    }

    fn decide_regular(&self, slot: Slot, scc_root: Slot) -> Decision {
        let resource = &self.graph[slot];
        let mut hold = Revision(0);
        // Parents too: their specs and names are part of what it sees.
        for link in resource.links() {
            if let Some(target) = self.graph.live(link.name()) {
                hold = hold.max(self.graph[target].hold());
            }
        }
        // An owner's run sees the rows of what it owns, as those of its refs.
        for owned in self.graph.watched_by(slot) {
            hold = hold.max(self.graph[owned].hold());
        }
        if hold > self.durable {
            return Decision::AwaitCommit(hold);
        }
        if let Some(index) = self.graph.unmet_ref(slot) {
            return Decision::Release(Settled::WaitingForRef(resource.row().refs[index].clone()));
        }
        // Before the wait for what runs below: a run that is not made has nothing to wait for.
        if self.graph.is_unchanged(slot) {
            return Decision::Release(rest(self.graph, self.timers, slot));
        }
        // A child that still runs reads the present state of this one (C3).
        if self.graph[scc_root].busy_children() > 0 {
            return Decision::Wait;
        }
        Decision::Start(Phase::Reconcile)
    }
}

/// Returns the reason why a resource without further work settles.
pub(crate) fn rest(graph: &Graph, timers: &Timers, slot: Slot) -> Settled {
    if timers.due(Timer::Retry(slot)).is_some() {
        Settled::Retrying
    } else if graph[slot].row().error.is_some() {
        Settled::Failed
    } else {
        Settled::Idle
    }
}

//! Explanations of why a resource is not running, root cause first. Costs time in proportion to the resources that are
//! visited.

use std::collections::{BTreeSet, HashSet};

use crate::graph::Graph;
use crate::graph::lifecycle::At;
use crate::schedule::barrier::Barrier;
use crate::schedule::decision::{Decider, Decision};
use crate::schedule::scheduler::Scheduler;
use crate::timers::{Timer, Timers};
use crate::types::index::Slot;
use crate::{Blocker, Explanation, Now, Phase, Refusal, Revision, Settled, Subject, Target};
use rustc_hash::FxBuildHasher;

/// Maximum number of resources in one list of an explanation.
const NAMES_MAX: usize = 16;

/// Visited slots. Used for membership only, so the order is never observed.
type Visited = HashSet<Slot, FxBuildHasher>;

/// Builder of explanations, with the components that it reads.
pub(crate) struct Explainer<'a> {
    graph: &'a Graph,
    scheduler: &'a Scheduler,
    barrier: &'a Barrier,
    timers: &'a Timers,
    /// Latest committed revision.
    durable: Revision,
    now: Now,
}

impl<'a> Explainer<'a> {
    /// Creates an explainer over these components, as of a committed revision.
    pub(crate) fn new(
        graph: &'a Graph,
        (scheduler, barrier, timers): (&'a Scheduler, &'a Barrier, &'a Timers),
        durable: Revision,
        now: Now,
    ) -> Self {
        Self {
            graph,
            scheduler,
            barrier,
            timers,
            durable,
            now,
        }
    }

    /// Explains why a resource is not running now; see [`Core::explain`](crate::Core::explain).
    pub(crate) fn explain(&self, target: &Target) -> Result<Explanation, Refusal> {
        let slot = self.graph.resolve_with_deleted(target)?;
        let root = self.first_unsettled_above(slot);
        let status = self.graph.status(slot);
        let resource = &self.graph[slot];
        Ok(Explanation {
            subject: self.graph.subject(slot),
            stage: status.stage,
            reason: status.reason,
            waits_for: (root != slot).then(|| self.graph.subject(root)),
            because: self.why_not(root),
            blocked_by: self.failed_roots(slot),
            next_reconcile: resource.row().next_reconcile,
            attempts: resource.row().attempts,
            retry: self.graph.retry_policy(slot),
        })
    }

    fn decision(&self, slot: Slot) -> Decision {
        Decider::new(self.graph, self.timers, self.durable).of(slot)
    }

    /// Finds an ancestor that is unsettled and waits for no parent; the resource itself if none of its parents is
    /// unsettled.
    fn first_unsettled_above(&self, slot: Slot) -> Slot {
        let (mut at, mut seen) = (slot, Visited::default());
        while seen.insert(self.graph.scc_root(at)) && !self.graph[at].is_running() {
            let scc_root = self.graph.scc_root(at);
            if !self.graph[at].is_unsettled() || self.graph[scc_root].unsettled_parents() == 0 {
                break;
            }
            let mut members = (0..).map_while(|index| self.graph.member(scc_root, index));
            let above = members.find_map(|member| {
                let mut parents = self.graph.parents(member);
                parents.find(|parent| {
                    self.graph.scc_root(*parent) != scc_root && self.graph[*parent].is_unsettled()
                })
            });
            match above {
                Some(above) => at = above,
                None => break,
            }
        }
        at
    }

    fn why_settled(&self, slot: Slot, why: &Settled) -> Blocker {
        let now_known = match why {
            Settled::OnCycle => {
                let error = self.graph[slot].row().error.as_ref();
                error.map(|error| Blocker::Cycle(error.message.clone()))
            }
            Settled::Retrying => {
                let at = self.retry_at(slot);
                at.map(|at| Blocker::RetryIn(at.since(self.now.mono)))
            }
            // Another one may hold it by now, or the same one under another name.
            Settled::WaitingForName { .. } => self.graph.held_name(slot).map(Blocker::Settled),
            _ => None,
        };
        now_known.unwrap_or_else(|| Blocker::Settled(why.clone()))
    }

    fn why_not(&self, slot: Slot) -> Blocker {
        let resource = &self.graph[slot];
        match resource.at() {
            At::Running(run) => Blocker::Runs {
                invocation: run.invocation(),
                phase: run.phase(),
                cancelled: run.cancelled() != crate::graph::resource::Cancelled::No,
            },
            At::Settled(why) => self.why_settled(slot, why),
            At::Concluding => Blocker::Next,
            At::Pending(_) => match self.decision(slot) {
                Decision::AwaitCommit(revision) => Blocker::AwaitsCommit(revision),
                Decision::Start(phase) => self.why_not_started(slot, phase),
                Decision::Wait => self.why_it_waits(slot),
                Decision::LeaveTo(first) => self
                    .why_its_cycle_waits(slot)
                    .unwrap_or_else(|| self.why_not(first)),
                Decision::Release(_) => Blocker::Next,
            },
        }
    }

    fn retry_at(&self, slot: Slot) -> Option<crate::Mono> {
        let of_op = self.timers.due(Timer::OpRetry(slot));
        of_op.or_else(|| self.timers.due(Timer::Retry(slot)))
    }

    /// Finds what blocks a ready resource: the barrier, the gate, a name in use, a pool or a limit.
    fn why_not_started(&self, slot: Slot, phase: Phase) -> Blocker {
        // In the order in which a start is checked, so that the reason that is named is the one that has to go first.
        let (deletes, renames) = self.barrier.counting();
        let kind = self.graph[slot].kind();
        let options = self.graph.kinds()[kind].options();
        if self.barrier.blocks(phase) && deletes > 0 {
            return Blocker::DeletesFirst {
                count: deletes,
                running: self.running_in(Phase::Delete),
            };
        }
        if self.barrier.blocks(phase) {
            return Blocker::RenamesFirst {
                count: renames,
                running: self.running_in(Phase::Rename),
            };
        }
        if let Some(first) = self.scheduler.gate().first()
            && !self.scheduler.phase_may_start(
                self.barrier,
                phase,
                options.is_some_and(|options| options.first),
            )
        {
            return Blocker::Gate(self.graph.subject(*first));
        }
        if let Some(other) = self.graph.user_of_its_names(slot) {
            return Blocker::NameInUse(self.graph.subject(other));
        }
        if self.graph.active() >= self.scheduler.concurrency() {
            return Blocker::ControllerFull(self.scheduler.concurrency());
        }
        let limits = self.scheduler.concurrency_limits();
        if let Some(pool) = limits.full_pool(kind) {
            return Blocker::PoolFull(pool.clone());
        }
        limits.full_kind(kind).map_or(Blocker::Next, Blocker::KindFull)
    }

    fn running_in(&self, phase: Phase) -> Vec<Subject> {
        let in_phase = |slot: &Slot| self.graph[*slot].run().is_some_and(|run| run.phase() == phase);
        let mut running: Vec<Subject> = self
            .graph
            .runs()
            .map(|(_, slot)| slot)
            .filter(in_phase)
            .map(|slot| self.graph.subject(slot))
            .collect();
        running.sort();
        running.truncate(NAMES_MAX);
        running
    }

    /// Finds what blocks a pending resource whose parents have all settled.
    fn why_it_waits(&self, slot: Slot) -> Blocker {
        if !self.graph[slot].is_live() {
            return Blocker::DeletesFirst {
                count: self.graph[slot].delete_waits() as usize,
                running: self.running_in(Phase::Delete),
            };
        }
        if let Some(why) = self.why_its_cycle_waits(slot) {
            return why;
        }
        match self.runs_below(slot) {
            Some(below) => Blocker::RunsBelow(self.graph.subject(below)),
            None => Blocker::Next,
        }
    }

    /// Finds what keeps a cycle from settling: a member that runs, or one that is to be renamed.
    fn why_its_cycle_waits(&self, slot: Slot) -> Option<Blocker> {
        self.graph[slot].cycle()?;
        let scc_root = self.graph.scc_root(slot);
        let members = || (0..).map_while(|index| self.graph.member(scc_root, index));
        if let Some(running) = members().find(|member| self.graph[*member].is_running()) {
            return Some(Blocker::RunsBelow(self.graph.subject(running)));
        }
        let renames = |member: &Slot| matches!(self.decision(*member), Decision::Start(Phase::Rename));
        let member = members().find(renames)?;
        Some(self.why_not_started(member, Phase::Rename))
    }

    /// Finds an unreturned invocation of the resource's node or of its descendants.
    fn runs_below(&self, slot: Slot) -> Option<Slot> {
        let (mut seen, mut open) = (Visited::default(), vec![self.graph.scc_root(slot)]);
        while let Some(scc_root) = open.pop() {
            if !seen.insert(scc_root) || !self.graph.is_busy(scc_root) {
                continue;
            }
            for member in (0..).map_while(|index| self.graph.member(scc_root, index)) {
                if self.graph[member].is_running() {
                    return Some(member);
                }
                open.extend(
                    self.graph
                        .children(member)
                        .map(|child| self.graph.scc_root(child)),
                );
            }
        }
        None
    }

    /// Lists the root causes of a failed resource: its failed ancestors without a failed parent of their own.
    fn failed_roots(&self, slot: Slot) -> Vec<Subject> {
        let (mut seen, mut roots) = (Visited::from_iter([slot]), BTreeSet::new());
        let mut open = vec![slot];
        while let Some(at) = open.pop() {
            let failed: Vec<Slot> = self
                .graph
                .parents(at)
                .filter(|parent| self.graph[*parent].is_failed())
                .collect();
            if failed.is_empty() && at != slot {
                roots.insert(self.graph.subject(at));
            }
            open.extend(failed.into_iter().filter(|parent| seen.insert(*parent)));
        }
        roots.into_iter().take(NAMES_MAX).collect()
    }
}

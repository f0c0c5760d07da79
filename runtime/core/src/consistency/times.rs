//! Checks of timers and of the resources that wait for them. Only the reason of a timer can be lost, because each time
//! is stored once.

use super::Findings;
use super::Parts;
use crate::graph::resource::{Cancelled, Op};
use crate::timers::Timer;
use crate::types::index::Slot;

impl Parts<'_> {
    /// Checks that everything that needs a timer has one, and that no timer is left over.
    pub(super) fn check_timers_agree(&self, findings: &mut Findings) {
        for (slot, resource) in self.graph.iter() {
            let retries = self.timers.due(Timer::OpRetry(slot)).is_some();
            findings.ensure_of(self.graph, slot, retries == (resource.op() == Op::Failed), || {
                format!("has {:?}, tried again: {retries}", resource.op())
            });
            if let Some(run) = resource.run() {
                let bounded = self.timers.due(Timer::Abandon(run.invocation())).is_some();
                let waited_for = !matches!(run.cancelled(), Cancelled::No | Cancelled::ByShutdown);
                findings.ensure_of(self.graph, slot, bounded || !waited_for, || {
                    format!("{:?} is cancelled and never given up on", run.invocation())
                });
                let may_be = self
                    .graph
                    .options(slot)
                    .is_some_and(|options| options.deadline.is_some());
                let limited = self.timers.due(Timer::Deadline(run.invocation())).is_some();
                let over = run.cancelled() != Cancelled::No;
                findings.ensure_of(self.graph, slot, limited == may_be || over, || {
                    format!("{:?} has lost its deadline", run.invocation())
                });
            }
        }
        for (timer, _) in self.timers.iter() {
            findings.ensure(self.is_waited_for(timer), || {
                format!("{timer:?} is set for nothing")
            });
        }
        for (slot, at) in self.timers.requeues() {
            findings.ensure(self.is_live_slot(slot), || {
                format!("{slot:?} is requeued at {at:?} and not live")
            });
        }
    }

    fn is_live_slot(&self, slot: Slot) -> bool {
        self.graph.get(slot).is_some_and(|it| it.is_live())
    }

    fn is_waited_for(&self, timer: Timer) -> bool {
        match timer {
            Timer::OpRetry(slot) => self.graph.get(slot).is_some_and(|it| it.op() == Op::Failed),
            Timer::Retry(slot) => {
                let failed = self.graph.get(slot).map(|it| it.failure().is_some());
                self.is_live_slot(slot) && failed == Some(true)
            }
            Timer::Forgive(slot) => self.is_live_slot(slot) && self.graph[slot].backed_off() > 0,
            Timer::Nudge(slot) | Timer::Resync(slot) | Timer::Requeue(slot) => self.is_live_slot(slot),
            Timer::Deadline(invocation) | Timer::Abandon(invocation) => {
                self.graph.run(invocation).is_some_and(|slot| {
                    self.graph[slot]
                        .run()
                        .is_some_and(|run| run.invocation() == invocation)
                })
            }
            Timer::DrainLimit | Timer::Promote | Timer::CommitRetry | Timer::Grace | Timer::LastCommit => {
                true
            }
        }
    }
}

//! Deletes first, then renames, then the rest (the contract's C6): the barrier that holds back regular work, and its
//! time limit.
//!
//! A *drain* begins with the first delete or rename that counts. It ends when none counts any more, or at
//! [`Limits::drain_limit`](crate::Limits::drain_limit): what is unfinished then counts no longer, and what begins later
//! holds nobody back before the regular work that was pending at that moment has started or settled.

use std::time::Duration;

use super::delete_order::DeleteOrder;
use crate::graph::Graph;
use crate::graph::resource::{Op, Resource};
use crate::timers::backoff::backoff;
use crate::timers::{Timer, Timers};
use crate::types::index::Slot;
use crate::{Mono, Phase};

/// Wait before the first retry of a failed delete or rename; doubled each time, up to [`RETRY_CAP`].
const RETRY_BASE: Duration = Duration::from_secs(1);
/// Longest wait before the retry of a failed delete or rename.
const RETRY_CAP: Duration = Duration::from_secs(300);

/// State of the drain, during which deletes and renames hold back regular work.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
enum Drain {
    /// No delete or rename counts.
    #[default]
    None,
    /// A delete or rename counts, and regular work waits.
    Running,
    /// The drain exceeded its limit. The graph's cohort, which was pending then, goes before the next drain.
    Released,
}

/// The unfinished deletes and renames that count.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Barrier {
    deletes: usize,
    renames: usize,
    drain: Drain,
    limit: Duration,
    delete_order: DeleteOrder,
}

impl Barrier {
    /// Creates a barrier whose drains last no longer than `limit`.
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            deletes: 0,
            renames: 0,
            drain: Drain::None,
            limit,
            delete_order: DeleteOrder::default(),
        }
    }

    /// Returns true if a delete or rename that counts keeps this phase from starting.
    pub(crate) fn blocks(&self, phase: Phase) -> bool {
        let drains = matches!(self.drain, Drain::Running);
        match phase {
            // Deletes wait for each other alone, in the order that `DeleteOrder` keeps.
            Phase::Delete => false,
            Phase::Rename => drains && self.deletes > 0,
            Phase::Reconcile => drains && self.deletes + self.renames > 0,
        }
    }

    /// Returns how many deletes and how many renames count.
    pub(crate) fn counting(&self) -> (usize, usize) {
        (self.deletes, self.renames)
    }

    /// Returns the order in which deletes wait for each other.
    pub(crate) fn delete_order(&self) -> &DeleteOrder {
        &self.delete_order
    }

    /// Adds new deletes to the order of deletes; see [`DeleteOrder::add`].
    pub(crate) fn order_deletes(&mut self, graph: &mut Graph, deleted: &[(Slot, Vec<Slot>)]) {
        self.delete_order.add(graph, deleted);
    }

    /// Lets the deletes go on that waited for the delete of `slot`.
    pub(crate) fn release_delete_waits(&mut self, graph: &mut Graph, slot: Slot) {
        self.delete_order.release(graph, slot);
    }

    /// Returns true if the delete or rename of a resource holds back regular work now.
    pub(crate) fn op_holds(&self, resource: &Resource) -> bool {
        resource.op_counts() && !matches!(self.drain, Drain::Released)
    }

    /// Begins a requested delete or rename, and ends an earlier one of the same resource.
    pub(crate) fn begin_op(&mut self, graph: &mut Graph, timers: &mut Timers, now: Mono, slot: Slot) {
        // Nobody can carry it out, so it must not hold others back.
        self.end_op(graph, timers, slot);
        if !graph.can_run(slot) {
            return;
        }
        graph[slot].set_op(Op::Due { counts: true });
        *self.counter(&graph[slot]) += 1;
        // A running drain keeps its limit, whatever joins it: otherwise a steady stream of deletes would stop all
        // regular work.
        if let Drain::None = self.drain {
            self.begin_drain(timers, now);
        }
    }

    fn counter(&mut self, resource: &Resource) -> &mut usize {
        if resource.row().intents.is_deleted() {
            &mut self.deletes
        } else {
            &mut self.renames
        }
    }

    fn begin_drain(&mut self, timers: &mut Timers, now: Mono) {
        self.drain = Drain::Running;
        timers.set(Timer::DrainLimit, now.after(self.limit));
    }

    /// Stops counting an unfinished delete or rename, so that others no longer wait for it.
    pub(crate) fn stop_counting(&mut self, graph: &mut Graph, slot: Slot) {
        if !graph[slot].op_counts() {
            return;
        }
        *self.counter(&graph[slot]) -= 1;
        // The barrier held its ancestors back until now; from here on only its own edges can.
        graph[slot].set_op(Op::Due { counts: false });
        make_busy(graph, slot);
        self.release_delete_waits(graph, slot);
    }

    /// Ends a delete or rename that is done or no longer wanted.
    pub(crate) fn end_op(&mut self, graph: &mut Graph, timers: &mut Timers, slot: Slot) {
        match graph[slot].op() {
            Op::None => return,
            Op::Due { counts: true } => self.stop_counting(graph, slot),
            Op::Due { counts: false } => {}
            Op::Failed => {
                timers.clear(Timer::OpRetry(slot));
            }
        }
        graph[slot].set_op(Op::None);
    }

    /// Records the failure of a delete or rename: a retry is scheduled, and others no longer wait for it.
    pub(crate) fn fail_op(&mut self, graph: &mut Graph, timers: &mut Timers, now: Mono, slot: Slot) {
        self.end_op(graph, timers, slot);
        graph[slot].set_op(Op::Failed);
        let wait = op_backoff(graph[slot].row().attempts);
        timers.set(Timer::OpRetry(slot), now.after(wait));
        // It may fail for ever, and the deletes of what it referred to must not wait for that.
        self.release_delete_waits(graph, slot);
    }

    /// Releases regular work after the drain's limit: deletes and renames no longer count, and pending resources go
    /// before the next drain.
    pub(crate) fn release_drain(&mut self, graph: &mut Graph) {
        // What is pending now has waited for a whole drain, and gets its turn before another one may begin.
        graph.begin_cohort(|it| it.is_live() && !matches!(it.op(), Op::Due { .. }));
        let counting = graph.iter().filter(|(_, it)| it.op_counts());
        let counting: Vec<Slot> = counting.map(|(slot, _)| slot).collect();
        self.drain = Drain::Released;
        for slot in counting {
            self.stop_counting(graph, slot);
        }
    }

    /// Ends a drain once nothing counts, and a release once its cohort has started or settled.
    pub(crate) fn end_drain_if_over(&mut self, graph: &Graph, timers: &mut Timers, now: Mono) {
        let counts = self.counting() != (0, 0);
        let over = match self.drain {
            Drain::None => false,
            Drain::Running => !counts,
            Drain::Released => graph.cohort_is_over(),
        };
        if !over {
            return;
        }
        timers.clear(Timer::DrainLimit);
        self.drain = Drain::None;
        // Deletes that came during the release have held nobody back so far.
        if counts {
            self.begin_drain(timers, now);
        }
    }
}

/// Returns the wait after the n-th failure of a delete or rename in a row: 1 s, doubled up to 5 min.
fn op_backoff(attempts: u32) -> Duration {
    backoff(RETRY_BASE, RETRY_CAP, attempts)
}

/// Makes a failed delete or rename due again, without counting it.
pub(crate) fn rearm(graph: &mut Graph, timers: &mut Timers, slot: Slot) {
    // It had its turn in a drain. If each retry began another, one broken delete would keep stopping regular work.
    if graph[slot].op() == Op::Failed {
        timers.clear(Timer::OpRetry(slot));
        graph[slot].set_op(Op::Due { counts: false });
    }
}

/// Makes a running rename that no longer counts in the barrier hold back its ancestors, as other invocations do.
fn make_busy(graph: &mut Graph, slot: Slot) {
    let resource = &mut graph[slot];
    let live = resource.is_live();
    let Some(run) = resource.run_mut() else { return };
    if live && run.phase() == Phase::Rename && !run.is_busy() {
        run.set_busy(true);
        graph.count_running(slot);
    }
}

//! Deletes first, then renames, then the rest (the contract's C6): the barrier that holds regular work back, and the one
//! limit that bounds it.
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

/// The first wait after a failed delete or rename.
const RETRY_BASE: Duration = Duration::from_secs(1);
/// The longest such wait.
const RETRY_CAP: Duration = Duration::from_secs(300);

/// Tells whether deletes and renames hold regular work back.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
enum Drain {
    /// Nothing counts.
    #[default]
    None,
    /// Something counts, and regular work waits.
    Running,
    /// The drain was over its limit: the graph's cohort was pending then, and starts before the next drain begins.
    Released,
}

/// Unfinished deletes and renames that count.
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
    /// A barrier whose drains last no longer than `limit`.
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            deletes: 0,
            renames: 0,
            drain: Drain::None,
            limit,
            delete_order: DeleteOrder::default(),
        }
    }

    /// Returns true if something that counts keeps this phase from starting.
    pub(crate) fn blocks(&self, phase: Phase) -> bool {
        let drains = matches!(self.drain, Drain::Running);
        match phase {
            // Deletes wait for each other alone, in the order that `DeleteOrder` keeps.
            Phase::Delete => false,
            Phase::Rename => drains && self.deletes > 0,
            Phase::Reconcile => drains && self.deletes + self.renames > 0,
        }
    }

    /// Returns how many deletes and renames count.
    pub(crate) fn counting(&self) -> (usize, usize) {
        (self.deletes, self.renames)
    }

    /// Returns the order of deletes.
    pub(crate) fn delete_order(&self) -> &DeleteOrder {
        &self.delete_order
    }

    /// Puts new deletes into their order; see [`DeleteOrder::add`].
    pub(crate) fn order_deletes(&mut self, graph: &mut Graph, deleted: &[(Slot, Vec<Slot>)]) {
        self.delete_order.add(graph, deleted);
    }

    /// The delete of `slot` is done, failed, or has been waited for long enough.
    pub(crate) fn release_delete_waits(&mut self, graph: &mut Graph, slot: Slot) {
        self.delete_order.release(graph, slot);
    }

    /// Returns true if the delete or rename of a resource holds regular work back at present.
    pub(crate) fn op_holds(&self, resource: &Resource) -> bool {
        resource.op_counts() && !matches!(self.drain, Drain::Released)
    }

    /// A delete or rename was requested; one that was under way begins anew.
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

    /// A delete or rename no longer holds others back; it is still to be done.
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

    /// The delete or rename is done, or no longer wanted.
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

    /// The delete or rename failed: it is tried again later, and holds nobody back.
    pub(crate) fn fail_op(&mut self, graph: &mut Graph, timers: &mut Timers, now: Mono, slot: Slot) {
        self.end_op(graph, timers, slot);
        graph[slot].set_op(Op::Failed);
        let wait = op_backoff(graph[slot].row().attempts);
        timers.set(Timer::OpRetry(slot), now.after(wait));
        // It may fail for ever, and the deletes of what it referred to must not wait for that.
        self.release_delete_waits(graph, slot);
    }

    /// The drain is over its limit: what counts goes on without holding anybody back, and what is pending starts before
    /// the next drain.
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

    /// Ends the drain once nothing counts any more, but not when one edit takes the place of another; and a release once
    /// all that was pending then has started or settled.
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

/// Returns how long after its n-th failure in a row a delete or rename is tried again: 1 s doubling to 5 min.
fn op_backoff(attempts: u32) -> Duration {
    backoff(RETRY_BASE, RETRY_CAP, attempts)
}

/// A failed delete or rename is due again, without counting.
pub(crate) fn rearm(graph: &mut Graph, timers: &mut Timers, slot: Slot) {
    // It had its turn in a drain. If each retry began another, one broken delete would keep stopping regular work.
    if graph[slot].op() == Op::Failed {
        timers.clear(Timer::OpRetry(slot));
        graph[slot].set_op(Op::Due { counts: false });
    }
}

/// A rename that runs and no longer holds regular work back by the barrier holds its ancestors back as any other
/// invocation does.
fn make_busy(graph: &mut Graph, slot: Slot) {
    let resource = &mut graph[slot];
    let live = resource.is_live();
    let Some(run) = resource.run_mut() else { return };
    if live && run.phase() == Phase::Rename && !run.is_busy() {
        run.set_busy(true);
        graph.count_running(slot);
    }
}

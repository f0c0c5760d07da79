//! Accessors of resources and of their stages for the other folders; the fields are private to the graph.

use std::sync::Arc;
use std::time::Duration;

use super::cycles::CycleChanges;
use super::lifecycle::At;
use super::resource::{BoundRef, Failure, Life, Op, Resource};
use super::stages::{Cancelled, Pending, Running, Under};
use crate::types::index::{CycleId, KindId, NameId, Slot};
use crate::types::reason::Cancels;
use crate::{
    Error, InvocationId, Mono, NoOpRun, ObservedInputs, Phase, Priority, Reason, Revision, Row, Timestamp,
};

impl Resource {
    pub(crate) fn row(&self) -> &Arc<Row> {
        &self.row
    }

    /// The row to be changed; whoever has the present one keeps it.
    pub(crate) fn row_mut(&mut self) -> &mut Row {
        Arc::make_mut(&mut self.row)
    }

    pub(crate) fn kind(&self) -> KindId {
        self.kind
    }

    pub(crate) fn name(&self) -> NameId {
        self.name
    }

    pub(crate) fn set_name(&mut self, name: NameId) {
        self.name = name;
    }

    pub(crate) fn claims(&self) -> &[NameId] {
        &self.claims
    }

    pub(crate) fn life(&self) -> Life {
        self.life
    }

    pub(crate) fn set_life(&mut self, life: Life) {
        self.life = life;
    }

    pub(crate) fn links(&self) -> &[BoundRef] {
        &self.links
    }

    /// The stage as the scheduler needs it.
    pub(crate) fn at(&self) -> At<'_> {
        self.lifecycle.at()
    }

    pub(crate) fn abandoned(&self) -> Option<&Running> {
        self.lifecycle.abandoned()
    }

    pub(crate) fn is_concluding(&self) -> bool {
        self.lifecycle.is_concluding()
    }

    pub(crate) fn op(&self) -> Op {
        self.op
    }

    pub(crate) fn set_op(&mut self, op: Op) {
        self.op = op;
    }

    /// Returns true if a request of its own is unanswered.
    #[cfg(test)]
    pub(crate) fn is_owed(&self) -> bool {
        self.requested
    }

    /// Takes up a request of its own, if there is one to answer.
    pub(crate) fn owe(&mut self, request: bool) {
        self.requested |= request;
    }

    /// Hands its own request over; returns whether there was one.
    pub(crate) fn take_owed(&mut self) -> bool {
        std::mem::take(&mut self.requested)
    }

    /// The revision that must be committed before it is considered.
    pub(crate) fn hold(&self) -> Revision {
        self.hold
    }

    pub(crate) fn hold_until(&mut self, revision: Revision) {
        self.hold = revision;
    }

    pub(crate) fn cycle(&self) -> Option<CycleId> {
        self.cycle
    }

    pub(crate) fn unsettled_parents(&self) -> u32 {
        self.unsettled_parents
    }

    pub(crate) fn busy_children(&self) -> u32 {
        self.busy_children
    }

    /// The number of runs: its own, or those of its cycle's members.
    pub(crate) fn running(&self) -> u32 {
        self.running
    }

    pub(crate) fn is_summing(&self) -> bool {
        self.summing
    }

    /// The longest way from it to a leaf, in ms.
    pub(crate) fn path_ms(&self) -> u32 {
        self.path_ms
    }

    /// The time of the last request that was not a timed one.
    pub(crate) fn disturbed(&self) -> Mono {
        self.disturbed
    }

    pub(crate) fn disturb(&mut self, now: Mono) {
        self.disturbed = now;
    }

    pub(crate) fn no_op(&self) -> Option<&Arc<NoOpRun>> {
        self.no_op.as_ref()
    }

    pub(crate) fn set_no_op(&mut self, run: Arc<NoOpRun>) {
        self.no_op = Some(run);
    }

    pub(crate) fn take_no_op(&mut self) -> Option<Arc<NoOpRun>> {
        self.no_op.take()
    }

    pub(crate) fn is_gate(&self) -> bool {
        self.gates
    }

    /// Sets whether it keeps other kinds from starting; returns whether it did.
    pub(crate) fn set_gate(&mut self, gates: bool) -> bool {
        std::mem::replace(&mut self.gates, gates)
    }
}

/// The lists that it stands in, and what the store and readers know of it.
impl Resource {
    pub(crate) fn is_stored(&self) -> bool {
        self.stored
    }

    pub(crate) fn set_stored(&mut self) {
        self.stored = true;
    }

    pub(crate) fn is_published(&self) -> bool {
        self.published
    }

    /// Shows it to readers; returns whether it was new to them.
    pub(crate) fn publish(&mut self) -> bool {
        !std::mem::replace(&mut self.published, true)
    }

    pub(crate) fn is_queued(&self) -> bool {
        self.listed.queued
    }

    /// The phase whose queue holds it.
    pub(crate) fn ready(&self) -> Option<Phase> {
        self.listed.ready
    }

    /// Sets the phase whose queue holds it; returns the one before.
    pub(crate) fn set_ready(&mut self, phase: Option<Phase>) -> Option<Phase> {
        std::mem::replace(&mut self.listed.ready, phase)
    }

    pub(crate) fn is_row_dirty(&self) -> bool {
        self.listed.row_dirty
    }

    /// Marks the row as changed; returns whether it was unchanged.
    pub(crate) fn mark_row_dirty(&mut self) -> bool {
        !std::mem::replace(&mut self.listed.row_dirty, true)
    }

    pub(crate) fn take_row_dirty(&mut self) -> bool {
        std::mem::take(&mut self.listed.row_dirty)
    }

    pub(crate) fn take_status_dirty(&mut self) -> bool {
        std::mem::take(&mut self.listed.status_dirty)
    }
}

/// Facts that only few resources have at a time. Clearing one makes no room for it.
impl Resource {
    /// The transient failure that stands.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.extra().failure
    }

    pub(crate) fn set_failure(&mut self, failure: Option<Failure>) {
        if self.extra.is_some() || failure.is_some() {
            self.extra_mut().failure = failure;
        }
    }

    /// The failures that the length of the next wait counts.
    pub(crate) fn backed_off(&self) -> u32 {
        self.extra().backed_off.max(self.row.attempts)
    }

    pub(crate) fn set_backed_off(&mut self, failures: u32) {
        if self.extra.is_some() || failures > 0 {
            self.extra_mut().backed_off = failures;
        }
    }

    /// Returns true if something requested it while it was paused.
    pub(crate) fn is_missed(&self) -> bool {
        self.extra().missed
    }

    /// Sets whether something requested it while it was paused; returns what was set before.
    pub(crate) fn set_missed(&mut self, missed: bool) -> bool {
        let before = self.is_missed();
        if before != missed {
            self.extra_mut().missed = missed;
        }
        before
    }

    /// Returns true if it runs once although it is paused.
    pub(crate) fn is_forced(&self) -> bool {
        self.extra().forced
    }

    pub(crate) fn set_forced(&mut self, forced: bool) {
        if self.is_forced() != forced {
            self.extra_mut().forced = forced;
        }
    }

    /// The number of deletes that its own waits for.
    pub(crate) fn delete_waits(&self) -> u32 {
        self.extra().delete_waits
    }

    pub(crate) fn wait_for_delete(&mut self) {
        self.extra_mut().delete_waits += 1;
    }

    pub(crate) fn end_wait_for_delete(&mut self) {
        self.extra_mut().delete_waits -= 1;
    }

    pub(crate) fn set_unreadable(&mut self, error: Error) {
        self.extra_mut().unreadable = Some(Arc::new(error));
    }
}

impl BoundRef {
    /// The name that the ref is bound to.
    pub(crate) fn name(&self) -> NameId {
        self.name
    }

    pub(crate) fn position(&self) -> u32 {
        self.position
    }

    pub(crate) fn is_edge(&self) -> bool {
        self.edge
    }

    pub(crate) fn is_counted(&self) -> bool {
        self.counted
    }
}

impl Failure {
    /// A failure at a moment, and the wait that the reconciler requested.
    pub(crate) fn new(at: Mono, retry_after: Option<Duration>) -> Self {
        Self { at, retry_after }
    }

    pub(crate) fn at(&self) -> Mono {
        self.at
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl CycleChanges {
    /// Those on a cycle now that is not the one from before.
    pub(crate) fn regrouped(&self) -> &[Slot] {
        &self.regrouped
    }

    /// Those of them that were on none before.
    pub(crate) fn entered(&self) -> &[Slot] {
        &self.entered
    }

    /// Those no longer on one.
    pub(crate) fn left(&self) -> &[Slot] {
        &self.left
    }
}

impl Pending {
    /// Returns true if a caller has cancelled it.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    pub(crate) fn cancel(&mut self) {
        self.cancelled = true;
    }

    pub(crate) fn priority(&self) -> Priority {
        self.priority
    }

    /// The number of promotions for having waited.
    pub(crate) fn promoted(&self) -> u32 {
        self.promoted
    }

    pub(crate) fn promote(&mut self, times: u32) {
        // Steps are counted from when it became ready, so the greatest number is the newest.
        self.promoted = self.promoted.max(times);
    }

    /// Since when it has waited for a place, from now on at the latest.
    pub(crate) fn begin_ready(&mut self, now: Mono) -> Mono {
        // Kept when its rank changes, or what is requested again and again would never have waited for long.
        *self.ready_since.get_or_insert(now)
    }

    /// Since when it has waited for a run that completes.
    pub(crate) fn since(&self) -> Mono {
        self.since
    }

    pub(crate) fn set_since(&mut self, since: Mono) {
        self.since = since;
    }

    /// The requests whose cancels below it have been carried out.
    pub(crate) fn swept(&self) -> Cancels {
        self.swept
    }
}

impl Running {
    pub(crate) fn invocation(&self) -> InvocationId {
        self.invocation
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) fn reason(&self) -> &Arc<Reason> {
        &self.reason
    }

    pub(crate) fn started_at(&self) -> Timestamp {
        self.started_at
    }

    pub(crate) fn begun(&self) -> Mono {
        self.begun
    }

    /// Since when its resource had waited for it.
    pub(crate) fn waited_since(&self) -> Mono {
        self.waited_since
    }

    pub(crate) fn cancelled(&self) -> Cancelled {
        self.cancelled
    }

    /// The request that came meanwhile.
    pub(crate) fn rerun(&self) -> Option<&Arc<Reason>> {
        self.rerun.as_ref()
    }

    pub(crate) fn set_rerun(&mut self, reason: Option<Arc<Reason>>) {
        self.rerun = reason;
    }

    /// The reason for running once more: that of a request meanwhile, or else its own.
    pub(crate) fn reason_again(&self) -> Arc<Reason> {
        self.rerun.as_ref().unwrap_or(&self.reason).clone()
    }

    /// The names that the resource had at the start.
    pub(crate) fn under(&self) -> &Under {
        &self.under
    }

    pub(crate) fn seen(&self) -> Option<&ObservedInputs> {
        self.seen.as_ref()
    }

    pub(crate) fn seen_mut(&mut self) -> Option<&mut ObservedInputs> {
        self.seen.as_mut()
    }

    /// Returns true if it answers a request of the resource's own.
    pub(crate) fn is_answer(&self) -> bool {
        self.answers
    }

    /// Returns true if it holds ancestors back (C3).
    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }

    pub(crate) fn set_busy(&mut self, busy: bool) {
        self.busy = busy;
    }

    pub(crate) fn set_progress(&mut self, text: Arc<str>) {
        self.progress = Some(text);
    }
}

/// Faults that tests plant, to see them found.
#[cfg(test)]
pub(crate) mod planting {
    use super::*;
    use crate::graph::lifecycle::Lifecycle;

    impl Resource {
        /// Puts a stage in place, whatever counts stages; returns the one before.
        pub(crate) fn plant_stage(&mut self, stage: Lifecycle) -> Lifecycle {
            std::mem::replace(&mut self.lifecycle, stage)
        }

        /// Adds to the counts of unsettled parents, busy children and runs.
        pub(crate) fn plant_counts(&mut self, unsettled_parents: u32, busy_children: u32, running: u32) {
            self.unsettled_parents += unsettled_parents;
            self.busy_children += busy_children;
            self.running += running;
        }

        pub(crate) fn plant_no_unsettled_parents(&mut self) {
            self.unsettled_parents = 0;
        }

        pub(crate) fn plant_summing(&mut self) {
            self.summing = true;
        }

        pub(crate) fn plant_cycle(&mut self, cycle: Option<CycleId>) {
            self.cycle = cycle;
        }

        pub(crate) fn plant_queued(&mut self, queued: bool) {
            self.listed.queued = queued;
        }

        pub(crate) fn plant_uncounted(&mut self, index: usize) {
            self.links[index].counted = false;
        }

        pub(crate) fn plant_position(&mut self, index: usize, position: u32) {
            self.links[index].position = position;
        }
    }

    impl Pending {
        pub(crate) fn plant_swept(&mut self, swept: Cancels) {
            self.swept = swept;
        }
    }

    impl Running {
        pub(crate) fn plant_cancelled(&mut self, cancelled: Cancelled) {
            self.cancelled = cancelled;
        }

        pub(crate) fn plant_under(&mut self, under: Under) {
            self.under = under;
        }

        pub(crate) fn plant_seen(&mut self, seen: Option<ObservedInputs>) {
            self.seen = seen;
        }
    }
}

//! Accessors of resources and their stages for other modules; the fields are private to the graph.

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

    /// Returns the row for a change. Readers keep their version.
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

    /// Returns the stage in the form that the scheduler needs.
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

    /// Returns true if the resource has a direct request that no completed invocation has answered.
    #[cfg(test)]
    pub(crate) fn is_owed(&self) -> bool {
        self.requested
    }

    /// Records a direct request, if `request` is true.
    pub(crate) fn owe(&mut self, request: bool) {
        self.requested |= request;
    }

    /// Clears the direct request; returns whether there was one.
    pub(crate) fn take_owed(&mut self) -> bool {
        std::mem::take(&mut self.requested)
    }

    /// Returns the revision that must be committed before the resource is evaluated.
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

    /// Returns the number of running invocations of the resource, or of all members of its cycle.
    pub(crate) fn running(&self) -> u32 {
        self.running
    }

    pub(crate) fn is_summing(&self) -> bool {
        self.summing
    }

    /// Returns the duration of the longest path from this resource to a leaf, in ms.
    pub(crate) fn path_ms(&self) -> u32 {
        self.path_ms
    }

    /// Returns the time of the last request that was not timed.
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

    /// Sets whether the resource holds the gate closed; returns the value before.
    pub(crate) fn set_gate(&mut self, gates: bool) -> bool {
        std::mem::replace(&mut self.gates, gates)
    }
}

/// List memberships, and what the store and readers know of the resource.
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

    /// Marks the resource as published; returns true if it was new to readers.
    pub(crate) fn publish(&mut self) -> bool {
        !std::mem::replace(&mut self.published, true)
    }

    pub(crate) fn is_queued(&self) -> bool {
        self.listed.queued
    }

    /// Returns the phase whose ready queue holds the resource.
    pub(crate) fn ready(&self) -> Option<Phase> {
        self.listed.ready
    }

    /// Sets the phase whose ready queue holds the resource; returns the phase before.
    pub(crate) fn set_ready(&mut self, phase: Option<Phase>) -> Option<Phase> {
        std::mem::replace(&mut self.listed.ready, phase)
    }

    pub(crate) fn is_row_dirty(&self) -> bool {
        self.listed.row_dirty
    }

    /// Marks the row as changed; returns true if it was unchanged.
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

/// Rarely used fields. Clearing a field allocates nothing.
impl Resource {
    /// Returns the present transient failure, if its retry is pending.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.extra().failure
    }

    pub(crate) fn set_failure(&mut self, failure: Option<Failure>) {
        if self.extra.is_some() || failure.is_some() {
            self.extra_mut().failure = failure;
        }
    }

    /// Returns the number of failures that determines the next backoff.
    pub(crate) fn backed_off(&self) -> u32 {
        self.extra().backed_off.max(self.row.attempts)
    }

    pub(crate) fn set_backed_off(&mut self, failures: u32) {
        if self.extra.is_some() || failures > 0 {
            self.extra_mut().backed_off = failures;
        }
    }

    /// Returns true if the resource was requested while it was paused.
    pub(crate) fn is_missed(&self) -> bool {
        self.extra().missed.is_some()
    }

    /// Sets the reason of a request that came while the resource was paused; returns the one before.
    pub(crate) fn set_missed(&mut self, missed: Option<Arc<Reason>>) -> Option<Arc<Reason>> {
        match missed.is_some() || self.is_missed() {
            true => std::mem::replace(&mut self.extra_mut().missed, missed),
            false => None,
        }
    }

    /// Returns true if the resource is to run once although it is paused.
    pub(crate) fn is_forced(&self) -> bool {
        self.extra().forced
    }

    pub(crate) fn set_forced(&mut self, forced: bool) {
        if self.is_forced() != forced {
            self.extra_mut().forced = forced;
        }
    }

    /// Returns the number of deletes that this resource's delete waits for.
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
    /// Returns the name that the ref is bound to.
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
    /// Creates a failure at a time, with the wait that the reconciler requested.
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
    /// Returns the members of new or changed cycles.
    pub(crate) fn regrouped(&self) -> &[Slot] {
        &self.regrouped
    }

    /// Returns the resources that are now on a cycle and were on none before.
    pub(crate) fn entered(&self) -> &[Slot] {
        &self.entered
    }

    /// Returns the resources that are no longer on a cycle.
    pub(crate) fn left(&self) -> &[Slot] {
        &self.left
    }
}

impl Pending {
    /// Returns true if a caller has cancelled the pending requests.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    pub(crate) fn cancel(&mut self) {
        self.cancelled = true;
    }

    pub(crate) fn priority(&self) -> Priority {
        self.priority
    }

    /// Returns how often the resource was promoted for its waiting time.
    pub(crate) fn promoted(&self) -> u32 {
        self.promoted
    }

    pub(crate) fn promote(&mut self, times: u32) {
        // Steps are counted from when it became ready, so the greatest number is the newest.
        self.promoted = self.promoted.max(times);
    }

    /// Returns the time since which the resource has waited for a place, setting it to now if unset.
    pub(crate) fn begin_ready(&mut self, now: Mono) -> Mono {
        // Kept when its rank changes, or what is requested again and again would never have waited for long.
        *self.ready_since.get_or_insert(now)
    }

    /// Returns the time since which the resource has waited for a completed run.
    pub(crate) fn since(&self) -> Mono {
        self.since
    }

    pub(crate) fn set_since(&mut self, since: Mono) {
        self.since = since;
    }

    /// Returns which cancels below the resource have been carried out for its request.
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

    /// Returns the time since which the resource had waited for this run.
    pub(crate) fn waited_since(&self) -> Mono {
        self.waited_since
    }

    pub(crate) fn cancelled(&self) -> Cancelled {
        self.cancelled
    }

    /// Returns the reason to run again, if a request came during the run.
    pub(crate) fn rerun(&self) -> Option<&Arc<Reason>> {
        self.rerun.as_ref()
    }

    pub(crate) fn set_rerun(&mut self, reason: Option<Arc<Reason>>) {
        self.rerun = reason;
    }

    /// Returns the reason to run again: a request during the run, or else the reason of the run.
    pub(crate) fn reason_again(&self) -> Arc<Reason> {
        self.rerun.as_ref().unwrap_or(&self.reason).clone()
    }

    /// Returns the names that the resource had at the start.
    pub(crate) fn under(&self) -> &Under {
        &self.under
    }

    pub(crate) fn seen(&self) -> Option<&ObservedInputs> {
        self.seen.as_ref()
    }

    pub(crate) fn seen_mut(&mut self) -> Option<&mut ObservedInputs> {
        self.seen.as_mut()
    }

    /// Returns true if the run answers a direct request for its resource.
    pub(crate) fn is_answer(&self) -> bool {
        self.answers
    }

    /// Returns true if the invocation holds ancestors back (C3).
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

/// Deliberate faults for tests of the consistency check.
#[cfg(test)]
pub(crate) mod planting {
    use super::*;
    use crate::graph::lifecycle::Lifecycle;

    impl Resource {
        /// Replaces the stage without updating the counts; returns the stage before.
        pub(crate) fn plant_stage(&mut self, stage: Lifecycle) -> Lifecycle {
            std::mem::replace(&mut self.lifecycle, stage)
        }

        /// Adds to the counts of unsettled parents, busy children and running invocations.
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

//! Views of resources, for the scheduler and for reconcilers.

use std::sync::Arc;
use std::time::Duration;

use super::Graph;
use super::lifecycle::At;
use super::resource::BoundRef;
use crate::timers::Requeue;
use crate::types::index::{NameId, Slot};
use crate::{
    ObservedInputs, ObservedRef, Parents, Reason, RefView, Required, RetryPolicy, RunResult, Settled,
    Timestamp, Trigger,
};

impl Graph {
    /// Returns true if a reconciler is registered and the stored bytes could be read.
    pub(crate) fn can_run(&self, slot: Slot) -> bool {
        self.slots[slot].unreadable().is_none() && self.options(slot).is_some()
    }

    /// Returns true if something outside may be there because of the resource: there is a reconciler, or there was one that ran.
    pub(crate) fn may_have_made(&self, slot: Slot) -> bool {
        let row = &self.slots[slot].row;
        self.can_run(slot) || row.state.is_some() || row.runs_total > 0
    }

    pub(crate) fn unrunnable(&self, slot: Slot) -> Option<Settled> {
        if self.can_run(slot) {
            return None;
        }
        if let Some(error) = self.slots[slot].unreadable() {
            return Some(Settled::Unreadable(error.clone()));
        }
        Some(Settled::Unsupported)
    }

    /// Returns the index of the first ref whose requirement does not hold.
    pub(crate) fn unmet_ref(&self, slot: Slot) -> Option<usize> {
        let unmet = |name: NameId, required: Required| match (required, self.names[name].live) {
            // A missing or failed target is the reconciler's to judge: `completed` only asks that it is not about to run.
            (Required::Completed, _) | (Required::Exists, Some(_)) => false,
            (_, None) => true,
            (Required::Ready, Some(target)) => !self.is_ready(target),
        };
        self.slots[slot]
            .links
            .iter()
            .position(|link| unmet(link.name, link.required))
    }

    /// Returns true if the last completed invocation succeeded, left the resource ready, and saw its present spec
    /// version.
    fn is_ready(&self, slot: Slot) -> bool {
        let resource = &self.slots[slot];
        if resource.is_failed() || resource.row.unready.is_some() {
            return false;
        }
        resource.row.last_run.as_ref().is_some_and(|last| {
            let seen = last.seen.as_ref();
            // A success with an earlier spec says nothing of the present one.
            !last.failed && seen.is_some_and(|seen| seen.spec_version == resource.row.spec_version)
        })
    }

    /// Returns true if `parents: changed` saves a run: only finished parents requested it, and none of its refs has
    /// changed.
    pub(crate) fn is_unchanged(&self, slot: Slot) -> bool {
        let resource = &self.slots[slot];
        let only_changed = self
            .options(slot)
            .is_some_and(|options| options.parents == Parents::Changed);
        if !only_changed || resource.requested {
            return false;
        }
        let Some(last) = &resource.row.last_run else {
            return false;
        };
        let Some(seen) = &last.seen else { return false };
        matches!(last.result, RunResult::Done(_)) && self.refs_now(slot).eq(seen.refs.iter().copied())
    }

    pub(crate) fn view_refs(&self, slot: Slot) -> Vec<RefView> {
        let resource = &self.slots[slot];
        let view = |(reference, link): (&crate::Ref, &BoundRef)| {
            let target = self.names[link.name].live.map(|target| &self.slots[target]);
            RefView {
                reference: reference.clone(),
                target: target.map(|target| target.row.clone()),
                failed: target.is_some_and(|target| target.is_failed()),
            }
        };
        resource
            .row
            .refs
            .iter()
            .zip(resource.links.iter())
            .map(view)
            .collect()
    }

    /// Returns the inputs that a reconcile would see if it started now.
    pub(crate) fn see(&self, slot: Slot) -> ObservedInputs {
        let row = &self.slots[slot].row;
        ObservedInputs {
            spec_version: row.spec_version,
            refreshes: row.refreshes,
            formats: self.formats(slot),
            refs: self.seen_refs(slot),
        }
    }

    fn seen_refs(&self, slot: Slot) -> Arc<[ObservedRef]> {
        if self.slots[slot].links.is_empty() {
            return Arc::default(); // needs no memory
        }
        self.refs_now(slot).collect()
    }

    /// Returns the versions of the kind's spec and state messages; 0 if the kind is not registered.
    pub(crate) fn formats(&self, slot: Slot) -> (u32, u32) {
        self.options(slot)
            .map_or((0, 0), |options| (options.spec_format, options.state_format))
    }

    /// Lists the present observation of each ref, in the order of the refs.
    pub(crate) fn refs_now(&self, slot: Slot) -> impl Iterator<Item = ObservedRef> + '_ {
        self.slots[slot]
            .links
            .iter()
            .map(|link| match self.names[link.name].live {
                None => ObservedRef {
                    target: None,
                    failed: false,
                },
                Some(target) => {
                    let target = &self.slots[target];
                    ObservedRef {
                        target: Some((target.row.uid, target.row.state_version)),
                        failed: target.is_failed(),
                    }
                }
            })
    }

    /// Returns the effective retry policy: the resource's own or its kind's; `Never` if the resource can't run here.
    pub(crate) fn retry_policy(&self, slot: Slot) -> RetryPolicy {
        match (self.options(slot), &self.slots[slot].row.retry) {
            (None, _) => RetryPolicy::Never,
            (Some(_), Some(own)) => **own,
            (Some(options), None) => options.retry,
        }
    }

    /// Returns the reason of a retry, based on the reason of the run that failed.
    pub(crate) fn reason_to_retry(&self, slot: Slot) -> Arc<Reason> {
        Arc::new(match &self.slots[slot].row.last_run {
            Some(failed) => Reason::retried(&failed.reason),
            None => Reason::bare(Trigger::Retry),
        })
    }

    /// Returns the reason of the next run; none if none is due.
    pub(crate) fn reason_to_come(&self, slot: Slot) -> Option<Arc<Reason>> {
        match self.slots[slot].lifecycle.at() {
            At::Pending(pending) => Some(pending.reason.clone()),
            At::Running(run) => run.rerun.clone(),
            At::Settled(_) | At::Concluding => None,
        }
    }

    /// Returns the reason of the invocation that makes a call; none if no invocation does.
    pub(crate) fn reason_of_run(&self, slot: Option<Slot>) -> Option<Arc<Reason>> {
        Some(self.slots[slot?].run()?.reason.clone())
    }

    /// Returns true if a pause keeps the resource from being reconciled now.
    pub(crate) fn is_held_by_pause(&self, slot: Slot) -> bool {
        let resource = &self.slots[slot];
        resource.row.paused && !resource.extra().forced
    }

    /// Limits the next run that a reconcile asks for: no sooner after its start than the kind's requeue interval.
    pub(crate) fn requeue(
        &self,
        slot: Slot,
        (started_at, now): (Timestamp, Timestamp),
        (at, wait): (Option<Timestamp>, Option<Duration>),
    ) -> Requeue {
        let interval = self.options(slot).map(|options| options.requeue_interval);
        // By a clock that was set back since, it starts now.
        let earliest = started_at.min(now).after(interval.unwrap_or_default());
        Requeue::new(
            at.map(|at| at.max(earliest)),
            wait.map(|wait| (now.after(wait).max(earliest), wait)),
        )
    }
}

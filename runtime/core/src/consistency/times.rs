//! Requests 5 to 8 and the deadlines: the timeline, and what of it resources remember.

use super::Findings;
use crate::core::Core;
use crate::resource::{Op, Resource, Slot};
use crate::timeline::Alarm;
use crate::{InvocationId, Mono};

impl Core {
    /// What a resource or an invocation is to be told at some time is on the timeline, and nothing else is.
    pub(super) fn check_times(&self, findings: &mut Findings) {
        let due = |at: &Mono| *at > self.now.mono;
        for (slot, resource) in self.slots.iter() {
            for (at, alarm) in self.alarms_of(slot, resource) {
                let set = self.timeline.has(at, alarm) || !due(&at);
                findings.ensure_of(self, slot, set, || format!("{alarm:?} is not on the timeline"));
            }
            if let Some(at) = resource.extra().retrigger {
                let put_off = resource.extra().put_off_to.is_some();
                let set = put_off || self.timeline.has_retrigger(at, slot);
                findings.ensure_of(self, slot, set, || format!("lost its time {at:?}"));
            }
        }
        for (at, alarm) in self.timeline.alarms() {
            findings.ensure(self.is_expected(at, alarm), || {
                format!("{alarm:?} will ring for nobody, or for somebody else")
            });
        }
        for (at, slot) in self.timeline.retriggers() {
            let expected = self
                .slots
                .get(slot)
                .is_some_and(|it| it.extra().retrigger == Some(at));
            findings.ensure(expected, || format!("{slot:?} has a time that it does not know"));
        }
    }

    /// Every alarm that a resource remembers.
    fn alarms_of(&self, slot: Slot, resource: &Resource) -> Vec<(Mono, Alarm)> {
        let extra = resource.extra();
        let mut alarms = Vec::new();
        let mut add = |at: Option<Mono>, alarm| alarms.extend(at.map(|at| (at, alarm)));
        add(extra.retry_at, Alarm::Retry(slot));
        add(extra.forgive_at, Alarm::Forgive(slot));
        add(extra.resync_at, Alarm::Resync(slot));
        add(extra.past_at, Alarm::Past(slot));
        add(extra.put_off_to, Alarm::Retrigger(slot));
        let nudge = resource.extra().nudged.as_ref().and_then(|nudged| nudged.waiting);
        add(nudge.map(|(_, due)| due), Alarm::Nudge(slot));
        match resource.op {
            Op::Failed { retry_at } => add(Some(retry_at), Alarm::OpRetry(slot)),
            Op::Due { since, counts: true } => {
                let limit = self.options(slot).map(|options| options.hold_limit);
                add(limit.map(|limit| since.after(limit)), Alarm::HoldLimit(slot));
            }
            Op::Due { counts: false, .. } | Op::None => {}
        }
        if let Some(run) = resource.run() {
            add(run.finish_by, Alarm::FinishBy(run.invocation));
            add(run.deadline, Alarm::Deadline(run.invocation));
            add(run.abandon_at, Alarm::Abandon(run.invocation));
        }
        alarms
    }

    fn is_expected(&self, at: Mono, alarm: Alarm) -> bool {
        let of = |slot: Slot| {
            let resource = self.slots.get(slot);
            resource.is_some_and(|it| self.alarms_of(slot, it).contains(&(at, alarm)))
        };
        let of_run = |invocation: InvocationId| self.runs.get(&invocation).is_some_and(|slot| of(*slot));
        match alarm {
            Alarm::HoldLimit(slot)
            | Alarm::OpRetry(slot)
            | Alarm::Nudge(slot)
            | Alarm::Retry(slot)
            | Alarm::Forgive(slot)
            | Alarm::Resync(slot)
            | Alarm::Past(slot)
            | Alarm::Retrigger(slot) => of(slot),
            Alarm::FinishBy(invocation) | Alarm::Deadline(invocation) | Alarm::Abandon(invocation) => {
                of_run(invocation)
            }
            Alarm::Age => self.aging,
            Alarm::Stretch | Alarm::CommitRetry | Alarm::Grace | Alarm::LastCommit => true,
        }
    }
}

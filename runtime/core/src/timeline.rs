//! The timeline: what is due when.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::core::Core;
use crate::resource::{Slot, Stage};
use crate::{Effect, InvocationId, Mono, Now, Reason, Timestamp, Why};

/// How many times in a row a retrigger time in the past is taken up at once.
const PAST_AT_ONCE: u32 = 3;
/// How far apart further ones are.
const PAST_INTERVAL: Duration = Duration::from_secs(1);
/// The longest that the timer is set ahead for a wall time: a clock that jumps is noticed after so long.
const WALL_CHECK: Duration = Duration::from_secs(60);

/// What is due at a monotonic time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Alarm {
    /// A delete or rename has held others back for long enough.
    HoldLimit(Slot),
    /// Deletes and renames together have.
    Stretch,
    /// A failed delete or rename is tried again.
    OpRetry(Slot),
    /// A lingering invocation is cancelled.
    FinishBy(InvocationId),
    /// A debounced nudge counts.
    Nudge(Slot),
    /// A retrigger time that was put off is looked at again.
    Retrigger(Slot),
    /// A retrigger time in the past is taken up.
    Past(Slot),
    /// A failed reconcile is tried again.
    Retry(Slot),
    /// A resource has stayed successful for long enough to forget its failures.
    Forgive(Slot),
    /// It is time to look for drift.
    Resync(Slot),
    /// An invocation has taken too long.
    Deadline(InvocationId),
    /// An invocation has not returned for too long after its cancel.
    Abandon(InvocationId),
    /// What waits for a place is raised.
    Age,
    /// A failed commit is tried again.
    CommitRetry,
    /// The grace of a shutdown is over.
    Grace,
    /// The store has had its time for the last commit of a shutdown.
    LastCommit,
}

/// Nudges of one resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nudged {
    /// When the last one counted.
    pub(crate) last: Mono,
    /// When the first of those that wait came, and when they will count.
    pub(crate) waiting: Option<(Mono, Mono)>,
}

/// Everything that is due at some time.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Timeline {
    alarms: BTreeSet<(Mono, Alarm)>,
    retriggers: BTreeSet<(Timestamp, Slot)>,
    /// What the host's timer was last set to.
    set_to: Option<Mono>,
}

impl Timeline {
    pub(crate) fn set(&mut self, at: Mono, alarm: Alarm) {
        self.alarms.insert((at, alarm));
    }

    pub(crate) fn clear(&mut self, at: Mono, alarm: Alarm) {
        self.alarms.remove(&(at, alarm));
    }

    pub(crate) fn set_retrigger(&mut self, at: Timestamp, slot: Slot) {
        self.retriggers.insert((at, slot));
    }

    pub(crate) fn clear_retrigger(&mut self, at: Timestamp, slot: Slot) {
        self.retriggers.remove(&(at, slot));
    }

    pub(crate) fn has(&self, at: Mono, alarm: Alarm) -> bool {
        self.alarms.contains(&(at, alarm))
    }

    pub(crate) fn has_retrigger(&self, at: Timestamp, slot: Slot) -> bool {
        self.retriggers.contains(&(at, slot))
    }

    pub(crate) fn alarms(&self) -> impl Iterator<Item = (Mono, Alarm)> + '_ {
        self.alarms.iter().copied()
    }

    pub(crate) fn retriggers(&self) -> impl Iterator<Item = (Timestamp, Slot)> + '_ {
        self.retriggers.iter().copied()
    }

    fn next_alarm(&mut self, now: Now) -> Option<Alarm> {
        let (_, alarm) = self.alarms.first().copied().filter(|(at, _)| *at <= now.mono)?;
        self.alarms.pop_first();
        Some(alarm)
    }

    fn next_retrigger(&mut self, now: Now) -> Option<Slot> {
        let (_, slot) = self
            .retriggers
            .first()
            .copied()
            .filter(|(at, _)| *at <= now.wall)?;
        self.retriggers.pop_first();
        Some(slot)
    }

    fn next(&self, now: Now) -> Option<Mono> {
        let wall = self.retriggers.first().map(|(at, _)| {
            let wait = u64::try_from(at.0.saturating_sub(now.wall.0)).unwrap_or(0);
            now.mono.after(Duration::from_millis(wait).min(WALL_CHECK))
        });
        self.alarms
            .first()
            .map(|(at, _)| *at)
            .into_iter()
            .chain(wall)
            .min()
    }
}

impl Core {
    /// Does what is due.
    pub(crate) fn ring_alarms(&mut self) {
        while let Some(alarm) = self.timeline.next_alarm(self.now) {
            match alarm {
                Alarm::HoldLimit(slot) => self.stop_counting(slot),
                Alarm::Stretch => self.lift(),
                Alarm::OpRetry(slot) => self.op_retry_is_due(slot),
                Alarm::FinishBy(invocation) => self.finish_no_longer(invocation),
                Alarm::Nudge(slot) => self.nudge_now(slot),
                Alarm::Retrigger(slot) if self.is_serving() => self.retrigger(slot),
                Alarm::Retrigger(_) => {}
                Alarm::Past(slot) => self.take_up_past(slot),
                Alarm::Retry(slot) => self.retry_reconcile(slot),
                Alarm::Forgive(slot) => self.forgive(slot),
                Alarm::Resync(slot) => self.resync(slot),
                Alarm::Deadline(invocation) => self.deadline_is_over(invocation),
                Alarm::Abandon(invocation) => self.abandon(invocation),
                Alarm::Age => self.raise_what_waits(),
                Alarm::CommitRetry => self.retry_commit(),
                Alarm::Grace => self.grace_is_over(),
                Alarm::LastCommit => self.last_commit_is_overdue(),
            }
        }
        if self.is_serving() {
            while let Some(slot) = self.timeline.next_retrigger(self.now) {
                self.retrigger(slot);
            }
        }
        self.end_stretch_if_over();
    }

    /// Request 5. A time that was put off is still to come; it may have changed since, like the clock.
    fn retrigger(&mut self, slot: Slot) {
        self.clear_put_off(slot);
        let live = self.slots.get(slot).filter(|resource| resource.is_live());
        let Some(time) = live.and_then(|resource| resource.extra().retrigger) else {
            return;
        };
        if time > self.now.wall {
            self.timeline.set_retrigger(time, slot);
        } else if let Some(later) = self.put_off(slot) {
            self.slots[slot].extra_mut().put_off_to = Some(later);
            self.timeline.set(later, Alarm::Retrigger(slot));
        } else {
            self.slots[slot].take_retrigger();
            self.timeline.clear_retrigger(time, slot);
            self.ask(slot, &Arc::new(Reason::bare(Why::Retrigger)));
        }
    }

    fn finish_no_longer(&mut self, invocation: InvocationId) {
        let Some(slot) = self.runs.get(&invocation).copied() else {
            return;
        };
        if self.slots[slot].run().is_some_and(|run| run.lingering) {
            self.cancel_by_time(slot);
        }
    }

    /// Sets the host's timer if another time is due first now.
    pub(crate) fn set_timer(&mut self) {
        let next = self.timeline.next(self.now);
        // A wall time that is checked in between moves with the clock; that alone is no reason to set it anew.
        let due_earlier = match (next, self.timeline.set_to) {
            (Some(next), Some(set_to)) => next < set_to || set_to <= self.now.mono,
            (next, set_to) => next != set_to,
        };
        if due_earlier {
            self.timeline.set_to = next;
            self.out.push(Effect::Timer(next));
        }
    }

    /// A completed run returned this time, or none, in place of what was still to come. Gives back a time that
    /// is past already.
    pub(crate) fn take_retrigger(&mut self, slot: Slot, time: Option<Timestamp>) -> Option<Timestamp> {
        if let Some(before) = self.slots[slot].take_retrigger() {
            self.timeline.clear_retrigger(before, slot);
        }
        self.clear_put_off(slot);
        self.clear_past(slot);
        match time {
            Some(at) if at > self.now.wall => {
                self.slots[slot].extra_mut().retrigger = Some(at);
                self.timeline.set_retrigger(at, slot);
                self.slots[slot].forget_past_times();
                None
            }
            Some(past) => Some(past),
            None => {
                self.slots[slot].forget_past_times();
                None
            }
        }
    }

    /// A time in the past means the end of the queue, at most once a second after three in a row.
    pub(crate) fn ask_for_the_past(&mut self, slot: Slot) {
        let extra = self.slots[slot].extra_mut();
        extra.past_times = extra.past_times.saturating_add(1);
        let earliest = extra.last_past.after(PAST_INTERVAL);
        if extra.past_times <= PAST_AT_ONCE || earliest <= self.now.mono {
            self.take_up_past(slot);
        } else {
            self.take_up_past_at(slot, earliest);
        }
    }

    fn take_up_past_at(&mut self, slot: Slot, at: Mono) {
        self.clear_past(slot);
        self.slots[slot].extra_mut().past_at = Some(at);
        self.timeline.set(at, Alarm::Past(slot));
    }

    fn clear_past(&mut self, slot: Slot) {
        if let Some(extra) = &mut self.slots[slot].extra
            && let Some(at) = extra.past_at.take()
        {
            self.timeline.clear(at, Alarm::Past(slot));
        }
    }

    fn clear_put_off(&mut self, slot: Slot) {
        if let Some(resource) = self.slots.get_mut(slot)
            && let Some(extra) = &mut resource.extra
            && let Some(at) = extra.put_off_to.take()
        {
            self.timeline.clear(at, Alarm::Retrigger(slot));
        }
    }

    fn take_up_past(&mut self, slot: Slot) {
        self.clear_past(slot);
        if !self.slots[slot].is_live() {
            return;
        }
        if let Some(later) = self.put_off(slot) {
            return self.take_up_past_at(slot, later);
        }
        let resource = &mut self.slots[slot];
        resource.extra_mut().last_past = self.now.mono;
        let was_settled = !resource.is_unsettled();
        self.ask(slot, &Arc::new(Reason::bare(Why::Retrigger)));
        if let Stage::Pending(pending) = &mut self.slots[slot].stage {
            pending.late = was_settled;
        }
    }

    /// After a release: the stored time is what is still to come.
    pub(crate) fn sync_retrigger(&mut self, slot: Slot) {
        let resource = &self.slots[slot];
        let (next, past) = (resource.extra().retrigger, resource.extra().past_times > 0);
        if !past && resource.row.next_reconcile != next {
            self.write(slot, |row| row.next_reconcile = next);
        }
    }

    /// Nothing is due for this resource any more.
    pub(crate) fn clear_times(&mut self, slot: Slot) {
        self.clear_retries(slot);
        self.clear_put_off(slot);
        self.clear_past(slot);
        let resource = &mut self.slots[slot];
        resource.forget_past_times();
        let nudged = resource.extra.as_mut().and_then(|extra| extra.nudged.take());
        let nudge = nudged.and_then(|nudged| nudged.waiting);
        if let Some(at) = resource.take_retrigger() {
            self.timeline.clear_retrigger(at, slot);
        }
        if let Some((_, due)) = nudge {
            self.timeline.clear(due, Alarm::Nudge(slot));
        }
    }

    /// Request 8 for all whose retrigger time, retry or resync falls due within their kind's interval. Costs what is
    /// due within the longest of them.
    pub(crate) fn nudge_what_is_due_soon(&mut self) {
        let longest = self.kinds.longest_nudging_interval();
        let (mono, wall) = (self.now.mono.after(longest), self.now.wall.after(longest));
        let alarms = self.timeline.alarms.range(..=(mono, Alarm::LastCommit));
        let alarms = alarms.filter_map(|(at, alarm)| match alarm {
            Alarm::Retry(slot) | Alarm::OpRetry(slot) | Alarm::Resync(slot) | Alarm::Retrigger(slot) => {
                Some((*slot, at.since(self.now.mono)))
            }
            _ => None,
        });
        let times = self.timeline.retriggers.iter().take_while(|(at, _)| *at <= wall);
        let times = times.map(|(at, slot)| {
            let wait = u64::try_from(at.0.saturating_sub(self.now.wall.0)).unwrap_or(0);
            (*slot, Duration::from_millis(wait))
        });
        let due: BTreeSet<Slot> = alarms
            .chain(times)
            .filter(|(slot, wait)| {
                let options = self.options(*slot);
                self.slots[*slot].is_live() && options.is_some_and(|it| *wait <= it.nudging.interval)
            })
            .map(|(slot, _)| slot)
            .collect();
        for slot in due {
            self.nudge(slot);
        }
    }

    /// Request 8, debounced: the first counts at once, further ones once they pause or have waited for long.
    pub(crate) fn nudge(&mut self, slot: Slot) {
        let now = self.now.mono;
        let nudging = self
            .options(slot)
            .map(|options| options.nudging)
            .unwrap_or_default();
        let nudged = self.slots[slot].extra().nudged;
        let fresh = match nudged {
            None => return self.nudge_now(slot),
            Some(nudged) if nudged.waiting.is_none() && now.since(nudged.last) >= nudging.interval => {
                return self.nudge_now(slot);
            }
            Some(nudged) => nudged,
        };
        let since = match fresh.waiting {
            None => now,
            Some((since, due)) => {
                self.timeline.clear(due, Alarm::Nudge(slot));
                since
            }
        };
        let due = now.after(nudging.interval).min(since.after(nudging.longest_wait));
        let due = due.max(fresh.last.after(nudging.interval));
        self.slots[slot].extra_mut().nudged = Some(Nudged {
            last: fresh.last,
            waiting: Some((since, due)),
        });
        self.timeline.set(due, Alarm::Nudge(slot));
    }

    fn nudge_now(&mut self, slot: Slot) {
        let now = self.now.mono;
        if self.slots.get(slot).is_none_or(|resource| !resource.is_live()) {
            return;
        }
        let mut nudged = Nudged {
            last: now,
            waiting: None,
        };
        let later = self.put_off(slot);
        if let Some(later) = later {
            let before = self.slots[slot].extra().nudged.as_ref();
            nudged.last = before.map_or(Mono(0), |before| before.last);
            let since = before.and_then(|before| before.waiting);
            nudged.waiting = Some((since.map_or(now, |(since, _)| since), later));
            self.timeline.set(later, Alarm::Nudge(slot));
        }
        self.slots[slot].extra_mut().nudged = Some(nudged);
        if later.is_none() {
            self.ask(slot, &Arc::new(Reason::bare(Why::Nudge)));
        }
    }
}

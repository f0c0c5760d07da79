//! Table of all timers. A time is stored here and nowhere else; see [`Timers::due`] and [`Timers::requeue`].

pub(crate) mod attempts;
pub(crate) mod backoff;

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::time::Duration;

use crate::types::index::Slot;
use crate::{InvocationId, Mono, Now, Timestamp};
use rustc_hash::FxBuildHasher;

/// Longest time ahead that the host's timer is set for a wall time: bounds the delay after which a clock jump is
/// noticed.
const WALL_CHECK: Duration = Duration::from_secs(60);

/// Shortest wait of a repeating timer. A timer due at the moment at which it is set would fire forever.
pub(crate) const LEAST_WAIT: Duration = Duration::from_millis(1);

/// A timer on the monotonic clock, by its purpose.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Timer {
    /// Ends a drain, which has held back regular work for long enough.
    DrainLimit,
    /// Retries a failed delete or rename.
    OpRetry(Slot),
    /// Repeats a deferred nudge.
    Nudge(Slot),
    /// Retries a failed reconcile.
    Retry(Slot),
    /// Resets a resource's backoff after a long enough time without failure.
    Forgive(Slot),
    /// Requests a resource whose resync interval has passed.
    Resync(Slot),
    /// Requests a resource whose wait for the next run is over.
    Requeue(Slot),
    /// Cancels an invocation that exceeded its deadline.
    Deadline(InvocationId),
    /// Abandons an invocation that has not returned in time after its cancel.
    Abandon(InvocationId),
    /// Promotes the resources that wait for a place.
    Promote,
    /// Hands a failed commit to the store again.
    CommitRetry,
    /// Ends the grace period of a shutdown.
    Grace,
    /// Gives up the last commit of a shutdown.
    LastCommit,
}

/// Next run that a resource asks for: at a wall time, after a wait, or at the earlier of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Requeue {
    /// Wall time of the run; none if only a wait was asked for.
    at: Option<Timestamp>,
    /// End of the wait if no clock is set meanwhile, and its full length; none without a wait. Measured by the
    /// monotonic clock.
    wait: Option<(Timestamp, Duration)>,
}

impl Requeue {
    /// Creates a run at a wall time, after a wait (its end and length), or at the earlier of both.
    pub(crate) fn new(at: Option<Timestamp>, wait: Option<(Timestamp, Duration)>) -> Self {
        Self { at, wait }
    }

    /// Creates a run after a wait that begins now.
    pub(crate) fn after(length: Duration, now: Timestamp) -> Self {
        Self::new(None, Some((now.after(length), length)))
    }

    /// Restores the run stored in a row: its time, and the length of the wait if there is one. The wait never exceeds
    /// its full length, even if the clock was set back.
    pub(crate) fn stored(at: Option<Timestamp>, length: Option<Duration>, now: Timestamp) -> Self {
        let wait = at.zip(length);
        Self::new(at, wait.map(|(at, length)| (at.min(now.after(length)), length)))
    }
}

/// A timer or requeue that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    Timer(Timer),
    /// A resource's requeue time by the wall clock.
    Requeue(Slot),
}

/// Keys with their times, on one clock.
#[derive(Clone, Debug)]
struct Table<T, K> {
    at: HashMap<K, T, FxBuildHasher>,
    order: BTreeSet<(T, K)>,
}

impl<T, K> Default for Table<T, K> {
    fn default() -> Self {
        Self {
            at: HashMap::default(),
            order: BTreeSet::new(),
        }
    }
}

impl<T: Copy + Ord, K: Copy + Ord + Hash> Table<T, K> {
    fn set(&mut self, key: K, at: T) {
        // The older time would fall due as well, for a key that was not there any more.
        if let Some(before) = self.at.insert(key, at) {
            self.order.remove(&(before, key));
        }
        self.order.insert((at, key));
    }

    fn clear(&mut self, key: K) -> bool {
        // Most have no time; with an empty table that costs no hash.
        if self.order.is_empty() {
            return false;
        }
        let before = self.at.remove(&key);
        before.is_some_and(|at| self.order.remove(&(at, key)))
    }

    fn due(&self, key: K) -> Option<T> {
        if self.order.is_empty() {
            return None;
        }
        self.at.get(&key).copied()
    }

    fn first(&self) -> Option<T> {
        self.order.first().map(|(at, _)| *at)
    }

    fn take(&mut self, now: T) -> Option<K> {
        self.first().filter(|at| *at <= now)?;
        let (_, key) = self.order.pop_first()?;
        self.at.remove(&key);
        Some(key)
    }
}

/// Timers of all resources and invocations, on both clocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    mono: Table<Mono, Timer>,
    /// Requeue times, by the wall clock because they are stored.
    requeues: Table<Timestamp, Slot>,
    /// Waits for the next run, each with its stored end and its length; they end with [`Timer::Requeue`].
    waits: HashMap<Slot, (Timestamp, Duration), FxBuildHasher>,
    /// Time to which the host's timer was last set; none if it is off.
    host: Option<Mono>,
}

impl Timers {
    /// Sets a timer, replacing its earlier time.
    pub(crate) fn set(&mut self, timer: Timer, at: Mono) {
        self.mono.set(timer, at);
    }

    /// Clears a timer; returns whether it was set.
    pub(crate) fn clear(&mut self, timer: Timer) -> bool {
        self.mono.clear(timer)
    }

    /// Returns the time of a timer; none if it is not set.
    pub(crate) fn due(&self, timer: Timer) -> Option<Mono> {
        self.mono.due(timer)
    }

    /// Sets the time of a resource's next run, or clears it.
    pub(crate) fn set_requeue(&mut self, slot: Slot, now: Now, requeue: Requeue) {
        match requeue.at {
            Some(at) => self.requeues.set(slot, at),
            None => {
                self.requeues.clear(slot);
            }
        }
        match requeue.wait {
            Some((over, length)) => {
                self.mono
                    .set(Timer::Requeue(slot), now.mono.after(until(over, now)));
                self.waits.insert(slot, (over, length));
            }
            None if self.waits.is_empty() => {}
            None => {
                self.mono.clear(Timer::Requeue(slot));
                self.waits.remove(&slot);
            }
        }
    }

    /// Returns the time of a resource's next run; none if none is planned.
    pub(crate) fn requeue(&self, slot: Slot) -> Option<Timestamp> {
        let wait = self.waits.get(&slot).map(|(over, _)| *over);
        self.requeues.due(slot).into_iter().chain(wait).min()
    }

    /// Returns the length of the wait for a resource's next run; none without a wait.
    pub(crate) fn wait(&self, slot: Slot) -> Option<Duration> {
        self.waits.get(&slot).map(|(_, length)| *length)
    }

    /// Clears all regular timers of a resource.
    pub(crate) fn clear_all(&mut self, slot: Slot) {
        // Not the retry of a delete or rename: it goes with the operation, which outlasts the resource's regular times.
        for timer in [
            Timer::Nudge(slot),
            Timer::Retry(slot),
            Timer::Forgive(slot),
            Timer::Resync(slot),
        ] {
            self.clear(timer);
        }
        self.set_requeue(slot, Now::default(), Requeue::default());
    }

    /// Clears the deadline and abandonment timers of an invocation.
    pub(crate) fn clear_run(&mut self, invocation: InvocationId) {
        self.clear(Timer::Deadline(invocation));
        self.clear(Timer::Abandon(invocation));
    }

    /// Takes a due timer or requeue, if there is one.
    pub(crate) fn take(&mut self, now: Now) -> Option<Due> {
        let due = match self.mono.take(now.mono) {
            Some(Timer::Requeue(slot)) => Due::Requeue(slot),
            Some(timer) => Due::Timer(timer),
            None => Due::Requeue(self.requeues.take(now.wall)?),
        };
        if let Due::Requeue(slot) = due {
            // Whichever of the two came first, the other is over with it.
            self.set_requeue(slot, now, Requeue::default());
        }
        Some(due)
    }

    /// Lists every timer that is set, in order of time.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Timer, Mono)> + '_ {
        self.mono.order.iter().map(|(at, timer)| (*timer, *at))
    }

    /// Lists every requeue time, in order.
    pub(crate) fn requeues(&self) -> impl Iterator<Item = (Slot, Timestamp)> + '_ {
        self.requeues.order.iter().map(|(at, slot)| (*slot, *at))
    }

    /// Lists the retries, resyncs and requeues due within `within`, each with the time that remains.
    pub(crate) fn soon(&self, now: Now, within: Duration) -> impl Iterator<Item = (Slot, Duration)> + '_ {
        let (mono, wall) = (now.mono.after(within), now.wall.after(within));
        let timers = self.mono.order.iter().take_while(move |(at, _)| *at <= mono);
        let timers = timers.filter_map(move |(at, timer)| match timer {
            Timer::Retry(slot) | Timer::OpRetry(slot) | Timer::Resync(slot) | Timer::Requeue(slot) => {
                Some((*slot, at.since(now.mono)))
            }
            _ => None,
        });
        let requeues = self.requeues.order.iter().take_while(move |(at, _)| *at <= wall);
        timers.chain(requeues.map(move |(at, slot)| (*slot, until(*at, now))))
    }

    /// Returns the new time for the host's timer; none if it need not change.
    pub(crate) fn for_host(&mut self, now: Now) -> Option<Option<Mono>> {
        let wall = self
            .requeues
            .first()
            .map(|at| now.mono.after(until(at, now).min(WALL_CHECK)));
        let next = self.mono.first().into_iter().chain(wall).min();
        // A wall time that is checked in between moves with the clock; that alone is no reason to set the timer anew.
        let changes = match (next, self.host) {
            (Some(next), Some(host)) => next < host || host <= now.mono,
            (next, host) => next != host,
        };
        changes.then(|| {
            self.host = next;
            next
        })
    }
}

fn until(at: Timestamp, now: Now) -> Duration {
    Duration::from_millis(u64::try_from(at.0.saturating_sub(now.wall.0)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Now {
        Now {
            wall: Timestamp(i64::try_from(ms).unwrap()),
            mono: Mono(ms),
        }
    }

    fn set_requeue(timers: &mut Timers, slot: u32, at: Option<i64>) {
        let requeue = Requeue {
            at: at.map(Timestamp),
            wait: None,
        };
        timers.set_requeue(Slot::new(slot), Now::default(), requeue);
    }

    #[test]
    fn a_timer_has_one_time_and_is_taken_once() {
        let mut timers = Timers::default();
        let (retry, other) = (Timer::Retry(Slot::new(1)), Timer::Resync(Slot::new(2)));
        timers.set(retry, Mono(5));
        timers.set(retry, Mono(9));
        timers.set(other, Mono(7));
        assert_eq!(timers.due(retry), Some(Mono(9)));
        assert_eq!(timers.take(at(6)), None);
        assert_eq!(timers.take(at(9)), Some(Due::Timer(other)));
        assert_eq!(timers.take(at(9)), Some(Due::Timer(retry)));
        assert_eq!((timers.take(at(9)), timers.due(retry)), (None, None));
        timers.set(other, Mono(20));
        assert!(timers.clear(other) && !timers.clear(other));
        assert_eq!(timers.iter().count(), 0);
    }

    #[test]
    fn requeue_times_follow_the_wall_clock() {
        let mut timers = Timers::default();
        set_requeue(&mut timers, 1, Some(50));
        set_requeue(&mut timers, 2, Some(60));
        set_requeue(&mut timers, 2, None);
        assert_eq!(timers.requeue(Slot::new(1)), Some(Timestamp(50)));
        let set_back = Now {
            wall: Timestamp(10),
            mono: Mono(1_000),
        };
        assert_eq!(timers.take(set_back), None);
        assert_eq!(timers.take(at(50)), Some(Due::Requeue(Slot::new(1))));
        assert_eq!(timers.requeues().count(), 0);
    }

    #[test]
    fn the_host_is_told_only_of_earlier_times_and_of_times_that_have_passed() {
        let mut timers = Timers::default();
        assert_eq!(timers.for_host(at(0)), None);
        timers.set(Timer::Grace, Mono(100));
        assert_eq!(timers.for_host(at(0)), Some(Some(Mono(100))));
        timers.set(Timer::Grace, Mono(200));
        assert_eq!(timers.for_host(at(50)), None, "the earlier time does no harm");
        assert_eq!(timers.for_host(at(100)), Some(Some(Mono(200))));
        // A far wall time is looked at again after a minute.
        timers.clear(Timer::Grace);
        set_requeue(&mut timers, 1, Some(86_400_000));
        assert_eq!(timers.for_host(at(200)), Some(Some(Mono(60_200))));
        set_requeue(&mut timers, 1, None);
        assert_eq!(timers.for_host(at(300)), Some(None));
    }

    #[test]
    fn what_is_due_soon_is_found_on_both_clocks() {
        let mut timers = Timers::default();
        timers.set(Timer::Retry(Slot::new(1)), Mono(10));
        timers.set(Timer::Resync(Slot::new(2)), Mono(5_000));
        timers.set(Timer::Forgive(Slot::new(3)), Mono(10));
        set_requeue(&mut timers, 4, Some(20));
        let soon: Vec<_> = timers.soon(at(0), Duration::from_millis(100)).collect();
        let wait = Duration::from_millis;
        assert_eq!(soon, [(Slot::new(1), wait(10)), (Slot::new(4), wait(20))]);
        timers.clear_all(Slot::new(1));
        timers.clear_all(Slot::new(4));
        assert_eq!(timers.soon(at(0), Duration::from_millis(100)).count(), 0);
    }
}

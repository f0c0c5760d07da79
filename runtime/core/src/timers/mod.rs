//! The one table of what is due when. A time is stored here and nowhere else; whoever wants to know when something of a
//! resource is due reads [`Timers::due`] or [`Timers::requeue`].

pub(crate) mod attempts;
pub(crate) mod backoff;

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::time::Duration;

use crate::types::index::Slot;
use crate::{InvocationId, Mono, Now, Timestamp};
use rustc_hash::FxBuildHasher;

/// The longest that the host's timer is set ahead for a wall time: a clock that jumps is noticed after so long.
const WALL_CHECK: Duration = Duration::from_secs(60);

/// The shortest wait of a timer that is set anew whenever it goes off. One that is due in the moment in which it is set
/// would go off without an end.
pub(crate) const LEAST_WAIT: Duration = Duration::from_millis(1);

/// Something that is due at a monotonic time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Timer {
    /// A drain of deletes and renames has held regular work back for long enough.
    DrainLimit,
    /// A failed delete or rename is tried again.
    OpRetry(Slot),
    /// A nudge that was deferred.
    Nudge(Slot),
    /// A failed reconcile is tried again.
    Retry(Slot),
    /// A resource has stayed successful for long enough to forget its failures.
    Forgive(Slot),
    /// The resync interval has passed.
    Resync(Slot),
    /// The wait for the next run of a resource is over.
    Requeue(Slot),
    /// An invocation has taken too long.
    Deadline(InvocationId),
    /// An invocation has not returned for too long after its cancel.
    Abandon(InvocationId),
    /// Resources that wait for a place are promoted.
    Promote,
    /// A failed commit is tried again.
    CommitRetry,
    /// The grace of a shutdown is over.
    Grace,
    /// The store has had its time for the last commit of a shutdown.
    LastCommit,
}

/// The next run that a resource asks for: at a time of day, after a wait, or at the first of both, which is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Requeue {
    /// The time, by the wall clock.
    at: Option<Timestamp>,
    /// The time at which the wait is over if no clock is set meanwhile, and the length that was asked for. A wait goes by the
    /// monotonic clock.
    wait: Option<(Timestamp, Duration)>,
}

impl Requeue {
    /// Returns a run at a time, after a wait that is over at another one, or at the first of both.
    pub(crate) fn new(at: Option<Timestamp>, wait: Option<(Timestamp, Duration)>) -> Self {
        Self { at, wait }
    }

    /// Returns a run after a wait that begins now.
    pub(crate) fn after(length: Duration, now: Timestamp) -> Self {
        Self::new(None, Some((now.after(length), length)))
    }

    /// Returns the run that a row has stored: its time, and the length of the wait if it waits. Also where the clock was set
    /// back meanwhile, a wait is no longer than it was to be.
    pub(crate) fn stored(at: Option<Timestamp>, length: Option<Duration>, now: Timestamp) -> Self {
        let wait = at.zip(length);
        Self::new(at, wait.map(|(at, length)| (at.min(now.after(length)), length)))
    }
}

/// Something that falls due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    Timer(Timer),
    /// The requeue time of a resource.
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

/// Everything that is due at some time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    mono: Table<Mono, Timer>,
    /// Requeue times: the only ones on the wall clock, because they are stored.
    requeues: Table<Timestamp, Slot>,
    /// Waits for the next run, over with [`Timer::Requeue`]: the time that each is stored as, and its length.
    waits: HashMap<Slot, (Timestamp, Duration), FxBuildHasher>,
    /// The time to which the host's timer was last set.
    host: Option<Mono>,
}

impl Timers {
    /// Sets a timer, in place of its earlier time if it had one.
    pub(crate) fn set(&mut self, timer: Timer, at: Mono) {
        self.mono.set(timer, at);
    }

    /// Clears a timer; returns whether it was set.
    pub(crate) fn clear(&mut self, timer: Timer) -> bool {
        self.mono.clear(timer)
    }

    /// The time of a timer, if it is set.
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

    /// The time of a resource's next run that is still to come.
    pub(crate) fn requeue(&self, slot: Slot) -> Option<Timestamp> {
        let wait = self.waits.get(&slot).map(|(over, _)| *over);
        self.requeues.due(slot).into_iter().chain(wait).min()
    }

    /// The length of the wait for a resource's next run, if it waits for one.
    pub(crate) fn wait(&self, slot: Slot) -> Option<Duration> {
        self.waits.get(&slot).map(|(_, length)| *length)
    }

    /// Clears every time of a resource.
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

    /// Clears every time of an invocation.
    pub(crate) fn clear_run(&mut self, invocation: InvocationId) {
        self.clear(Timer::Deadline(invocation));
        self.clear(Timer::Abandon(invocation));
    }

    /// Takes what is due first, if anything is due by now.
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

    /// Every timer that is set.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Timer, Mono)> + '_ {
        self.mono.order.iter().map(|(at, timer)| (*timer, *at))
    }

    /// Every requeue time that is still to come.
    pub(crate) fn requeues(&self) -> impl Iterator<Item = (Slot, Timestamp)> + '_ {
        self.requeues.order.iter().map(|(at, slot)| (*slot, *at))
    }

    /// Requeues, retries and resyncs that fall due within `within`, each with how far off it is.
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

    /// The time to set the host's timer to, if that is another one than before.
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

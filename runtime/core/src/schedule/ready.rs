//! The ready queue: resources that may start, in the order of starts within a kind.
//!
//! Much becomes ready at once (a start, a wide fan) and leaves in order. So it is sorted once and taken from the end,
//! which touches memory in order; what comes meanwhile waits in a heap until that has grown to be worth a merge.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::types::index::Slot;
use crate::{Mono, Name};

/// Number of heap entries below which no merge happens.
const WORTH_A_MERGE: usize = 64;
/// Divisor of the sorted length: a heap larger than that share is merged, so each entry moves only a few times.
const MERGE_PART: usize = 4;

/// Sort key before the name: the level, then the longest remaining path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Rank {
    /// Level of the priority, less one for each promotion.
    pub(super) level: i64,
    pub(super) path: Reverse<u32>,
}

/// A resource that is ready to start.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub(super) rank: Rank,
    /// Time since which the resource has been ready.
    pub(super) since: Mono,
    /// First bytes of the case-folded name: most comparisons need no more.
    prefix: u128,
    pub(super) name: Name,
    pub(super) slot: Slot,
}

impl Ready {
    pub(crate) fn new(rank: Rank, since: Mono, name: Name, slot: Slot) -> Self {
        let prefix = name.prefix();
        Self {
            rank,
            since,
            prefix,
            name,
            slot,
        }
    }
}

impl Ord for Ready {
    /// Compares in reverse: the entry that starts first is the greatest, as a heap needs it.
    fn cmp(&self, other: &Self) -> Ordering {
        let beginning = (other.rank, other.prefix).cmp(&(self.rank, self.prefix));
        beginning
            .then_with(|| other.name.cmp(&self.name))
            .then_with(|| other.slot.cmp(&self.slot))
    }
}

impl PartialOrd for Ready {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ready {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ready {}

/// Ready queue of one kind and phase.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct ReadyQueue {
    /// Sorted entries; the last one starts first.
    sorted: Vec<Ready>,
    fresh: BinaryHeap<Ready>,
}

impl ReadyQueue {
    pub(crate) fn push(&mut self, ready: Ready) {
        self.fresh.push(ready);
    }

    /// Takes the entry that starts first.
    pub(crate) fn pop(&mut self) -> Option<Ready> {
        self.merge();
        if self.fresh.peek() > self.sorted.last() {
            self.fresh.pop()
        } else {
            self.sorted.pop()
        }
    }

    /// Returns the rank of the entry that starts first.
    pub(crate) fn first(&mut self) -> Option<Rank> {
        self.merge();
        let first = self.fresh.peek().max(self.sorted.last());
        first.map(|ready| ready.rank)
    }

    /// Lists the resources in the queue.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.sorted.iter().chain(&self.fresh).map(|ready| ready.slot)
    }

    /// Takes all entries that have waited for at least one `step`.
    pub(crate) fn take_older(&mut self, now: Mono, step: Duration) -> Vec<Ready> {
        // Taken out, for their rank changes: each is considered anew and comes back with the new one.
        let old = |ready: &Ready| waited_steps(now, ready.since, step) > 0;
        let mut taken: Vec<Ready> = self.sorted.extract_if(.., |ready| old(ready)).collect();
        let (raised, fresh): (Vec<Ready>, Vec<Ready>) =
            std::mem::take(&mut self.fresh).into_iter().partition(old);
        self.fresh = fresh.into();
        taken.extend(raised);
        taken
    }

    fn merge(&mut self) {
        if self.fresh.len() > WORTH_A_MERGE.max(self.sorted.len() / MERGE_PART) {
            self.sorted.extend(std::mem::take(&mut self.fresh));
            // Finds what is sorted already and merges.
            self.sorted.sort();
        }
    }
}

/// Returns how many whole steps the wait has lasted.
pub(crate) fn waited_steps(now: Mono, since: Mono, step: Duration) -> u32 {
    let steps = now.since(since).as_millis() / step.as_millis().max(1);
    u32::try_from(steps).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_equal_that_stand_in_one_place() {
        let rank = Rank {
            level: 0,
            path: Reverse(1),
        };
        let entry = |name: &str| Ready::new(rank, Mono(0), Name::new(name), Slot::new(0));
        assert_eq!(entry("a"), entry("A"));
        assert_ne!(entry("a"), entry("b"));
    }

    #[test]
    fn entries_leave_in_order_of_rank_and_name_however_they_came() {
        let mut state = 7_u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let mut queue = ReadyQueue::default();
        let mut expected: Vec<Ready> = Vec::new();
        for round in 0..200 {
            for _ in 0..random(400) {
                let name = format!("Name with a long beginning {}", random(5_000));
                let name = if random(2) == 0 {
                    name
                } else {
                    format!("n{}", random(5_000))
                };
                let slot = Slot::new(u32::try_from(random(1 << 20)).unwrap());
                let rank = Rank {
                    level: i64::try_from(random(5)).unwrap() - 2,
                    path: Reverse(u32::try_from(random(3)).unwrap()),
                };
                let ready = Ready::new(rank, Mono(0), Name::new(name), slot);
                expected.push(ready.clone());
                queue.push(ready);
            }
            expected.sort_by(|a, b| {
                (a.rank, &a.name, a.slot)
                    .cmp(&(b.rank, &b.name, b.slot))
                    .reverse()
            });
            let wanted = if round == 199 { u64::MAX } else { random(400) };
            for _ in 0..wanted {
                let popped = queue.pop();
                assert_eq!(popped, expected.pop());
                if popped.is_none() {
                    break;
                }
            }
        }
    }
}

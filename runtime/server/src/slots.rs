//! Slots for readers: how many statements of callers run at once, in a process with several instances.
//!
//! Readers have slots of their own, so that they hold up no build. A free slot goes to the instance with the fewest running
//! statements, and within an instance to whoever has waited longest; so an instance that floods the queue delays its own
//! callers. The queue is bounded for each instance too: one that fills its part refuses its own callers alone.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;
use watershed_api::{Code, Problem};
use watershed_locks::Unpoisoned as _;

/// The most statements of one instance that wait: a queue beyond patience helps nobody.
pub(crate) const MOST_WAITING: usize = 64;

/// The slots of a process. Clones share them.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Shared>);

struct Shared {
    most: usize,
    next_id: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: usize,
    members: BTreeMap<u64, Member>,
    turns: u64,
}

/// The part of one instance.
#[derive(Default)]
struct Member {
    running: usize,
    waiting: VecDeque<oneshot::Sender<Slot>>,
    /// The turn in which the instance last got a slot.
    last_turn: u64,
    refused: u64,
}

impl Default for Pool {
    fn default() -> Self {
        Self::new(std::thread::available_parallelism().map_or(1, NonZeroUsize::get))
    }
}

impl Pool {
    /// Returns a number of slots.
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Shared {
            most: most.max(1),
            next_id: AtomicU64::new(0),
            state: Mutex::default(),
        }))
    }

    /// Returns the part of a further instance.
    pub(crate) fn join(&self) -> Slots {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        self.0
            .state
            .lock()
            .unpoisoned()
            .members
            .insert(id, Member::default());
        Slots {
            pool: self.clone(),
            id,
        }
    }
}

/// The part of one instance in the slots of a process, which ends when the value is dropped.
pub(crate) struct Slots {
    pool: Pool,
    id: u64,
}

/// A slot, which is given back when the value is dropped.
pub(crate) struct Slot {
    /// The pool and the instance to whose numbers the slot belongs; none once it was given back.
    of: Option<(Pool, u64)>,
}

/// Numbers of an instance's readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Readers {
    /// Statements that run.
    pub(crate) running: usize,
    /// Statements that wait for a slot.
    pub(crate) waiting: usize,
    /// Statements that were refused, since the instance was opened.
    pub(crate) refused: u64,
}

impl Slots {
    /// Waits for a slot.
    ///
    /// # Errors
    /// `busy`, where too many wait already.
    ///
    /// # Cancel safety
    /// Dropping the future gives the place in the queue back.
    pub(crate) async fn take(&self) -> Result<Slot, Problem> {
        let granted = {
            let mut state = self.pool.0.state.lock().unpoisoned();
            let member = state.members.entry(self.id).or_default();
            // Whoever hung up waits no more.
            member.waiting.retain(|waiting| !waiting.is_closed());
            if member.waiting.len() >= MOST_WAITING {
                member.refused += 1;
                let message = format!("{MOST_WAITING} questions wait already");
                return Err(Problem::new(Code::Busy, message).hint("ask again later"));
            }
            let (sender, receiver) = oneshot::channel();
            member.waiting.push_back(sender);
            receiver
        };
        self.pool.grant();
        let gone = |_| Problem::new(Code::Stopping, "the project is being closed");
        granted.await.map_err(gone)
    }

    /// Returns the numbers of the instance's readers.
    pub(crate) fn readers(&self) -> Readers {
        let state = self.pool.0.state.lock().unpoisoned();
        let member = state.members.get(&self.id);
        Readers {
            running: member.map_or(0, |member| member.running),
            waiting: member.map_or(0, |member| {
                member
                    .waiting
                    .iter()
                    .filter(|waiting| !waiting.is_closed())
                    .count()
            }),
            refused: member.map_or(0, |member| member.refused),
        }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        let mut state = self.pool.0.state.lock().unpoisoned();
        // Slots that are still held count among all, and belong to nobody.
        state.members.remove(&self.id);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some((pool, id)) = self.of.take() {
            pool.count_as_free(id);
            pool.grant();
        }
    }
}

impl Pool {
    /// Gives free slots to those who wait.
    fn grant(&self) {
        while let Some((id, waiting)) = self.next() {
            let slot = Slot {
                of: Some((self.clone(), id)),
            };
            // A slot that nobody takes is given on by this loop, and not by its drop within the loop.
            if let Err(mut slot) = waiting.send(slot) {
                slot.of = None;
                self.count_as_free(id);
            }
        }
    }

    /// Takes the next one who waits, if a slot is free, and counts it as running.
    fn next(&self) -> Option<(u64, oneshot::Sender<Slot>)> {
        let mut state = self.0.state.lock().unpoisoned();
        if state.running >= self.0.most {
            return None;
        }
        let waiting = state
            .members
            .iter()
            .filter(|(_, member)| !member.waiting.is_empty());
        let least = waiting.min_by_key(|(_, member)| (member.running, member.last_turn));
        let id = *least?.0;
        state.turns += 1;
        state.running += 1;
        let turn = state.turns;
        let member = state.members.get_mut(&id)?;
        member.running += 1;
        member.last_turn = turn;
        let sender = member.waiting.pop_front()?;
        Some((id, sender))
    }

    fn count_as_free(&self, id: u64) {
        let mut state = self.0.state.lock().unpoisoned();
        state.running = state.running.saturating_sub(1);
        if let Some(member) = state.members.get_mut(&id) {
            member.running = member.running.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn s_api26_slots_are_bounded_and_so_is_the_queue() {
        let slots = Pool::new(2).join();
        let (first, second) = (slots.take().await.unwrap(), slots.take().await.unwrap());
        let mut waiting: Vec<_> = (0..MOST_WAITING).map(|_| Box::pin(slots.take())).collect();
        assert!(
            waiting
                .iter_mut()
                .all(|one| one.as_mut().now_or_never().is_none())
        );
        let refused = slots.take().now_or_never().unwrap();
        assert_eq!(refused.err().map(|problem| problem.code), Some(Code::Busy));
        let counted = |running, waiting| Readers {
            running,
            waiting,
            refused: 1,
        };
        assert_eq!(slots.readers(), counted(2, MOST_WAITING));
        // Whoever hangs up gives the place back, wherever it stands.
        drop(waiting.remove(7));
        assert_eq!(slots.readers(), counted(2, MOST_WAITING - 1));
        drop(first);
        let third = waiting.remove(0).await.unwrap();
        drop((second, third));
        drop(waiting);
        assert!(slots.take().now_or_never().is_some());
    }

    #[tokio::test]
    async fn s_api37_one_that_floods_delays_its_own_callers() {
        let pool = Pool::new(1);
        let (flood, other) = (pool.join(), pool.join());
        let held = flood.take().await.unwrap();
        let mut flooding: Vec<_> = (0..20).map(|_| Box::pin(flood.take())).collect();
        assert!(
            flooding
                .iter_mut()
                .all(|one| one.as_mut().now_or_never().is_none())
        );
        let mut asked = Box::pin(other.take());
        assert!(asked.as_mut().now_or_never().is_none());
        drop(held);
        let slot = asked.now_or_never().unwrap().unwrap();
        assert!(flooding[0].as_mut().now_or_never().is_none(), "there is one slot");
        drop(slot);
        assert!(flooding[0].as_mut().now_or_never().is_some());
    }

    /// Plays random orders outside of a runtime, where no future waits because it was polled often.
    #[test]
    fn s_api26_slots_survive_any_order_of_taking_and_leaving() {
        for seed in 0_u64..200 {
            let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            let mut next = |most: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random % most
            };
            let pool = Pool::new(3);
            let members = [pool.join(), pool.join(), pool.join()];
            let (mut waiting, mut held) = (Vec::new(), Vec::new());
            for _ in 0..200 {
                match next(3) {
                    0 => waiting.push(Box::pin(members[next(3) as usize].take())),
                    1 if !waiting.is_empty() => {
                        drop(waiting.swap_remove(next(waiting.len() as u64) as usize))
                    }
                    _ if !held.is_empty() => drop(held.swap_remove(next(held.len() as u64) as usize)),
                    _ => {}
                }
                // Who asks in the first pass may get a slot for somebody before.
                for _ in 0..2 {
                    let mut at = 0;
                    while at < waiting.len() {
                        match waiting[at].as_mut().now_or_never() {
                            Some(taken) => {
                                drop(waiting.swap_remove(at));
                                held.extend(taken.ok());
                                at = 0;
                            }
                            None => at += 1,
                        }
                    }
                }
                assert!(held.len() <= 3, "seed {seed}");
                let idle = held.len() < 3 && !waiting.is_empty();
                assert!(!idle, "seed {seed}: a slot is free, and somebody waits");
            }
        }
    }
}

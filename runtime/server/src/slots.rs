//! Slots for readers: how many statements of callers run at once, in a process with several instances.
//!
//! Readers have slots of their own, so that they hold up no build. They are divided among the instances as those of builds
//! are, so an instance that floods the queue delays its own callers. The queue is bounded for each instance: one that fills
//! its part refuses its own callers alone.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use watershed_api::{Code, Problem};
use watershed_drivers::shares::{self, Share};

use crate::fenced::Fence;

/// The most statements of one instance that wait: a queue beyond patience helps nobody.
pub(crate) const MOST_WAITING: usize = 64;

/// The most readers of one instance that gave their slots back while their clients take no rows: each holds a thread.
#[cfg(feature = "pgwire")]
const MOST_PAUSED: usize = 16;

/// The slots of a process. Clones share them.
#[derive(Clone)]
pub(crate) struct Pool(shares::Slots);

impl Default for Pool {
    fn default() -> Self {
        Self::new(std::thread::available_parallelism().map_or(1, NonZeroUsize::get))
    }
}

impl Pool {
    /// Returns a number of slots.
    pub(crate) fn new(most: usize) -> Self {
        Self(shares::Slots::new(
            NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN),
        ))
    }

    /// Returns the part of a further instance.
    pub(crate) fn join(&self) -> Slots {
        Slots {
            share: self.0.share(NonZeroU32::MIN),
            fence: Fence::default(),
            running: Arc::default(),
            waiting: Arc::default(),
            #[cfg(feature = "pgwire")]
            paused: Arc::default(),
            refused: AtomicU64::new(0),
        }
    }
}

/// The part of one instance in the slots of a process, which ends when the value and its slots are dropped.
pub(crate) struct Slots {
    share: Share,
    /// The memory of the fence around the instance's statements.
    pub(crate) fence: Fence,
    running: Arc<AtomicUsize>,
    waiting: Arc<AtomicUsize>,
    #[cfg(feature = "pgwire")]
    paused: Arc<AtomicUsize>,
    refused: AtomicU64,
}

/// A slot, which is given back when the value is dropped.
pub(crate) struct Slot {
    _slot: shares::Slot,
    _running: Counted,
}

/// A reader without a slot whose answer stays open, until the value is dropped.
#[cfg(feature = "pgwire")]
pub(crate) struct Pause {
    _paused: Counted,
}

/// One of those who are counted, until the value is dropped.
struct Counted {
    among: Arc<AtomicUsize>,
    /// The number of those who were counted before.
    before: usize,
}

impl Counted {
    fn among(among: &Arc<AtomicUsize>) -> Self {
        Self {
            before: among.fetch_add(1, Ordering::AcqRel),
            among: Arc::clone(among),
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.among.fetch_sub(1, Ordering::AcqRel);
    }
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
        let waiting = Counted::among(&self.waiting);
        if waiting.before >= MOST_WAITING {
            self.refused.fetch_add(1, Ordering::Relaxed);
            let message = format!("{MOST_WAITING} questions wait already");
            return Err(Problem::new(Code::Busy, message).hint("ask again later"));
        }
        Ok(self.slot().await)
    }

    /// Waits for the slot of an answer that was kept open, however many wait: so many are kept open at most.
    ///
    /// # Cancel safety
    /// Dropping the future gives the place in the queue back.
    #[cfg(feature = "pgwire")]
    pub(crate) async fn take_again(&self) -> Slot {
        let _waiting = Counted::among(&self.waiting);
        self.slot().await
    }

    async fn slot(&self) -> Slot {
        let slot = self.share.take().await;
        Slot {
            _slot: slot,
            _running: Counted::among(&self.running),
        }
    }

    /// Returns the right to keep an answer open without a slot; none where too many do.
    #[cfg(feature = "pgwire")]
    pub(crate) fn pause(&self) -> Option<Pause> {
        let paused = Counted::among(&self.paused);
        (paused.before < MOST_PAUSED).then_some(Pause { _paused: paused })
    }

    /// Returns the numbers of the instance's readers.
    pub(crate) fn readers(&self) -> Readers {
        Readers {
            running: self.running.load(Ordering::Acquire),
            waiting: self.waiting.load(Ordering::Acquire),
            refused: self.refused.load(Ordering::Relaxed),
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

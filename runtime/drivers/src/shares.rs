//! Slots of a process, divided by weight among the instances that want them.
//!
//! Whoever uses the least for its weight gets the next slot: an idle instance lends what it could have, and one that begins
//! to want slots gets the first that is given back. Nothing is taken from whoever has it.

use std::collections::BTreeMap;
use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;
use watershed_locks::Unpoisoned as _;

/// The step in a member's account for a slot at the weight 1. Weights up to a thousand still differ by it.
const STEP: u64 = 1 << 20;

/// A member's claim to the next free slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Number of slots that the member has.
    pub running: usize,
    /// Weight of the member.
    pub weight: NonZeroU32,
    /// Slots that the member was given so far, each divided by the weight.
    pub account: u64,
    /// Number of the member's oldest wish: a smaller one is older.
    pub since: u64,
}

/// Returns the position of the claim that gets the next slot: the one with the fewest slots for its weight; among equals the
/// one that was given the least so far, and then the oldest. None if there is no claim.
pub fn next(claims: impl IntoIterator<Item = Claim>) -> Option<usize> {
    let order = |one: &Claim, other: &Claim| {
        let scaled = |claim: &Claim, by: NonZeroU32| {
            let running = u64::try_from(claim.running).unwrap_or(u64::MAX);
            u128::from(running) * u128::from(by.get())
        };
        scaled(one, other.weight)
            .cmp(&scaled(other, one.weight))
            .then(one.account.cmp(&other.account))
            .then(one.since.cmp(&other.since))
    };
    let claims = claims.into_iter().enumerate();
    claims
        .min_by(|one, other| order(&one.1, &other.1))
        .map(|(position, _)| position)
}

/// The slots of a process. Clones share them.
#[derive(Clone)]
pub struct Slots(Arc<Mutex<Table>>);

struct Table {
    free: usize,
    /// Number of the next member, and of the next wish.
    number: u64,
    /// Account of whoever was given a slot last, before that slot.
    level: u64,
    members: BTreeMap<u64, Member>,
    /// Wishes for a slot, the oldest first.
    wishes: BTreeMap<u64, Wish>,
}

struct Member {
    weight: NonZeroU32,
    running: usize,
    account: u64,
}

struct Wish {
    of: Share,
    tell: oneshot::Sender<Slot>,
}

/// The share of an instance in the slots of a process, which ends when the last clone is dropped.
#[derive(Clone)]
pub struct Share(Arc<Membership>);

struct Membership {
    slots: Slots,
    number: u64,
}

/// A slot, given back when dropped.
pub struct Slot {
    /// The share that the slot counts for; none once the slot is given back.
    of: Option<Share>,
}

/// The least memory of an engine whose share is smaller, in bytes.
const MEMORY_MIN: u64 = 256 << 20;

/// The share of an instance in the memory of a process. An open engine takes no other limit, so the share is that of the
/// time when the instance is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryShare {
    /// Weight of the instance.
    pub weight: NonZeroU32,
    /// The sum of the weights of all instances.
    pub of: u64,
}

impl MemoryShare {
    /// Returns the instance's part of this number of bytes, 256 MiB at least if there are as many.
    #[must_use]
    pub fn part(self, bytes: u64) -> u64 {
        let weight = u128::from(self.weight.get());
        let all = u128::from(self.of).max(weight);
        let part = u64::try_from(u128::from(bytes) * weight / all).unwrap_or(bytes);
        part.max(MEMORY_MIN.min(bytes))
    }
}

impl Slots {
    /// Creates this number of slots.
    #[must_use]
    pub fn new(number: NonZeroUsize) -> Self {
        Self(Arc::new(Mutex::new(Table {
            free: number.get(),
            number: 0,
            level: 0,
            members: BTreeMap::new(),
            wishes: BTreeMap::new(),
        })))
    }

    /// Adds an instance of a weight.
    #[must_use]
    pub fn share(&self, weight: NonZeroU32) -> Share {
        let mut table = self.0.lock().unpoisoned();
        let number = table.next_number();
        let member = Member {
            weight,
            running: 0,
            account: table.level,
        };
        table.members.insert(number, member);
        drop(table);
        Share(Arc::new(Membership {
            slots: self.clone(),
            number,
        }))
    }

    /// Gives free slots to whoever has the best claims.
    fn give(&self) {
        // No share is dropped under the lock, for that takes the lock.
        while let Some(Wish { of, tell }) = self.take_next() {
            if let Err(mut unwanted) = tell.send(Slot { of: Some(of) }) {
                // Whoever wished for the slot has gone.
                if let Some(of) = unwanted.of.take() {
                    self.put_back(&of);
                }
            }
        }
    }

    fn take_next(&self) -> Option<Wish> {
        self.0.lock().unpoisoned().take_next()
    }

    fn put_back(&self, of: &Share) {
        let mut table = self.0.lock().unpoisoned();
        table.free += 1;
        if let Some(member) = table.members.get_mut(&of.0.number) {
            member.running = member.running.saturating_sub(1);
        }
    }
}

impl Table {
    fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Takes the wish with the best claim, with a slot for it; none if no slot is free or nobody wants one.
    fn take_next(&mut self) -> Option<Wish> {
        self.free.checked_sub(1)?;
        let mut oldest: BTreeMap<u64, u64> = BTreeMap::new();
        for (since, wish) in &self.wishes {
            oldest.entry(wish.of.0.number).or_insert(*since);
        }
        let claims: Vec<(u64, Claim)> = oldest
            .into_iter()
            .filter_map(|(number, since)| Some((number, self.members.get(&number)?.claim(since))))
            .collect();
        let (number, claim) = claims.get(next(claims.iter().map(|(_, claim)| *claim))?)?;
        let wish = self.wishes.remove(&claim.since)?;
        let member = self.members.get_mut(number)?;
        self.level = member.account;
        member.account = member
            .account
            .saturating_add(STEP / u64::from(member.weight.get()));
        member.running += 1;
        self.free -= 1;
        Some(wish)
    }
}

impl Member {
    fn claim(&self, since: u64) -> Claim {
        Claim {
            running: self.running,
            weight: self.weight,
            account: self.account,
            since,
        }
    }
}

impl Share {
    /// Waits for a slot.
    ///
    /// # Cancel safety
    /// Dropping the future gives the place in the queue back, or the slot.
    pub async fn take(&self) -> Slot {
        loop {
            let (tell, told) = oneshot::channel();
            let _wishing = self.wish(tell);
            self.0.slots.give();
            // A wish is dropped unanswered by nobody but this function.
            if let Ok(slot) = told.await {
                return slot;
            }
        }
    }

    fn wish(&self, tell: oneshot::Sender<Slot>) -> Wishing<'_> {
        let mut table = self.0.slots.0.lock().unpoisoned();
        let is_idle = !table.wishes.values().any(|wish| wish.of == *self);
        let level = table.level;
        if let Some(member) = table
            .members
            .get_mut(&self.0.number)
            .filter(|member| member.running == 0 && is_idle)
        {
            // Whoever rested has saved nothing up.
            member.account = member.account.max(level);
        }
        let number = table.next_number();
        let of = self.clone();
        table.wishes.insert(number, Wish { of, tell });
        Wishing { of: self, number }
    }
}

/// A wish for a slot, taken back when dropped.
struct Wishing<'a> {
    of: &'a Share,
    number: u64,
}

impl Drop for Wishing<'_> {
    fn drop(&mut self) {
        let gone = self.of.0.slots.0.lock().unpoisoned().wishes.remove(&self.number);
        drop(gone);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(of) = self.of.take() {
            of.0.slots.put_back(&of);
            of.0.slots.give();
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.slots.0.lock().unpoisoned().members.remove(&self.number);
    }
}

impl PartialEq for Share {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Share {}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share").field("number", &self.0.number).finish()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use rand::rngs::SmallRng;
    use rand::{Rng as _, SeedableRng as _};

    use super::*;
    use futures::future::BoxFuture;

    fn slots(number: usize) -> Slots {
        Slots::new(NonZeroUsize::new(number).unwrap())
    }

    fn weight(weight: u32) -> NonZeroU32 {
        NonZeroU32::new(weight).unwrap()
    }

    /// Returns a slot if one is given at once.
    fn at_once(share: &Share) -> Option<Slot> {
        share.take().now_or_never()
    }

    #[test]
    fn an_idle_instance_lends_its_share_and_gets_the_first_slot_that_is_given_back() {
        let slots = slots(3);
        let (loud, quiet) = (slots.share(weight(1)), slots.share(weight(1)));
        let mut held: Vec<Slot> = (0..3).map(|_| at_once(&loud).unwrap()).collect();
        let mut more = Box::pin(loud.take());
        assert!(more.as_mut().now_or_never().is_none(), "there are three slots");
        let mut first = Box::pin(quiet.take());
        assert!(first.as_mut().now_or_never().is_none());
        held.pop();
        assert!(
            more.as_mut().now_or_never().is_none(),
            "the other one has none yet"
        );
        let _first = first.now_or_never().unwrap();
        held.pop();
        assert!(more.now_or_never().is_some());
    }

    #[test]
    fn whoever_stops_waiting_holds_nothing_up() {
        let slots = slots(1);
        let (one, other) = (slots.share(weight(1)), slots.share(weight(1)));
        let held = at_once(&one).unwrap();
        let mut gone = Box::pin(other.take());
        assert!(gone.as_mut().now_or_never().is_none());
        // One that leaves before a slot is given, and one that leaves with an unread slot.
        let mut unread = Box::pin(other.take());
        assert!(unread.as_mut().now_or_never().is_none());
        drop(gone);
        drop(held);
        assert!(at_once(&one).is_none(), "the slot is on its way");
        drop(unread);
        assert!(at_once(&one).is_some());
        drop(other);
        assert_eq!(slots.0.lock().unpoisoned().members.len(), 1);
        assert!(slots.0.lock().unpoisoned().wishes.is_empty());
    }

    #[test]
    fn one_slot_goes_round_by_weight() {
        let slots = slots(1);
        let shares = [slots.share(weight(3)), slots.share(weight(1))];
        let mut held = Some(at_once(&shares[1]).unwrap());
        let mut waiting: Vec<_> = shares.iter().map(|share| Box::pin(share.take())).collect();
        for wish in &mut waiting {
            assert!(wish.as_mut().now_or_never().is_none());
        }
        let mut given = [0, 1];
        for _ in 0..400 {
            drop(held.take());
            let ready = waiting.iter_mut().enumerate();
            let (who, slot) = ready
                .filter_map(|(who, wish)| Some((who, wish.as_mut().now_or_never()?)))
                .next()
                .expect("somebody gets it");
            given[who] += 1;
            waiting[who] = Box::pin(shares[who].take());
            assert!(waiting[who].as_mut().now_or_never().is_none());
            held = Some(slot);
        }
        assert_eq!(given, [301, 100]);
    }

    #[test]
    fn random_histories_use_every_slot_and_divide_them_by_weight() {
        for seed in 0..20 {
            let mut random = SmallRng::seed_from_u64(seed);
            let number = random.random_range(1..12);
            let slots = slots(number);
            let weights: Vec<u32> = (0..random.random_range(1..6))
                .map(|_| random.random_range(1..5))
                .collect();
            let shares: Vec<Share> = weights.iter().map(|one| slots.share(weight(*one))).collect();
            let mut held: Vec<(usize, Slot)> = Vec::new();
            let mut waiting: Vec<(usize, BoxFuture<'_, Slot>)> = Vec::new();
            let mut used = vec![0_u64; shares.len()];
            for step in 0..2_000 {
                // In the second half everybody always wants more.
                let is_full = step >= 1_000;
                for (who, share) in shares.iter().enumerate() {
                    let waits = waiting.iter().filter(|(other, _)| *other == who).count();
                    let wants = is_full || random.random_bool(0.3);
                    if wants && waits < number {
                        waiting.push((who, Box::pin(share.take())));
                    }
                }
                if !is_full && !waiting.is_empty() && random.random_bool(0.2) {
                    drop(waiting.swap_remove(random.random_range(0..waiting.len())));
                }
                let mut still = Vec::new();
                for (who, mut wish) in waiting {
                    match wish.as_mut().now_or_never() {
                        Some(slot) => held.push((who, slot)),
                        None => still.push((who, wish)),
                    }
                }
                waiting = still;
                assert!(held.len() <= number, "seed {seed}");
                assert!(
                    waiting.is_empty() || held.len() == number,
                    "seed {seed}: a slot is idle"
                );
                for (who, _) in held.iter().filter(|_| step >= 1_200) {
                    used[*who] += 1;
                }
                if !held.is_empty() {
                    drop(held.swap_remove(random.random_range(0..held.len())));
                }
            }
            let (all, total) = (
                used.iter().sum::<u64>() as f64,
                weights.iter().sum::<u32>() as f64,
            );
            for (used, weight) in used.iter().zip(&weights) {
                let (part, due) = (*used as f64 / all, f64::from(*weight) / total);
                // A slot can't be divided.
                let slack = 1.0 / number as f64 + 0.05;
                assert!(
                    (part - due).abs() <= slack,
                    "seed {seed}: {part} of {due}, {weights:?} {number}"
                );
            }
        }
    }
}

//! Canonical state of a world: equal for worlds that differ only in the names of resources.
//!
//! Left out are numbers that only ever rise (revisions, versions, invocations), times, and what decides nothing but the
//! order of starts (reasons, priorities): there is a place for everybody.

use super::graphs::permutations;
use super::model::{NODES_MAX, SPARE};
use super::world::{Stands, World, number};
use crate::Phase;
use crate::graph::lifecycle::At;
use crate::graph::resource::{Cancelled, Op};
use crate::types::index::Slot;

/// Canonical state of one resource: numbers that do not depend on names, and sets that must be renamed.
#[derive(Clone, Copy, Default)]
struct Facet {
    flags: u64,
    name: u8,
    /// Sets of names: refs, former names, and the names at the start of the invocation.
    names: [u8; 3],
    /// Sets of resources: parents that completed since this one last began, deletes that come first, as the core and as
    /// the reference know them.
    others: [u8; 4],
}

/// All renamings of the resources, each with the renamed form of every set.
pub(super) struct Renamings {
    orders: Vec<([u8; NODES_MAX + 1], [u8; 32])>,
}

impl Renamings {
    pub(super) fn of(count: usize) -> Self {
        let renaming = |order: Vec<usize>| {
            let mut of = [SPARE; NODES_MAX + 1];
            for (index, to) in of.iter_mut().take(NODES_MAX).enumerate() {
                *to = order.get(index).map_or(index as u8, |to| *to as u8);
            }
            let mut sets = [0; 32];
            for (set, renamed) in sets.iter_mut().enumerate() {
                for (bit, to) in of.iter().enumerate() {
                    *renamed |= u8::from(set & (1 << bit) != 0) << to;
                }
            }
            (of, sets)
        };
        Self {
            orders: permutations(count).into_iter().map(renaming).collect(),
        }
    }
}

/// A hash of 128 bits that depends on the order of the words added.
#[derive(Clone, Copy)]
struct Sum(u64, u64);

impl Sum {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.1 = (self.1.rotate_left(31) ^ word).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
        self.1 ^= self.1 >> 29;
    }
}

impl World {
    /// Returns a hash that is equal for worlds that differ only in the names of resources.
    pub(super) fn shape(&self, renamings: &Renamings) -> u128 {
        let facets: [Facet; NODES_MAX] = std::array::from_fn(|index| self.facet(index));
        let claims = self.claims();
        let sums = renamings.orders.iter().map(|(of, sets)| {
            let mut at = [0; NODES_MAX + 1];
            for (from, to) in of.iter().enumerate() {
                at[usize::from(*to)] = from;
            }
            let mut sum = Sum(1, 2);
            for from in &at[..NODES_MAX] {
                let facet = &facets[*from];
                let packed = facet.names.iter().chain(&facet.others);
                let packed = packed.fold(0_u64, |all, set| all << 8 | u64::from(sets[usize::from(*set)]));
                sum.add(facet.flags << 3 | u64::from(of[usize::from(facet.name)]));
                sum.add(packed);
            }
            for from in &at {
                let order = claims[*from].iter();
                let order = order.fold(0_u64, |all, index| (all << 4) | (u64::from(of[*index]) + 1));
                sum.add(order);
            }
            u128::from(sum.0) << 64 | u128::from(sum.1)
        });
        sums.min().unwrap_or_default()
    }

    fn slot(&self, index: usize) -> Option<Slot> {
        self.core.graph().find(self.uids[index]?)
    }

    fn index(&self, slot: Slot) -> Option<usize> {
        let uid = self.core.graph().get(slot)?.row().uid;
        self.uids.iter().position(|known| *known == Some(uid))
    }

    /// Lists the claimants of each name, in the order in which they came.
    fn claims(&self) -> [Vec<usize>; NODES_MAX + 1] {
        let mut claims: [Vec<usize>; NODES_MAX + 1] = Default::default();
        for (_, entry) in self.core.graph().names() {
            let others = entry.others().iter().filter_map(|slot| self.index(*slot));
            claims[usize::from(number(entry.name()))] = others.collect();
        }
        claims
    }

    fn facet(&self, index: usize) -> Facet {
        let (Some(slot), Some(item)) = (self.slot(index), self.model.items[index]) else {
            return Facet {
                name: SPARE,
                ..Facet::default()
            };
        };
        let (resource, past) = (&self.core.graph()[slot], &self.past[index]);
        let later = |since: u32| {
            let parents = (0..self.count).filter(|parent| since < self.past[*parent].ended);
            parents.fold(0, |all, parent| all | 1 << parent)
        };
        let first = self.core.barrier().delete_order().waiting_for(slot);
        let first = first.filter_map(|target| self.index(target));
        let run = self.running.iter().find(|run| run.index == index);
        let mut flags = 1;
        let mut add = |width: u32, value: u64| flags = flags << width | value;
        add(3, stands(self.stands[index]));
        add(10, stage(resource.at()));
        add(2, op(resource.op()));
        add(1, u64::from(resource.is_owed()));
        add(1, u64::from(item.deleted));
        add(1, u64::from(item.failed));
        add(1, u64::from(resource.row().error.is_some()));
        add(1, u64::from(past.stopped));
        add(1, u64::from(past.began < past.asked));
        add(1, u64::from(run.is_some_and(|run| run.began < past.asked)));
        add(4, u64::from(resource.delete_waits()));
        Facet {
            flags,
            name: item.name,
            names: [item.refs, item.former, run.map_or(0, |run| run.names)],
            others: [
                later(past.began),
                run.filter(|run| !run.cancelled).map_or(0, |run| later(run.began)),
                first.fold(0, |all, target| all | 1 << target),
                item.waits,
            ],
        }
    }
}

fn stage(stage: At<'_>) -> u64 {
    match stage {
        At::Settled(_) | At::Concluding => 0,
        At::Pending(pending) => 1 | u64::from(pending.is_cancelled()) << 1,
        At::Running(run) => {
            let phase = match run.phase() {
                Phase::Delete => 0,
                Phase::Rename => 1,
                Phase::Reconcile => 2,
            };
            let cancelled = match run.cancelled() {
                Cancelled::No => 0,
                Cancelled::ToRunAgain => 1,
                Cancelled::ByCaller => 2,
                Cancelled::ByDeadline | Cancelled::ByShutdown => 3,
            };
            let again = u64::from(run.rerun().is_some());
            let busy = u64::from(run.is_busy()) | u64::from(run.is_answer()) << 1;
            1 << 9 | phase << 7 | cancelled << 5 | again << 3 | busy
        }
    }
}

fn stands(stands: Stands) -> u64 {
    stands as u64
}

fn op(op: Op) -> u64 {
    match op {
        Op::None => 0,
        Op::Due { counts: true } => 1,
        Op::Due { counts: false } => 2,
        Op::Failed => 3,
    }
}

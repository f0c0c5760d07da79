//! Maps from slots to nodes.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use super::job::Id;
use crate::graph::Slot;

/// A hasher for slots, which are small numbers that no input chooses: one multiplication suffices.
#[derive(Default)]
pub(super) struct SlotHasher(u64);

impl Hasher for SlotHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(26);
    }
}

/// Nodes by slot: a list of all slots if most are visited, otherwise a map.
pub(super) enum SlotIndex {
    /// Ids plus one, by slot; 0 for none.
    Dense(Vec<Id>),
    Sparse(HashMap<Slot, Id, BuildHasherDefault<SlotHasher>>),
}

impl SlotIndex {
    pub(super) fn get(&self, slot: Slot) -> Option<Id> {
        match self {
            Self::Dense(ids) => ids.get(slot as usize)?.checked_sub(1),
            Self::Sparse(ids) => ids.get(&slot).copied(),
        }
    }

    pub(super) fn insert(&mut self, slot: Slot, id: Id) {
        match self {
            Self::Dense(ids) => {
                let at = slot as usize;
                if ids.len() <= at {
                    ids.resize((at + 1).next_power_of_two(), 0);
                }
                ids[at] = id + 1;
            }
            Self::Sparse(ids) => {
                ids.insert(slot, id);
            }
        }
    }
}

pub(super) type IdSet = HashSet<Id, BuildHasherDefault<SlotHasher>>;

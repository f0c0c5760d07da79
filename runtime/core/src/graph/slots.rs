//! Dense storage of resources, indexed by slot.

use std::hash::BuildHasher;
use std::ops::{Index, IndexMut};

use hashbrown::HashTable;

use crate::Uid;
use crate::graph::resource::Resource;
use crate::types::index::Slot;
use rustc_hash::FxBuildHasher;

/// Every stored resource, and removed ones whose invocation has yet to return.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Slots {
    entries: Vec<Option<Resource>>,
    free: Vec<Slot>,
    /// Index by the uid in each row: a second copy of a million uids would cost 16 MB.
    by_uid: HashTable<Slot>,
}

impl Slots {
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self {
            entries: Vec::with_capacity(count),
            free: Vec::new(),
            by_uid: HashTable::with_capacity(count),
        }
    }

    pub(crate) fn insert(&mut self, resource: Resource) -> Slot {
        let uid = resource.row.uid;
        // Slots are used again, which keeps the arrays dense. Whoever keeps one beyond an input keeps the uid beside it.
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot.index()] = Some(resource);
                slot
            }
            None => {
                let index = u32::try_from(self.entries.len()).expect("fewer than 2^32 resources");
                self.entries.push(Some(resource));
                Slot::new(index)
            }
        };
        let entries = &self.entries;
        let uid_of = |slot: &Slot| entries[slot.index()].as_ref().map(|it| it.row.uid);
        let hash_of = |slot: &Slot| uid_of(slot).map_or(0, hash);
        self.by_uid.insert_unique(hash(uid), slot, hash_of);
        slot
    }

    pub(crate) fn remove(&mut self, slot: Slot) {
        if let Some(resource) = self.entries[slot.index()].take() {
            let there = self
                .by_uid
                .find_entry(hash(resource.row.uid), |other| *other == slot);
            there.map(hashbrown::hash_table::OccupiedEntry::remove).ok();
            self.free.push(slot);
        }
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&Resource> {
        self.entries.get(slot.index()).and_then(Option::as_ref)
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut Resource> {
        self.entries.get_mut(slot.index()).and_then(Option::as_mut)
    }

    pub(crate) fn find(&self, uid: Uid) -> Option<Slot> {
        let has_it = |slot: &Slot| self.get(*slot).is_some_and(|it| it.row.uid == uid);
        self.by_uid.find(hash(uid), has_it).copied()
    }

    /// Returns the highest slot in use plus one.
    pub(crate) fn bound(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &Resource)> {
        self.entries
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| Some((Slot::new(u32::try_from(index).ok()?), entry.as_ref()?)))
    }
}

fn hash(uid: Uid) -> u64 {
    FxBuildHasher.hash_one(uid)
}

/// Access by slot. Slots exist only inside the core, so a slot without a resource is a bug of the core.
impl Index<Slot> for Slots {
    type Output = Resource;

    fn index(&self, slot: Slot) -> &Resource {
        self.entries[slot.index()].as_ref().expect("a slot in use")
    }
}

impl IndexMut<Slot> for Slots {
    fn index_mut(&mut self, slot: Slot) -> &mut Resource {
        self.entries[slot.index()].as_mut().expect("a slot in use")
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;

    #[test]
    fn what_is_gone_leaves_nothing_behind() {
        let mut bench = Bench::new();
        for _ in 0..3 {
            bench.settled(&[("a", &[]), ("b", &[])]);
            bench.delete("a");
            bench.delete("b");
            bench.finish_all();
        }
        let slots = &bench.core.graph().slots;
        assert_eq!((slots.by_uid.len(), slots.bound(), slots.free.len()), (0, 2, 2));
    }
}

//! Names of the catalog: the live resource of each, other claimants, and referrers.
//!
//! Edges hang on names rather than on resources: when a name passes to another resource its referrers follow
//! without being touched.

use std::hash::BuildHasher;
use std::ops::{Index, IndexMut};

use hashbrown::HashTable;
use hashbrown::hash_table::{Entry, OccupiedEntry};

use crate::types::index::{KindId, NameId, Slot};
use crate::{Cause, Name};
use rustc_hash::FxBuildHasher;

/// A ref to this name: link `index` of `slot`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Referrer {
    pub(super) slot: Slot,
    pub(super) index: u32,
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct NameEntry {
    pub(super) kind: KindId,
    pub(super) name: Name,
    /// The only live resource with this name.
    pub(super) live: Option<Slot>,
    /// Other claimants in order of arrival: deleted, renamed away, or removed and still running.
    pub(super) others: Vec<Slot>,
    pub(super) referrers: Vec<Referrer>,
}

impl NameEntry {
    pub(crate) fn kind(&self) -> KindId {
        self.kind
    }

    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    /// Returns the only live resource with this name.
    pub(crate) fn live(&self) -> Option<Slot> {
        self.live
    }

    /// Returns the other claimants, in order of arrival.
    pub(crate) fn others(&self) -> &[Slot] {
        &self.others
    }

    /// Returns the referrer at a position: its slot, and the index of its ref.
    pub(crate) fn referrer(&self, position: u32) -> Option<(Slot, usize)> {
        let referrer = self.referrers.get(position as usize)?;
        Some((referrer.slot, referrer.index as usize))
    }
}

#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Names {
    entries: Vec<NameEntry>,
    free: Vec<NameId>,
    /// Tables per kind, hashed by the name in each entry, so that a lookup allocates nothing.
    by_kind: Vec<HashTable<NameId>>,
    /// Names to check for removal at the end of a batch; none outside a batch.
    held: Option<Vec<NameId>>,
    /// Names released during the batch, each with the cause.
    given_up: Vec<(NameId, Cause)>,
}

impl Names {
    pub(crate) fn find(&self, kind: KindId, name: &Name) -> Option<NameId> {
        let has_it = |id: &NameId| self[*id].name == *name;
        self.by_kind.get(kind.index())?.find(hash(name), has_it).copied()
    }

    /// Returns the entry of a name, adding it if it is new.
    pub(crate) fn intern(&mut self, kind: KindId, name: &Name) -> NameId {
        let entries = &mut self.entries;
        let has_it = |id: &NameId| entries[id.index()].name == *name;
        let hash_of = |id: &NameId| hash(&entries[id.index()].name);
        let vacant = match ids_of_kind(&mut self.by_kind, kind).entry(hash(name), has_it, hash_of) {
            Entry::Occupied(found) => return *found.get(),
            Entry::Vacant(vacant) => vacant,
        };
        let entry = NameEntry {
            kind,
            name: name.clone(),
            live: None,
            others: Vec::new(),
            referrers: Vec::new(),
        };
        let id = match self.free.pop() {
            Some(id) => {
                entries[id.index()] = entry;
                id
            }
            None => {
                let index = u32::try_from(entries.len()).expect("fewer than 2^32 names");
                entries.push(entry);
                NameId::new(index)
            }
        };
        vacant.insert(id);
        id
    }

    /// Reserves space for `count` more names of a kind.
    pub(crate) fn reserve(&mut self, kind: KindId, count: usize) {
        self.entries.reserve(count);
        let entries = &self.entries;
        let hash_of = |id: &NameId| hash(&entries[id.index()].name);
        ids_of_kind(&mut self.by_kind, kind).reserve(count, hash_of);
    }

    /// Removes a name if nothing has, claims or refers to it.
    pub(crate) fn release(&mut self, id: NameId) {
        // In the middle of a batch a name may be nobody's for a moment, as in a swap. Its id must outlast that.
        if let Some(held) = &mut self.held {
            return held.push(id);
        }
        let entry = &self.entries[id.index()];
        let unused = entry.live.is_none() && entry.others.is_empty() && entry.referrers.is_empty();
        if !unused {
            return;
        }
        let there = self
            .by_kind
            .get_mut(entry.kind.index())
            .and_then(|ids| ids.find_entry(hash(&entry.name), |other| *other == id).ok());
        if there.map(OccupiedEntry::remove).is_some() {
            self.free.push(id);
        }
    }

    /// Keeps unused names until `forget_unused`.
    pub(crate) fn keep_all(&mut self) {
        self.held.get_or_insert_default();
    }

    /// Within a batch, keeps the released name for the end; otherwise returns the cause.
    pub(crate) fn give_up_later(&mut self, id: NameId, by: Cause) -> Option<Cause> {
        if self.held.is_none() {
            return Some(by);
        }
        self.given_up.push((id, by));
        None
    }

    pub(crate) fn take_given_up(&mut self) -> Vec<(NameId, Cause)> {
        std::mem::take(&mut self.given_up)
    }

    pub(crate) fn forget_unused(&mut self) {
        for id in self.held.take().unwrap_or_default() {
            self.release(id);
        }
    }

    pub(crate) fn claim(&mut self, id: NameId, slot: Slot) {
        let others = &mut self[id].others;
        if !others.contains(&slot) {
            others.push(slot);
        }
    }

    pub(crate) fn unclaim(&mut self, id: NameId, slot: Slot) {
        self[id].others.retain(|other| *other != slot);
    }

    /// Lists every entry in use.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (NameId, &NameEntry)> {
        let ids = self.by_kind.iter().flat_map(HashTable::iter);
        ids.map(|id| (*id, &self[*id]))
    }
}

/// Returns the table of a kind, adding it if it is new.
fn ids_of_kind(by_kind: &mut Vec<HashTable<NameId>>, kind: KindId) -> &mut HashTable<NameId> {
    let index = kind.index();
    if by_kind.len() <= index {
        by_kind.resize_with(index + 1, HashTable::new);
    }
    &mut by_kind[index]
}

fn hash(name: &Name) -> u64 {
    FxBuildHasher.hash_one(name)
}

impl Index<NameId> for Names {
    type Output = NameEntry;

    fn index(&self, id: NameId) -> &NameEntry {
        &self.entries[id.index()]
    }
}

impl IndexMut<NameId> for Names {
    fn index_mut(&mut self, id: NameId) -> &mut NameEntry {
        &mut self.entries[id.index()]
    }
}

//! A map in pieces, so that threads that read and the one that writes rarely meet.
//!
//! A key is hashed once: its hash leads to the piece, and to the place in it.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, Unpoisoned};
use rustc_hash::FxBuildHasher;

/// More than threads that read at a time, so that they rarely meet.
pub(super) const SHARDS: usize = if cfg!(all(test, feature = "interleavings")) {
    2
} else {
    64
};

/// A map in pieces that are locked one by one.
#[derive(Debug)]
pub(super) struct Shards<K, V> {
    shards: Box<[Apart<K, V>]>,
}

/// One piece, in cache lines of its own: whoever locks one doesn't slow down who locks the next.
#[derive(Debug)]
#[repr(align(128))]
struct Apart<K, V>(RwLock<Shard<K, V>>);

/// One piece.
#[derive(Debug)]
pub(super) struct Shard<K, V>(HashTable<(K, V)>);

/// The place of a key, for as long as nobody writes there.
pub(super) struct Reading<'a, K, V> {
    shard: RwLockReadGuard<'a, Shard<K, V>>,
    hash: u64,
}

/// The place of a key, with nobody else there.
pub(super) struct Writing<'a, K, V> {
    shard: RwLockWriteGuard<'a, Shard<K, V>>,
    hash: u64,
    /// The number of this piece.
    pub(super) number: usize,
}

impl<K: Hash + Eq, V> Shards<K, V> {
    pub(super) fn with_capacity(count: usize) -> Self {
        let shard = || Shard(HashTable::with_capacity(count / SHARDS));
        Self {
            shards: (0..SHARDS).map(|_| Apart(RwLock::new(shard()))).collect(),
        }
    }

    /// Returns the number of the piece for a hash.
    fn number(hash: u64) -> usize {
        // Tables use the low bits within a shard, and the topmost ones to tell apart what meets there.
        usize::try_from(hash >> 40).unwrap_or_default() % SHARDS
    }

    /// All pieces, one after the other.
    pub(super) fn iter(&self) -> impl Iterator<Item = &RwLock<Shard<K, V>>> {
        self.shards.iter().map(|shard| &shard.0)
    }

    pub(super) fn read(&self, key: &K) -> Reading<'_, K, V> {
        let hash = hash(key);
        let shard = self.shards[Self::number(hash)].0.read().unpoisoned();
        Reading { shard, hash }
    }

    pub(super) fn write(&self, key: &K) -> Writing<'_, K, V> {
        let hash = hash(key);
        let number = Self::number(hash);
        let shard = self.shards[number].0.write().unpoisoned();
        Writing { shard, hash, number }
    }
}

impl<K, V> Shard<K, V> {
    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }
}

/// Only the key that led to the place may be looked for there.
impl<K: Eq, V> Reading<'_, K, V> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let found = self.shard.0.find(self.hash, |(other, _)| other == key);
        found.map(|(_, value)| value)
    }
}

/// Only the key that led to the place may be looked for there.
impl<K: Hash + Eq, V> Writing<'_, K, V> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let found = self.shard.0.find(self.hash, |(other, _)| other == key);
        found.map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let found = self.shard.0.find_mut(self.hash, |(other, _)| other == key);
        found.map(|(_, value)| value)
    }

    /// Returns the value of a key, made if there is none.
    pub(super) fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let entry = self.entry(&key);
        let made = entry.or_insert_with(|| (key, V::default()));
        &mut made.into_mut().1
    }

    /// Puts a value there; gives back the one that it replaces.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.entry(&key) {
            Entry::Occupied(mut found) => Some(std::mem::replace(&mut found.get_mut().1, value)),
            Entry::Vacant(place) => {
                place.insert((key, value));
                None
            }
        }
    }

    pub(super) fn remove(&mut self, key: &K) {
        if let Ok(found) = self.shard.0.find_entry(self.hash, |(other, _)| other == key) {
            found.remove();
        }
    }

    fn entry(&mut self, key: &K) -> Entry<'_, (K, V)> {
        let rehash = |(key, _): &(K, V)| hash(key);
        self.shard.0.entry(self.hash, |(other, _)| other == key, rehash)
    }
}

fn hash<K: Hash>(key: &K) -> u64 {
    FxBuildHasher.hash_one(key)
}

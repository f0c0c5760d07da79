//! A map in locked shards, so that reading threads and the writing one rarely meet.
//!
//! A key is hashed once: its hash leads to the piece, and to the place in it.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, Unpoisoned};
use rustc_hash::FxBuildHasher;

/// Number of shards: more than the threads that read at a time.
pub(super) const SHARDS: usize = if cfg!(all(test, feature = "interleavings")) {
    2
} else {
    64
};

/// A map in shards that are locked one by one.
#[derive(Debug)]
pub(super) struct Shards<K, V> {
    shards: Box<[Apart<K, V>]>,
}

/// A shard in cache lines of its own, so that a lock slows down no neighbour.
#[derive(Debug)]
#[repr(align(128))]
struct Apart<K, V>(RwLock<Shard<K, V>>);

/// A hash table with the keys of one shard.
#[derive(Debug)]
pub(super) struct Shard<K, V>(HashTable<(K, V)>);

/// Read access to the place of a key.
pub(super) struct Reading<'a, K, V> {
    shard: RwLockReadGuard<'a, Shard<K, V>>,
    hash: u64,
}

/// Exclusive access to the place of a key.
pub(super) struct Writing<'a, K, V> {
    shard: RwLockWriteGuard<'a, Shard<K, V>>,
    hash: u64,
    /// Index of the shard.
    pub(super) number: usize,
}

impl<K: Hash + Eq, V> Shards<K, V> {
    pub(super) fn with_capacity(count: usize) -> Self {
        let shard = || Shard(HashTable::with_capacity(count / SHARDS));
        Self {
            shards: (0..SHARDS).map(|_| Apart(RwLock::new(shard()))).collect(),
        }
    }

    /// Returns the index of the shard for a hash.
    fn number(hash: u64) -> usize {
        // Tables use the low bits within a shard, and the topmost ones to tell apart what meets there.
        usize::try_from(hash >> 40).unwrap_or_default() % SHARDS
    }

    /// Lists all shards.
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

/// Lookups, only of the key that led here.
impl<K: Eq, V> Reading<'_, K, V> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let found = self.shard.0.find(self.hash, |(other, _)| other == key);
        found.map(|(_, value)| value)
    }
}

/// Lookups and changes, only of the key that led here.
impl<K: Hash + Eq, V> Writing<'_, K, V> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let found = self.shard.0.find(self.hash, |(other, _)| other == key);
        found.map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let found = self.shard.0.find_mut(self.hash, |(other, _)| other == key);
        found.map(|(_, value)| value)
    }

    /// Returns the value of a key, adding a default if there is none.
    pub(super) fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let entry = self.entry(&key);
        let made = entry.or_insert_with(|| (key, V::default()));
        &mut made.into_mut().1
    }

    /// Inserts a value; returns the one that it replaces.
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

//! A map in pieces, so that threads that read and the one that writes rarely meet.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::PoisonError;

use watershed_core::QuickHash;

use crate::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// More than threads that read at a time, so that they rarely meet.
const SHARDS: usize = if cfg!(interleavings) { 2 } else { 64 };

/// A map in pieces that are locked one by one.
#[derive(Debug)]
pub(super) struct Shards<K, V> {
    shards: Box<[Apart<K, V>]>,
}

/// One piece, in cache lines of its own: whoever locks one doesn't slow down who locks the next.
#[derive(Debug)]
#[repr(align(128))]
struct Apart<K, V>(RwLock<Shard<K, V>>);

pub(super) type Shard<K, V> = HashMap<K, V, QuickHash>;

impl<K: Hash + Eq, V> Shards<K, V> {
    pub(super) fn with_capacity(count: usize) -> Self {
        let shard = || HashMap::with_capacity_and_hasher(count / SHARDS, QuickHash::default());
        Self {
            shards: (0..SHARDS).map(|_| Apart(RwLock::new(shard()))).collect(),
        }
    }

    fn of(&self, key: &K) -> &RwLock<Shard<K, V>> {
        // Maps use the low bits within a shard.
        let bits = QuickHash::default().hash_one(key) >> 40;
        &self.shards[usize::try_from(bits).unwrap_or_default() % SHARDS].0
    }

    /// All pieces, one after the other.
    pub(super) fn iter(&self) -> impl Iterator<Item = &RwLock<Shard<K, V>>> {
        self.shards.iter().map(|shard| &shard.0)
    }

    pub(super) fn read(&self, key: &K) -> RwLockReadGuard<'_, Shard<K, V>> {
        read(self.of(key))
    }

    pub(super) fn write(&self, key: &K) -> RwLockWriteGuard<'_, Shard<K, V>> {
        write(self.of(key))
    }
}

/// A panic elsewhere leaves what is locked whole: nothing panics between two changes that belong together.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

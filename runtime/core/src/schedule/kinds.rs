//! The kinds that the catalog knows, registered or not, with the queue of each.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};
use std::sync::Arc;
use std::time::Duration;

use crate::resource::{KindId, Slot};
use crate::schedule::ready::ReadyQueue;
use crate::{Kind, KindOptions, Phase, Pool, QuickHash};

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct KindEntry {
    pub(crate) kind: Kind,
    /// None if no reconciler of it is registered here.
    pub(crate) options: Option<KindOptions>,
    pub(crate) running: usize,
    /// Which of the pools it is in.
    pool: Option<usize>,
    deletes: ReadyQueue,
    renames: ReadyQueue,
    reconciles: ReadyQueue,
}

/// A limit that kinds share.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct PoolEntry {
    pub(crate) name: Arc<str>,
    pub(crate) limit: usize,
    pub(crate) exclusive: bool,
    pub(crate) running: usize,
}

impl KindEntry {
    fn has_room(&self) -> bool {
        let limit = self.options.as_ref().and_then(|options| options.concurrency);
        limit.is_none_or(|limit| self.running < limit)
    }

    /// Whether anything is ready and has not started.
    pub(crate) fn has_waiting(&self) -> bool {
        !(self.deletes.is_empty() && self.renames.is_empty() && self.reconciles.is_empty())
    }

    pub(crate) fn ready(&mut self, phase: Phase) -> &mut ReadyQueue {
        match phase {
            Phase::Delete => &mut self.deletes,
            Phase::Rename => &mut self.renames,
            Phase::Reconcile => &mut self.reconciles,
        }
    }
}

#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Kinds {
    entries: Vec<KindEntry>,
    by_name: HashMap<Kind, KindId, QuickHash>,
    pools: Vec<PoolEntry>,
    /// Registered ones in order of name, which is the order of starts.
    pub(crate) registered: Vec<KindId>,
    /// The least of their patiences with timed requests; none if none is registered.
    timed_patience: Option<Duration>,
}

impl Kinds {
    pub(crate) fn register(&mut self, options: KindOptions) -> bool {
        if self.by_name.contains_key(&options.kind) {
            return false;
        }
        let id = self.intern(&options.kind.clone());
        self[id].pool = options.pool.as_ref().map(|pool| self.pool(pool));
        let patience = options.timed_patience;
        self.timed_patience = Some(self.timed_patience.map_or(patience, |least| least.min(patience)));
        self[id].options = Some(options);
        self.registered.push(id);
        let entries = &self.entries;
        self.registered
            .sort_by(|a, b| entries[a.0 as usize].kind.cmp(&entries[b.0 as usize].kind));
        true
    }

    fn pool(&mut self, pool: &Pool) -> usize {
        let found = self.pools.iter().position(|entry| entry.name == pool.name);
        let index = found.unwrap_or_else(|| {
            self.pools.push(PoolEntry {
                name: pool.name.clone(),
                limit: pool.limit,
                exclusive: false,
                running: 0,
            });
            self.pools.len() - 1
        });
        let entry = &mut self.pools[index];
        entry.limit = entry.limit.min(pool.limit);
        entry.exclusive |= pool.exclusive;
        index
    }

    pub(crate) fn least_timed_patience(&self) -> Duration {
        self.timed_patience.unwrap_or(Duration::MAX)
    }

    pub(crate) fn longest_nudging_interval(&self) -> Duration {
        let options = self.entries.iter().filter_map(|entry| entry.options.as_ref());
        options
            .map(|options| options.nudging.interval)
            .max()
            .unwrap_or_default()
    }

    /// Whether one more invocation of this kind may start.
    pub(crate) fn has_room(&self, id: KindId) -> bool {
        self[id].has_room() && self.full_pool(id).is_none()
    }

    /// Whether an abandoned invocation may keep others from a place until it returns.
    pub(crate) fn is_exclusively_full(&self) -> bool {
        let mut pools = self.pools.iter();
        pools.any(|pool| pool.exclusive && pool.running >= pool.limit)
    }

    /// Every pool.
    pub(crate) fn pools(&self) -> &[PoolEntry] {
        &self.pools
    }

    /// The pool of this kind.
    pub(crate) fn pool_of(&self, id: KindId) -> Option<&PoolEntry> {
        self[id].pool.map(|pool| &self.pools[pool])
    }

    /// Every entry of every queue, stale ones included.
    pub(crate) fn ready_entries(&self) -> impl Iterator<Item = (Phase, Slot)> + '_ {
        self.entries.iter().flat_map(|entry| {
            let queues = [
                (Phase::Delete, &entry.deletes),
                (Phase::Rename, &entry.renames),
                (Phase::Reconcile, &entry.reconciles),
            ];
            let slots = |(phase, queue): (Phase, &'_ ReadyQueue)| {
                let slots: Vec<(Phase, Slot)> = queue.slots().map(|slot| (phase, slot)).collect();
                slots
            };
            queues.into_iter().flat_map(slots)
        })
    }

    /// The pool of this kind, if it has no place left.
    pub(crate) fn full_pool(&self, id: KindId) -> Option<&Arc<str>> {
        let pool = &self.pools[self[id].pool?];
        (pool.running >= pool.limit).then_some(&pool.name)
    }

    pub(crate) fn enter(&mut self, id: KindId) {
        self[id].running += 1;
        if let Some(pool) = self[id].pool {
            self.pools[pool].running += 1;
        }
    }

    pub(crate) fn leave(&mut self, id: KindId) {
        self[id].running -= 1;
        if let Some(pool) = self[id].pool {
            self.pools[pool].running -= 1;
        }
    }

    /// An abandoned invocation gives back its places, but not in an exclusive pool.
    pub(crate) fn abandon(&mut self, id: KindId) {
        self[id].running -= 1;
        if let Some(pool) = self[id].pool.filter(|pool| !self.pools[*pool].exclusive) {
            self.pools[pool].running -= 1;
        }
    }

    /// An abandoned invocation has returned.
    pub(crate) fn leave_after_all(&mut self, id: KindId) {
        if let Some(pool) = self[id].pool.filter(|pool| self.pools[*pool].exclusive) {
            self.pools[pool].running -= 1;
        }
    }

    pub(crate) fn find(&self, kind: &Kind) -> Option<KindId> {
        self.by_name.get(kind).copied()
    }

    pub(crate) fn intern(&mut self, kind: &Kind) -> KindId {
        if let Some(id) = self.find(kind) {
            return id;
        }
        let id = KindId(u32::try_from(self.entries.len()).expect("fewer than 2^32 kinds"));
        self.entries.push(KindEntry {
            kind: kind.clone(),
            options: None,
            running: 0,
            pool: None,
            deletes: ReadyQueue::default(),
            renames: ReadyQueue::default(),
            reconciles: ReadyQueue::default(),
        });
        self.by_name.insert(kind.clone(), id);
        id
    }

    /// Every kind ever seen, in order of first sight.
    pub(crate) fn ids(&self) -> impl Iterator<Item = KindId> + use<> {
        (0..u32::try_from(self.entries.len()).unwrap_or(u32::MAX)).map(KindId)
    }
}

impl Index<KindId> for Kinds {
    type Output = KindEntry;

    fn index(&self, id: KindId) -> &KindEntry {
        &self.entries[id.0 as usize]
    }
}

impl IndexMut<KindId> for Kinds {
    fn index_mut(&mut self, id: KindId) -> &mut KindEntry {
        &mut self.entries[id.0 as usize]
    }
}

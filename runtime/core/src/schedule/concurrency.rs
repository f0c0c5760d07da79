//! Concurrency limits, of each kind and of pools (the contract's C12).

use std::sync::Arc;

use super::ready::ReadyQueue;
use crate::types::index::{KindId, Slot};
use crate::{KindOptions, Phase, Pool};

/// Concurrency limit of a registered kind, with its ready queues.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
struct KindConcurrency {
    limit: Option<usize>,
    running: usize,
    /// Index of the kind's pool; none if it has no pool.
    pool: Option<usize>,
    deletes: ReadyQueue,
    renames: ReadyQueue,
    reconciles: ReadyQueue,
}

/// A concurrency limit that several kinds share.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct PoolEntry {
    name: Arc<str>,
    limit: usize,
    exclusive: bool,
    running: usize,
}

impl PoolEntry {
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn running(&self) -> usize {
        self.running
    }

    fn is_full(&self) -> bool {
        self.running >= self.limit
    }
}

/// Concurrency limits of all registered kinds, by kind index: registered kinds have the lowest indexes.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct ConcurrencyLimits {
    kinds: Vec<KindConcurrency>,
    pools: Vec<PoolEntry>,
}

impl ConcurrencyLimits {
    /// Adds the limits of the kind that is registered next.
    pub(super) fn register(&mut self, options: &KindOptions) {
        let pool = options.pool.as_ref().map(|pool| self.join_pool(pool));
        self.kinds.push(KindConcurrency {
            limit: options.concurrency,
            pool,
            ..KindConcurrency::default()
        });
    }

    fn join_pool(&mut self, pool: &Pool) -> usize {
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
        // Each kind says what it can bear beside the others, so the narrowest limit holds for all of them.
        entry.limit = entry.limit.min(pool.limit);
        entry.exclusive |= pool.exclusive;
        index
    }

    /// Returns the ready queue of a registered kind.
    pub(super) fn ready(&mut self, id: KindId, phase: Phase) -> &mut ReadyQueue {
        let kind = &mut self.kinds[id.index()];
        match phase {
            Phase::Delete => &mut kind.deletes,
            Phase::Rename => &mut kind.renames,
            Phase::Reconcile => &mut kind.reconciles,
        }
    }

    /// Lists every entry of every ready queue, stale ones included.
    pub(crate) fn ready_entries(&self) -> impl Iterator<Item = (Phase, Slot)> + '_ {
        self.kinds.iter().flat_map(|kind| {
            let queues = [
                (Phase::Delete, &kind.deletes),
                (Phase::Rename, &kind.renames),
                (Phase::Reconcile, &kind.reconciles),
            ];
            queues
                .into_iter()
                .flat_map(|(phase, queue)| queue.slots().map(move |slot| (phase, slot)))
        })
    }

    /// Returns true if one more invocation of this kind may start.
    pub(crate) fn has_room(&self, id: KindId) -> bool {
        self.full_kind(id).is_none() && self.full_pool(id).is_none()
    }

    /// Returns the limit of this kind if it is reached.
    pub(crate) fn full_kind(&self, id: KindId) -> Option<usize> {
        let kind = self.kinds.get(id.index())?;
        kind.limit.filter(|limit| kind.running >= *limit)
    }

    /// Returns the name of this kind's pool if its limit is reached.
    pub(crate) fn full_pool(&self, id: KindId) -> Option<&Arc<str>> {
        let pool = self.pool_of(id)?;
        pool.is_full().then_some(&pool.name)
    }

    /// Returns true if an abandoned invocation may occupy the last place of an exclusive pool.
    pub(crate) fn is_exclusively_full(&self) -> bool {
        self.pools.iter().any(|pool| pool.exclusive && pool.is_full())
    }

    pub(crate) fn pools(&self) -> &[PoolEntry] {
        &self.pools
    }

    /// Returns the pool whose limit this kind shares; none if it has none.
    pub(crate) fn pool_of(&self, id: KindId) -> Option<&PoolEntry> {
        self.kinds.get(id.index())?.pool.map(|pool| &self.pools[pool])
    }

    /// Returns how many invocations of this kind run.
    pub(crate) fn running(&self, id: KindId) -> usize {
        self.kinds.get(id.index()).map_or(0, |kind| kind.running)
    }

    pub(super) fn enter(&mut self, id: KindId) {
        let kind = &mut self.kinds[id.index()];
        kind.running += 1;
        if let Some(pool) = kind.pool {
            self.pools[pool].running += 1;
        }
    }

    pub(crate) fn leave(&mut self, id: KindId) {
        let kind = &mut self.kinds[id.index()];
        kind.running -= 1;
        if let Some(pool) = kind.pool {
            self.pools[pool].running -= 1;
        }
    }

    /// Releases the places of an abandoned invocation, except in an exclusive pool.
    pub(crate) fn abandon(&mut self, id: KindId) {
        let kind = &mut self.kinds[id.index()];
        kind.running -= 1;
        // An exclusive pool guards what only one may touch, and this invocation may still touch it.
        if let Some(pool) = kind.pool.filter(|pool| !self.pools[*pool].exclusive) {
            self.pools[pool].running -= 1;
        }
    }

    /// Releases the place in an exclusive pool after an abandoned invocation has returned.
    pub(crate) fn leave_after_all(&mut self, id: KindId) {
        // Its place in the kind was given back when it was abandoned.
        let kind = &self.kinds[id.index()];
        if let Some(pool) = kind.pool.filter(|pool| self.pools[*pool].exclusive) {
            self.pools[pool].running -= 1;
        }
    }
}

#[cfg(test)]
impl ConcurrencyLimits {
    pub(crate) fn plant_running(&mut self, id: KindId) {
        self.kinds[id.index()].running += 1;
    }
}

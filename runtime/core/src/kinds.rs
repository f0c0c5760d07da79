//! The kinds that the catalog knows, registered or not, with the queue of each.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};

use crate::ready::ReadyQueue;
use crate::resource::KindId;
use crate::{Kind, KindOptions, Phase, QuickHash};

#[derive(Debug)]
pub(crate) struct KindEntry {
    pub(crate) kind: Kind,
    /// None if no reconciler of it is registered here.
    pub(crate) options: Option<KindOptions>,
    pub(crate) running: usize,
    deletes: ReadyQueue,
    renames: ReadyQueue,
    reconciles: ReadyQueue,
}

impl KindEntry {
    pub(crate) fn has_room(&self) -> bool {
        let limit = self.options.as_ref().and_then(|options| options.concurrency);
        limit.is_none_or(|limit| self.running < limit)
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
pub(crate) struct Kinds {
    entries: Vec<KindEntry>,
    by_name: HashMap<Kind, KindId, QuickHash>,
    /// Registered ones in order of name, which is the order of starts.
    pub(crate) registered: Vec<KindId>,
}

impl Kinds {
    pub(crate) fn register(&mut self, options: KindOptions) -> bool {
        if self.by_name.contains_key(&options.kind) {
            return false;
        }
        let id = self.intern(&options.kind.clone());
        self[id].options = Some(options);
        self.registered.push(id);
        let entries = &self.entries;
        self.registered
            .sort_by(|a, b| entries[a.0 as usize].kind.cmp(&entries[b.0 as usize].kind));
        true
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

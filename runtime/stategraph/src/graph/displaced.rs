//! Displaced items: outside of a converged part, deleted for it, and to be restored.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Extent, Graph, GroupPath};
use crate::item::{Item, Spec};
use crate::reference::Ref;

/// An item to restore.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Displaced<V> {
    /// Group that the item was in.
    pub(crate) group: GroupPath,
    /// Value and dependencies of the item.
    pub(crate) spec: Arc<Spec<V>>,
    /// Part that the item was deleted for; none in graphs stored by an older version.
    pub(crate) by: Option<Extent>,
}

impl<V> Graph<V> {
    /// Lists the items outside of a converged part that were deleted for it and could not be restored yet.
    pub fn displaced(&self) -> impl Iterator<Item = &Ref> {
        let is_back = |reference: &Ref| self.get(reference).is_some_and(Item::is_created);
        self.displaced.keys().filter(move |reference| !is_back(reference))
    }

    pub(crate) fn displaced_specs(&self) -> &BTreeMap<Ref, Displaced<V>> {
        &self.displaced
    }

    /// Records an item to restore.
    pub(crate) fn displace(&mut self, reference: &Ref, displaced: Displaced<V>) {
        let is_same = |old: &Displaced<V>| {
            old.group == displaced.group && old.by == displaced.by && Arc::ptr_eq(&old.spec, &displaced.spec)
        };
        if !self.displaced.get(reference).is_some_and(is_same) {
            self.displaced.insert(reference.clone(), displaced);
            self.changes += 1;
        }
    }

    pub(crate) fn no_longer_displaced(&mut self, reference: &Ref) {
        if self.displaced.remove(reference).is_some() {
            self.changes += 1;
        }
    }

    pub(crate) fn forget_displaced(&mut self) {
        if !self.displaced.is_empty() {
            self.displaced.clear();
            self.changes += 1;
        }
    }
}

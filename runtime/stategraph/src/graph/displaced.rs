//! Items outside of a part that were deleted for its sake, as they are to be brought back.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Extent, Graph, GroupPath};
use crate::item::{Item, Spec};
use crate::reference::Ref;

/// The form in which an item is to be brought back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Displaced<V> {
    /// The group that it was in.
    pub(crate) group: GroupPath,
    /// Its value and dependencies.
    pub(crate) spec: Arc<Spec<V>>,
    /// The part that it was deleted for; none in graphs that were stored by a version that did not note the part.
    pub(crate) by: Option<Extent>,
}

impl<V> Graph<V> {
    /// Items outside of a part that was converged alone which had to be deleted for it and could not be
    /// brought back yet.
    pub fn displaced(&self) -> impl Iterator<Item = &Ref> {
        let is_back = |reference: &Ref| self.get(reference).is_some_and(Item::is_created);
        self.displaced.keys().filter(move |reference| !is_back(reference))
    }

    pub(crate) fn displaced_specs(&self) -> &BTreeMap<Ref, Displaced<V>> {
        &self.displaced
    }

    /// Remembers an item that has to be brought back.
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

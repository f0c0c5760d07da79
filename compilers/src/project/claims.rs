//! Claims on names: all declarations of each name, and the winner.

use std::collections::{BTreeMap, BTreeSet};

use crate::resource::{Kind, ResourceKey};

/// A declaration of a name; the smallest claim wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Claim {
    /// True if another resource implies the declaration.
    pub(super) implicit: bool,
    /// The first path of the group's files.
    pub(super) path: String,
    /// The key of the group: its stem, or the path of a file that is a resource by itself.
    pub(super) group: String,
    /// The index of the draft in the group.
    pub(super) draft: usize,
}

/// The claims of files on resource names, by name.
#[derive(Debug, Default)]
pub(super) struct Claims(BTreeMap<ResourceKey, BTreeSet<Claim>>);

impl Claims {
    pub(super) fn insert(&mut self, key: ResourceKey, claim: Claim) {
        self.0.entry(key).or_default().insert(claim);
    }

    pub(super) fn remove(&mut self, key: &ResourceKey, claim: &Claim) {
        if let Some(claims) = self.0.get_mut(key) {
            claims.remove(claim);
            if claims.is_empty() {
                self.0.remove(key);
            }
        }
    }

    pub(super) fn winner(&self, key: &ResourceKey) -> Option<&Claim> {
        // The least, and not the first that came: the result must not depend on the order of events.
        self.0.get(key).and_then(BTreeSet::first)
    }

    pub(super) fn claimants(&self, key: &ResourceKey) -> impl Iterator<Item = &Claim> {
        self.0.get(key).into_iter().flatten()
    }

    /// Returns all claimed names of a kind, in lower case.
    pub(super) fn names(&self, kind: Kind) -> impl Iterator<Item = &str> {
        let all = self.0.keys().filter(move |key| key.kind == kind);
        all.map(|key| key.name.as_str())
    }

    pub(super) fn exists(&self, key: &ResourceKey) -> bool {
        self.0.contains_key(key)
    }
}

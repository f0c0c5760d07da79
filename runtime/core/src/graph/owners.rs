//! Owners (C15): deleting one deletes the resources that it owns, unless they are handed over.

use std::sync::Arc;

use super::Graph;
use crate::types::index::Slot;
use crate::{OnOwned, OwnedView, Uid};

/// A thing that happens to an owned resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum News {
    /// It has completed otherwise than before, or has left the catalog.
    Changed,
    /// It has used up its attempts.
    Exhausted,
}

impl Graph {
    /// A resource has another owner now, or has come or gone.
    pub(crate) fn set_owner(&mut self, slot: Slot, before: Option<Uid>, after: Option<Uid>) {
        if before == after {
            return;
        }
        if let Some(owner) = before.and_then(|owner| self.slots.find(owner)) {
            self.enqueue(owner); // it may have waited for the commit of what it owns no more
        }
        if let Some(owned) = before.and_then(|owner| self.owned.get_mut(&owner)) {
            // An empty set goes too: uids are never used again, so the map would only grow.
            owned.remove(&slot);
            if owned.is_empty()
                && let Some(owner) = before
            {
                self.owned.remove(&owner);
            }
        }
        if let Some(owner) = after {
            self.owned.entry(owner).or_default().insert(slot);
        }
    }

    /// Returns the owned resources of an owner, if there are any.
    pub(crate) fn owned(&self, owner: Uid) -> Option<&std::collections::BTreeSet<Slot>> {
        self.owned.get(&owner)
    }

    /// Lists the owned resources of an owner, in order.
    pub(crate) fn owned_by(&self, owner: Uid) -> impl Iterator<Item = Slot> + '_ {
        self.owned.get(&owner).into_iter().flatten().copied()
    }

    /// The owner of a resource if its kind has it requested what has happened to that.
    pub(crate) fn owner_to_request(&self, slot: Slot, news: News) -> Option<Slot> {
        let owner = self.slots[slot]
            .row
            .owner
            .and_then(|owner| self.slots.find(owner))?;
        // An owner of itself would request itself with every run.
        let may = owner != slot && self.slots[owner].is_live();
        let asks = |options: &crate::KindOptions| match options.on_owned {
            OnOwned::Nothing => false,
            OnOwned::Exhausted => news == News::Exhausted,
            OnOwned::Changed => true,
        };
        (may && self.options(owner).is_some_and(asks)).then_some(owner)
    }

    /// The resources that this one owns, if its kind is requested what happens to them.
    pub(crate) fn watched_by(&self, slot: Slot) -> impl Iterator<Item = Slot> + '_ {
        let is_told = self
            .options(slot)
            .is_some_and(|it| it.on_owned != OnOwned::Nothing);
        let owner = is_told.then(|| self.slots[slot].row.uid);
        let owned = owner.into_iter().flat_map(|owner| self.owned_by(owner));
        owned.filter(move |owned| *owned != slot)
    }

    /// The same as its invocation sees them, in order of kind, name and uid.
    pub(crate) fn view_owned(&self, slot: Slot) -> Arc<[OwnedView]> {
        let mut owned: Vec<OwnedView> = self
            .watched_by(slot)
            .map(|owned| OwnedView {
                resource: self.slots[owned].row.clone(),
                failed: self.slots[owned].is_failed(),
            })
            .collect();
        if owned.is_empty() {
            return Arc::default(); // needs no memory
        }
        // The set is in the order of slots, which a restart changes. A reconciler sees one order at all times.
        owned.sort_by_cached_key(|view| (view.resource.key(), view.resource.uid));
        owned.into()
    }

    /// Every owner with what it owns.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (Uid, &std::collections::BTreeSet<Slot>)> {
        self.owned.iter().map(|(uid, owned)| (*uid, owned))
    }
}

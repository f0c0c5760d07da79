//! Owners (C15): deleting an owner deletes the resources that it owns, unless they are handed over.

use std::sync::Arc;

use super::Graph;
use crate::types::index::Slot;
use crate::{OnOwned, OwnedView, Uid};

/// Events of an owned resource that its owner may be requested for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum News {
    /// A run completed with another result than before, or the resource left the catalog.
    Changed,
    /// The retry attempts are used up.
    Exhausted,
}

impl Graph {
    /// Updates the index after a resource's owner has changed, or the resource has come or gone.
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

    /// Returns the resources of an owner; none if there are none.
    pub(crate) fn owned(&self, owner: Uid) -> Option<&std::collections::BTreeSet<Slot>> {
        self.owned.get(&owner)
    }

    /// Lists the resources of an owner, in order of slots.
    pub(crate) fn owned_by(&self, owner: Uid) -> impl Iterator<Item = Slot> + '_ {
        self.owned.get(&owner).into_iter().flatten().copied()
    }

    /// Returns the owner of a resource, if the owner's kind wants to be requested for this event.
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

    /// Lists the resources that this one owns, if its kind wants to be requested for their events.
    pub(crate) fn watched_by(&self, slot: Slot) -> impl Iterator<Item = Slot> + '_ {
        let is_told = self
            .options(slot)
            .is_some_and(|it| it.on_owned != OnOwned::Nothing);
        let owner = is_told.then(|| self.slots[slot].row.uid);
        let owned = owner.into_iter().flat_map(|owner| self.owned_by(owner));
        owned.filter(move |owned| *owned != slot)
    }

    /// Returns the owned resources as an invocation sees them, in order of kind, name and uid.
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

    /// Lists every owner with its resources.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (Uid, &std::collections::BTreeSet<Slot>)> {
        self.owned.iter().map(|(uid, owned)| (*uid, owned))
    }
}

//! Owners (C15): deleting one deletes what it owns, unless that is handed over.

use super::Graph;
use crate::Uid;
use crate::types::index::Slot;

impl Graph {
    /// A resource has another owner now, or has come or gone.
    pub(crate) fn set_owner(&mut self, slot: Slot, before: Option<Uid>, after: Option<Uid>) {
        if before == after {
            return;
        }
        if let Some(owned) = before.and_then(|owner| self.owned.get_mut(&owner)) {
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

    /// What a resource owns, if that is anything.
    pub(crate) fn owned(&self, owner: Uid) -> Option<&std::collections::BTreeSet<Slot>> {
        self.owned.get(&owner)
    }

    /// What a resource owns, in order.
    pub(crate) fn owned_by(&self, owner: Uid) -> impl Iterator<Item = Slot> + '_ {
        self.owned.get(&owner).into_iter().flatten().copied()
    }

    /// Whom to tell that an owned resource has used up its attempts: its owner, if the kind of that says so.
    pub(crate) fn owner_to_ask(&self, slot: Slot) -> Option<Slot> {
        let owner = self.slots[slot]
            .row
            .owner
            .and_then(|owner| self.slots.find(owner))?;
        let may = owner != slot && self.slots[owner].is_live();
        let asks = |options: &crate::KindOptions| options.on_owned == crate::OnOwned::Exhausted;
        (may && self.options(owner).is_some_and(asks)).then_some(owner)
    }

    /// Every owner with what it owns.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (Uid, &std::collections::BTreeSet<Slot>)> {
        self.owned.iter().map(|(uid, owned)| (*uid, owned))
    }
}

//! Owners (C15): deleting one deletes what it owns, unless that is handed over.

use std::collections::HashSet;

use crate::batch::plan::{Intent, Intents};
use crate::core::Core;
use crate::resource::Slot;
use crate::{Batch, Change, Key, Refusal, Uid};

impl Core {
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

    /// Adds to a batch the deletes of what its deleted resources own, and what that owns, and so on. One that the
    /// batch gives another owner stays; so does what it says to create again.
    pub(crate) fn cascade(&self, batch: &Batch, intents: &mut Intents) -> Result<(), Refusal> {
        if intents.deleted().next().is_none() {
            return Ok(());
        }
        let created = |edit: &crate::Edit| match &edit.change {
            Change::Create(new) => Some(Key {
                kind: new.kind.clone(),
                name: new.name.clone(),
            }),
            _ => None,
        };
        let created: HashSet<Key> = batch.edits.iter().filter_map(created).collect();
        let goes = |slot: &Slot| !created.contains(&self.slots[*slot].row.key());
        let mut open: Vec<Slot> = intents.deleted().filter(goes).collect();
        while let Some(owner) = open.pop() {
            let uid = self.slots[owner].row.uid;
            for &slot in self.owned.get(&uid).into_iter().flatten() {
                let resource = &self.slots[slot];
                if !resource.is_live() || resource.unreadable().is_some() {
                    continue;
                }
                match intents.stored.get(&slot) {
                    Some(intent) if intent.delete.is_some() || intent.leaves(uid) => continue,
                    Some(_) => return Err(Refusal::Contradiction(resource.row.key())),
                    None => intents.stored.insert(slot, Box::new(Intent::to_delete())),
                };
                if goes(&slot) {
                    open.push(slot);
                }
            }
        }
        Ok(())
    }
}

impl Intents {
    fn deleted(&self) -> impl Iterator<Item = Slot> + '_ {
        let deleted = self.stored.iter().filter(|(_, intent)| intent.delete.is_some());
        deleted.map(|(slot, _)| *slot)
    }
}

impl Intent {
    fn to_delete() -> Self {
        Self {
            delete: Some(false),
            ..Self::default()
        }
    }

    /// Whether it hands the resource over to somebody else.
    fn leaves(&self, owner: Uid) -> bool {
        self.update.owner.is_some_and(|new| new != Some(owner))
    }
}

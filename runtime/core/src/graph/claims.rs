//! Claims on names: holders, users, and the resources that they keep out (the contract's C1 and C6).

use std::collections::BTreeSet;

use super::Graph;
use super::resource::{Life, Running};
use crate::types::index::{NameId, Slot};
use crate::{Cause, Settled, Uid};

impl Graph {
    /// Lists the resources that have a name, or still have to do with it.
    pub(crate) fn claimants(&self, name: NameId) -> Vec<Slot> {
        let entry = &self.names[name];
        entry.others.iter().copied().chain(entry.live).collect()
    }

    /// Returns true if an abandoned invocation keeps this resource from being invoked, by itself or by its names (C1).
    pub(crate) fn kept_out(&self, slot: Slot) -> Option<Settled> {
        // Evaluated with every decision, and an abandoned invocation is rare.
        if self.abandoned == 0 {
            return None;
        }
        let by = |holder: Slot, run: &Running| Settled::Abandoned {
            invocation: run.invocation,
            holder: self.slots[holder].row.uid,
            key: self.slots[holder].row.key(),
        };
        if let Some(run) = self.slots[slot].lifecycle.abandoned() {
            return Some(by(slot, run));
        }
        self.slots[slot].names().find_map(|name| {
            let holders = self.claimants(name).into_iter();
            holders.filter(|holder| *holder != slot).find_map(|holder| {
                match self.slots[holder].lifecycle.abandoned() {
                    // It may still write to whatever bore its names when it began; the present name says nothing about that.
                    Some(run) if run.under.contains(name) => Some(by(holder, run)),
                    _ => None,
                }
            })
        })
    }

    /// A parent that is kept out, or stands below one that is.
    pub(crate) fn below_abandoned(&self, slot: Slot) -> Option<Settled> {
        if self.abandoned == 0 {
            return None;
        }
        self.parents(slot)
            .find_map(|parent| match self.slots[parent].settled() {
                Some(why @ Settled::Abandoned { .. }) => Some(why.clone()),
                _ => None,
            })
    }

    /// Another resource with an invocation that began under one of its names (C1).
    pub(crate) fn user_of_its_names(&self, slot: Slot) -> Option<Slot> {
        self.slots[slot].names().find_map(|name| {
            let entry = &self.names[name];
            let mut claimants = entry.others.iter().copied().chain(entry.live);
            claimants.find(|other| {
                *other != slot
                    && self.slots[*other]
                        .run()
                        .is_some_and(|run| run.under.contains(name))
            })
        })
    }

    /// Returns the holder of its name by a delete or rename that no longer counts (C6).
    pub(crate) fn held_name(&self, slot: Slot) -> Option<Settled> {
        let others = &self.names[self.slots[slot].name].others;
        // Regular work waits for the barrier anyway. What no longer counts there keeps its output under this name, which must
        // not be built over before the delete or rename succeeds.
        let holds = |other: &&Slot| {
            let resource = &self.slots[**other];
            **other != slot && resource.has_op() && resource.life != Life::Gone
        };
        let holder = &self.slots[*others.iter().find(holds)?];
        Some(Settled::WaitingForName {
            holder: holder.row.uid,
            key: holder.row.key(),
        })
    }

    /// Returns the resources that one refers to or is owned by: the deletes of these wait for its own.
    pub(crate) fn delete_targets(&self, slot: Slot) -> Vec<Slot> {
        let resource = &self.slots[slot];
        let owner = resource.row.owner.and_then(|owner| self.slots.find(owner));
        resource
            .links
            .iter()
            .filter_map(|link| self.names[link.name].live)
            .chain(owner)
            .collect()
    }

    pub(crate) fn stored_targets(&self, slot: Slot) -> Vec<Slot> {
        let row = &self.slots[slot].row;
        let names = row.refs.iter().filter_map(|to| self.name_id(&to.kind, &to.name));
        let deleted = names.flat_map(|name| self.names[name].others.iter().copied());
        deleted
            .chain(row.owner.and_then(|owner| self.slots.find(owner)))
            .collect()
    }

    /// Makes the claims of a resource fit its rename mark. Gives back the names that it gave up.
    pub(crate) fn claim_former_names(&mut self, slot: Slot) -> Vec<NameId> {
        let resource = &self.slots[slot];
        if !resource.row.intents.is_renamed() && resource.claims.is_empty() {
            return Vec::new();
        }
        let (kind, name, row) = (resource.kind, resource.name, resource.row.clone());
        let mut claims = BTreeSet::new();
        for former in row.intents.former_names.iter() {
            let id = self.names.intern(kind, former);
            // Renamed back: the name is its own again and needs no claim.
            if id != name {
                claims.insert(id);
            }
        }
        let before = std::mem::replace(&mut self.slots[slot].claims, claims.iter().copied().collect());
        for id in &claims {
            self.names.claim(*id, slot);
        }
        before.iter().copied().filter(|id| !claims.contains(id)).collect()
    }

    /// Takes a resource out of the claimants of a name. Gives back the live resource of that name with the cause, to be
    /// told of it; in the middle of a batch that is kept for its end, for names and edges are in pieces.
    pub(crate) fn give_up(&mut self, name: NameId, slot: Slot) -> Option<(Slot, Cause)> {
        self.names.unclaim(name, slot);
        // Before the name is released, which forgets it if nobody else has to do with it.
        let told = self.offer(name, slot);
        self.names.release(name);
        told
    }

    /// The same for a claim that stays and holds nobody back any more.
    pub(crate) fn offer(&mut self, name: NameId, slot: Slot) -> Option<(Slot, Cause)> {
        let cause = self.cause_of(slot);
        let live = self.names[name].live;
        let told = self.names.give_up_later(name, cause);
        Some((live?, told?))
    }

    /// The names of a resource, without those under which its invocation began.
    pub(crate) fn names_without_a_run(&self, slot: Slot) -> Vec<NameId> {
        let resource = &self.slots[slot];
        let under = resource.unreturned().map(Running::under);
        let is_free = |name: &NameId| !under.is_some_and(|under| under.contains(*name));
        resource.names().filter(is_free).collect()
    }

    /// Keeps every name until the batch is whole.
    pub(crate) fn begin_batch(&mut self) {
        self.names.keep_all();
    }

    /// The live resources of names that were given up during the batch, with the causes.
    pub(crate) fn take_freed(&mut self) -> Vec<(Slot, Cause)> {
        let given_up = self.names.take_given_up().into_iter();
        given_up
            .filter_map(|(name, cause)| Some((self.names[name].live?, cause)))
            .collect()
    }

    /// The batch is whole: names that nothing has to do with any more are forgotten.
    pub(crate) fn end_batch(&mut self) {
        self.names.forget_unused();
    }

    /// Forgets a name, if nothing has to do with it any more.
    pub(crate) fn release_name(&mut self, name: NameId) {
        self.names.release(name);
    }

    /// Has a resource that is not live claim the name that it had.
    pub(crate) fn claim(&mut self, slot: Slot) {
        self.names.claim(self.slots[slot].name, slot);
    }

    /// Takes back the claim on the name that a resource is to have again.
    pub(crate) fn unclaim(&mut self, slot: Slot) {
        self.names.unclaim(self.slots[slot].name, slot);
    }

    /// The live resource of a name.
    pub(crate) fn live(&self, name: NameId) -> Option<Slot> {
        self.names[name].live
    }

    /// The uid of the live resource of a name.
    pub(crate) fn live_uid(&self, name: NameId) -> Option<Uid> {
        self.names[name].live.map(|live| self.slots[live].row.uid)
    }

    /// Returns true if a resource is the live one of its name.
    pub(crate) fn is_bound(&self, slot: Slot) -> bool {
        self.names[self.slots[slot].name].live == Some(slot)
    }

    /// Returns the resources that refer to a name, in order.
    pub(crate) fn referrers(&self, name: NameId) -> BTreeSet<Slot> {
        self.names[name]
            .referrers
            .iter()
            .map(|referrer| referrer.slot)
            .collect()
    }

    /// Considers again everything that waited for an invocation of `slot` to be out of the way of a name.
    pub(crate) fn wake_claimants(&mut self, name: NameId, slot: Slot) {
        let mut index = 0;
        while let Some(other) = self.names[name].others.get(index).copied() {
            index += 1;
            if other != slot {
                self.enqueue(other);
            }
        }
        if let Some(live) = self.names[name].live.filter(|live| *live != slot) {
            self.enqueue(live);
        }
    }
}

//! Claims on names: holders, users, and the resources that they keep out (the contract's C1 and C6).

use std::collections::BTreeSet;

use super::Graph;
use super::resource::{Life, Running};
use crate::types::index::{NameId, Slot};
use crate::{Cause, Settled, Uid};

impl Graph {
    /// Lists the resources that have or claim a name.
    pub(crate) fn claimants(&self, name: NameId) -> Vec<Slot> {
        let entry = &self.names[name];
        entry.others.iter().copied().chain(entry.live).collect()
    }

    /// Returns the abandoned invocation that keeps this resource from running, by itself or through a name (C1).
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

    /// Returns the abandoned invocation that keeps a parent out, directly or from further above.
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

    /// Finds another resource whose invocation began under one of this resource's names (C1).
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

    /// Returns the holder of this resource's name: a resource whose delete or rename is unfinished (C6).
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

    /// Lists the resources that this one refers to or is owned by: their deletes wait for its delete.
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

    /// Updates the claims of a resource to its rename intent. Returns the names that it no longer claims.
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

    /// Removes a resource's claim on a name. Returns the live resource to request for that, with the cause; none within
    /// a batch, which requests it at its end.
    pub(crate) fn give_up(&mut self, name: NameId, slot: Slot) -> Option<(Slot, Cause)> {
        self.names.unclaim(name, slot);
        // Before the name is released, which forgets it if nobody else has to do with it.
        let told = self.offer(name, slot);
        self.names.release(name);
        told
    }

    /// Like [`give_up`](Self::give_up) for a claim that stays but no longer blocks others.
    pub(crate) fn offer(&mut self, name: NameId, slot: Slot) -> Option<(Slot, Cause)> {
        let cause = self.cause_of(slot);
        let live = self.names[name].live;
        let told = self.names.give_up_later(name, cause);
        Some((live?, told?))
    }

    /// Lists the names of a resource, except those under which its running invocation began.
    pub(crate) fn names_without_a_run(&self, slot: Slot) -> Vec<NameId> {
        let resource = &self.slots[slot];
        let under = resource.unreturned().map(Running::under);
        let is_free = |name: &NameId| !under.is_some_and(|under| under.contains(*name));
        resource.names().filter(is_free).collect()
    }

    /// Keeps unused names until [`end_batch`](Self::end_batch).
    pub(crate) fn begin_batch(&mut self) {
        self.names.keep_all();
    }

    /// Takes the live resources of names released during the batch, with the causes.
    pub(crate) fn take_freed(&mut self) -> Vec<(Slot, Cause)> {
        let given_up = self.names.take_given_up().into_iter();
        given_up
            .filter_map(|(name, cause)| Some((self.names[name].live?, cause)))
            .collect()
    }

    /// Removes the names that became unused during the batch.
    pub(crate) fn end_batch(&mut self) {
        self.names.forget_unused();
    }

    /// Removes a name if nothing has, claims or refers to it.
    pub(crate) fn release_name(&mut self, name: NameId) {
        self.names.release(name);
    }

    /// Adds the claim of a resource that is no longer live to its name.
    pub(crate) fn claim(&mut self, slot: Slot) {
        self.names.claim(self.slots[slot].name, slot);
    }

    /// Removes the claim of a resource to its own name, before that is bound again.
    pub(crate) fn unclaim(&mut self, slot: Slot) {
        self.names.unclaim(self.slots[slot].name, slot);
    }

    /// Returns the live resource that has a name; none if only others claim it.
    pub(crate) fn live(&self, name: NameId) -> Option<Slot> {
        self.names[name].live
    }

    /// Returns the uid of the live resource of a name.
    pub(crate) fn live_uid(&self, name: NameId) -> Option<Uid> {
        self.names[name].live.map(|live| self.slots[live].row.uid)
    }

    /// Returns true if a resource is the live one of its name.
    pub(crate) fn is_bound(&self, slot: Slot) -> bool {
        self.names[self.slots[slot].name].live == Some(slot)
    }

    /// Returns the resources that refer to a name, in order of slots.
    pub(crate) fn referrers(&self, name: NameId) -> BTreeSet<Slot> {
        self.names[name]
            .referrers
            .iter()
            .map(|referrer| referrer.slot)
            .collect()
    }

    /// Evaluates every resource that waited for an invocation of `slot` to release a name.
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

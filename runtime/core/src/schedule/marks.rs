//! Unfinished deletes and renames: in which order they run, and which names they keep.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::core::Core;
use crate::graph::components::components;
use crate::graph::index_u32;
use crate::resource::lifecycle::Event;
use crate::resource::{Life, NameId, Slot};
use crate::timers::Timer;
use crate::timers::backoff::backoff;
use crate::{Reason, Settled, Uid, Why};

/// The first wait after a failed delete or rename.
const RETRY_BASE: Duration = Duration::from_secs(1);
/// The longest such wait.
const RETRY_CAP: Duration = Duration::from_secs(300);

/// How long after its n-th failure in a row a delete or rename is tried again: 1 s doubling to 5 min.
pub(crate) fn op_backoff(attempts: u32) -> Duration {
    backoff(RETRY_BASE, RETRY_CAP, attempts)
}

/// Which deletes wait for the delete of a resource.
pub(crate) type DeleteOrder = HashMap<Slot, Vec<(Slot, Uid)>>;

impl Core {
    /// Makes the claims of a resource fit its rename mark, and wakes what waited for a name that it gave up.
    pub(crate) fn claim_former_names(&mut self, slot: Slot) {
        let resource = &self.slots[slot];
        if !resource.row.marks.is_renamed() && resource.claims.is_empty() {
            return;
        }
        let (kind, name, row) = (resource.kind, resource.name, resource.row.clone());
        let mut claims = BTreeSet::new();
        for former in row.marks.former_names.iter() {
            let id = self.names.intern(kind, former);
            if id != name {
                claims.insert(id);
            }
        }
        let before = std::mem::replace(&mut self.slots[slot].claims, claims.iter().copied().collect());
        for id in &claims {
            self.names.claim(*id, slot);
        }
        for id in before.iter().copied().filter(|id| !claims.contains(id)) {
            self.give_up(id, slot);
        }
    }

    /// Takes a resource out of the claimants of a name, and has the one that waits for that considered; in the
    /// middle of a batch, when names and edges are in pieces, only once the batch is whole.
    pub(crate) fn give_up(&mut self, name: NameId, slot: Slot) {
        self.names.unclaim(name, slot);
        let row = &self.slots[slot].row;
        let cause = crate::Cause::Resource {
            uid: row.uid,
            key: row.key(),
        };
        if let Some(cause) = self.names.give_up_later(name, cause) {
            self.wake_for_name(name, cause);
        }
        self.names.release(name);
    }

    /// Asks for the resource that waits for a name, if nothing holds that any more.
    fn wake_for_name(&mut self, name: NameId, cause: crate::Cause) {
        let Some(live) = self.names[name].live else {
            return;
        };
        let waits = matches!(self.slots[live].settled(), Some(Settled::WaitingForName { .. }));
        if waits && self.held_name(live).is_none() {
            self.ask(live, &Arc::new(Reason::because(Why::Recovered, cause)));
        } else {
            self.enqueue(live);
        }
    }

    /// The batch is whole: whoever waits for a name that was given up meanwhile is asked for.
    pub(crate) fn wake_for_freed_names(&mut self) {
        for (name, cause) in self.names.take_given_up() {
            if let Some(live) = self.names[name].live {
                self.slots[live].hold = self.revision;
            }
            self.wake_for_name(name, cause);
        }
    }

    /// Which deletes have to wait for these new ones: those of what they refer to or are owned by. Deletes that
    /// would wait for one another in a circle don't.
    pub(crate) fn order_deletes(&mut self, deleted: &[(Slot, Vec<Slot>)]) {
        let index_of: HashMap<Slot, u32> = deleted
            .iter()
            .enumerate()
            .map(|(index, (slot, _))| (*slot, index_u32(index)))
            .collect();
        let edges: Vec<Vec<u32>> = deleted
            .iter()
            .map(|(_, targets)| {
                targets
                    .iter()
                    .filter_map(|target| index_of.get(target).copied())
                    .collect()
            })
            .collect();
        let component = components(&edges);
        let mut of_old = Vec::new();
        for (index, (slot, targets)) in deleted.iter().enumerate() {
            let in_circle = |target: &Slot| {
                let other = index_of.get(target);
                other.is_some_and(|other| component[*other as usize] == component[index])
            };
            let targets: BTreeSet<Slot> = targets.iter().copied().collect();
            for target in targets
                .into_iter()
                .filter(|target| target != slot && !in_circle(target))
            {
                if self.slots[target].life == Life::Deleted {
                    of_old.push((*slot, target));
                } else {
                    self.delay_delete(*slot, target);
                }
            }
        }
        for (slot, target) in of_old {
            if !self.delays(target, slot) {
                self.delay_delete(slot, target);
            }
        }
    }

    /// The delete of `target`, now or to come, waits for that of `slot`.
    fn delay_delete(&mut self, slot: Slot, target: Slot) {
        self.slots[target].extra_mut().delete_waits += 1;
        let uid = self.slots[target].row.uid;
        self.barrier
            .delete_order
            .entry(slot)
            .or_default()
            .push((target, uid));
    }

    /// Whether the delete of `last` waits for that of `first` already, directly or through others.
    fn delays(&self, first: Slot, last: Slot) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![first]);
        while let Some(slot) = open.pop() {
            if slot == last {
                return true;
            }
            if seen.insert(slot) {
                let waiting = self.barrier.delete_order.get(&slot).into_iter().flatten();
                open.extend(waiting.map(|(target, _)| *target));
            }
        }
        false
    }

    /// The delete of `slot` is done, failed, or has been waited for long enough.
    pub(crate) fn release_delete_waits(&mut self, slot: Slot) {
        for (target, uid) in self.barrier.delete_order.remove(&slot).unwrap_or_default() {
            let waiting = self
                .slots
                .get_mut(target)
                .filter(|resource| resource.row.uid == uid);
            if let Some(resource) = waiting {
                resource.extra_mut().delete_waits -= 1;
                self.enqueue(target);
            }
        }
    }

    /// What a resource refers to or is owned by: the deletes of these wait for its own.
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

    /// It is time to try a failed delete or rename again.
    pub(crate) fn op_retry_is_due(&mut self, slot: Slot) {
        let deferred = self.slots[slot].is_live() && self.defer(slot, Timer::OpRetry(slot));
        if !deferred {
            self.retry_op(slot);
        }
    }

    /// A failed delete or rename is tried again.
    pub(crate) fn retry_op(&mut self, slot: Slot) {
        self.rearm(slot);
        let reason = self.reason_to_retry(slot);
        match self.slots[slot].life {
            Life::Live => self.ask(slot, &reason),
            Life::Deleted if !self.slots[slot].is_unsettled() => self.set_pending(slot, reason),
            Life::Deleted | Life::Gone => {}
        }
    }

    /// Takes a resource out of the catalog. Its edges are out of the counts already unless it is live no more.
    pub(crate) fn remove(&mut self, slot: Slot) {
        self.slots[slot].life = Life::Gone;
        self.set_owner(slot, self.slots[slot].row.owner, None);
        self.end_op(slot);
        self.release_delete_waits(slot);
        self.clear_times(slot);
        self.write_removal(slot);
        self.on_settled(slot);
        self.on(slot, Event::Removed);
        if self.slots[slot].unreturned().is_some() {
            // Nothing else runs under its name until its invocation has returned.
            let name = self.slots[slot].name;
            return self.names.claim(name, slot);
        }
        self.forget(slot);
    }

    /// Gives up the names of a gone resource whose invocation has returned, and its slot.
    pub(crate) fn forget(&mut self, slot: Slot) {
        let names: Vec<NameId> = self.slots[slot].names().collect();
        for name in names {
            self.give_up(name, slot);
        }
        self.slots.remove(slot);
    }
}

//! Retries of deletes and renames, and the removal of resources from the catalog.

use super::Core;
use crate::graph::lifecycle::Event;
use crate::graph::resource::Life;
use crate::schedule::barrier::rearm;
use crate::timers::Timer;
use crate::types::index::{NameId, Slot};

impl Core {
    /// Handles the due retry of a failed delete or rename.
    pub(super) fn op_retry_is_due(&mut self, slot: Slot) {
        let deferred = self.graph[slot].is_live() && self.defer(slot, Timer::OpRetry(slot));
        if !deferred {
            self.retry_op(slot);
        }
    }

    /// Retries a failed delete or rename.
    pub(super) fn retry_op(&mut self, slot: Slot) {
        rearm(&mut self.graph, &mut self.timers, slot);
        let reason = self.graph.reason_to_retry(slot);
        match self.graph[slot].life() {
            Life::Live => self.request(slot, &reason),
            Life::Deleted if !self.graph[slot].is_unsettled() => self.set_pending(slot, reason),
            Life::Deleted | Life::Gone => {}
        }
    }

    /// Removes a resource from the catalog. If it is not live, its edges are no longer counted.
    pub(super) fn remove(&mut self, slot: Slot) {
        // First of all: those who wait for it are told below, by its life, that it is deleted.
        self.graph[slot].set_life(Life::Gone);
        let owner = self.graph[slot].row().owner;
        self.graph.set_owner(slot, owner, None);
        self.end_op(slot);
        self.barrier.release_delete_waits(&mut self.graph, slot);
        self.clear_times(slot);
        self.journal.write_removal(&mut self.graph, slot);
        self.on_settled(slot);
        self.on(slot, Event::Removed);
        if self.graph[slot].unreturned().is_none() {
            return self.forget(slot);
        }
        // Nothing else runs under the names of its invocation until that has returned; its other names are free.
        self.graph.claim(slot);
        for name in self.graph.names_without_a_run(slot) {
            if let Some((live, cause)) = self.graph.offer(name, slot) {
                self.wake_for_name(live, cause);
            }
        }
    }

    /// Releases the names and the slot of a removed resource whose invocation has returned.
    pub(super) fn forget(&mut self, slot: Slot) {
        let names: Vec<NameId> = self.graph[slot].names().collect();
        for name in names {
            self.give_up(name, slot);
        }
        self.graph.remove(slot);
    }
}

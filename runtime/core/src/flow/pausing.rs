//! Pausing (C19): nothing is cancelled, and no further reconcile starts; deletes and renames do.

use std::sync::Arc;

use crate::core::Core;
use crate::resource::Slot;
use crate::{Cause, Reason, Why};

impl Core {
    pub(crate) fn pause(&mut self, slot: Slot) {
        if !self.slots[slot].row.paused {
            self.write(slot, |row| row.paused = true);
            self.enqueue(slot);
        }
    }

    /// What asked for it meanwhile counts as one request.
    pub(crate) fn resume(&mut self, slot: Slot, cause: Cause) {
        if !self.slots[slot].row.paused {
            return;
        }
        self.write(slot, |row| row.paused = false);
        let asked = std::mem::take(&mut self.slots[slot].extra_mut().missed);
        if asked {
            self.ask(slot, &Arc::new(Reason::because(Why::Recovered, cause)));
        }
    }

    /// Whether it may not be reconciled now because it is paused.
    pub(crate) fn is_held_by_pause(&self, slot: Slot) -> bool {
        let resource = &self.slots[slot];
        resource.row.paused && !resource.extra().forced
    }
}

//! Pausing (C19): nothing is cancelled, and no further reconcile starts. Deletes and renames do.

use std::sync::Arc;

use super::Core;
use crate::Reason;
use crate::types::index::Slot;

impl Core {
    pub(super) fn pause(&mut self, slot: Slot) {
        if !self.graph[slot].row().paused {
            self.write(slot, |row| row.paused = true);
            self.graph.enqueue(slot);
        }
    }

    /// Resumes a resource. All requests during the pause count as one.
    pub(super) fn resume(&mut self, slot: Slot, reason: Reason) {
        if !self.graph[slot].row().paused {
            return;
        }
        self.write(slot, |row| row.paused = false);
        if let Some(missed) = self.graph[slot].set_missed(None) {
            self.request(slot, &Arc::new(reason.after(Some(missed))));
        }
    }
}

//! No-op runs: those that found nothing to do and saw what the run before saw. They are status, not stored.
//!
//! A check that changes nothing must not cost a write, or a catalog that is merely started writes every row. The last
//! no-op run stands beside the row until the row is written for another reason; a restart forgets it, and asks for the
//! resource again in any case.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::types::index::Slot;
use crate::{NoOpRun, QuickHash, Revision, Uid};

/// No-op runs that readers have not been shown. Each waits for the changes before it to be durable, as every other end
/// does, so that ends show in the order in which they came.
#[derive(Clone, Default, Debug)]
pub(crate) struct Untold(VecDeque<(Revision, Slot, Arc<NoOpRun>)>);

/// Those of them that may be shown now.
pub(crate) struct Shown(HashMap<Slot, Arc<NoOpRun>, QuickHash>);

impl Untold {
    pub(crate) fn push(&mut self, after: Revision, slot: Slot, run: Arc<NoOpRun>) {
        self.0.push_back((after, slot, run));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes those that may be shown once this revision is durable: the last one of each resource, which says how many
    /// there were.
    pub(crate) fn take(&mut self, durable: Revision) -> Shown {
        let count = self.0.partition_point(|(after, _, _)| *after <= durable);
        Shown(self.0.drain(..count).map(|(_, slot, run)| (slot, run)).collect())
    }
}

impl Shown {
    /// The run of this resource.
    pub(crate) fn remove(&mut self, slot: Slot, uid: Uid) -> Option<Arc<NoOpRun>> {
        if self.0.is_empty() {
            return None;
        }
        // The slot may have been taken over by another resource.
        self.0.remove(&slot).filter(|run| run.uid == uid)
    }

    /// Those that are left, in order.
    pub(crate) fn rest(self) -> Vec<(Slot, Arc<NoOpRun>)> {
        let mut rest: Vec<_> = self.0.into_iter().collect();
        rest.sort_unstable_by_key(|(slot, _)| *slot);
        rest
    }
}

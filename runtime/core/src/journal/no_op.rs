//! No-op runs, which found nothing to do and saw the same inputs as the run before. They are shown as status and never
//! stored.
//!
//! A check that changes nothing must not cost a write, or a catalog that is merely started writes every row. The last
//! no-op run stands beside the row until the row is written for another reason; a restart forgets it, and requests the
//! resource again in any case.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::types::index::Slot;
use crate::{NoOpRun, Revision, Uid};

/// Unpublished no-op runs. Each waits until all changes before it are durable, so that runs appear in the order in
/// which they ended.
#[derive(Clone, Default, Debug)]
pub(crate) struct Untold(VecDeque<(Revision, Slot, Arc<NoOpRun>)>);

/// No-op runs that may be published, by slot. Each can be taken once.
pub(crate) struct Shown(Vec<(Slot, Option<Arc<NoOpRun>>)>);

impl Untold {
    pub(crate) fn push(&mut self, after: Revision, slot: Slot, run: Arc<NoOpRun>) {
        self.0.push_back((after, slot, run));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes the no-op runs that may be published once this revision is durable: only the last of each resource, which
    /// has the count of all.
    pub(crate) fn take(&mut self, durable: Revision) -> Shown {
        let count = self.0.partition_point(|(after, _, _)| *after <= durable);
        // The newest first, so that it is the one that stays of its slot.
        let runs = self.0.drain(..count).rev();
        let mut shown: Vec<_> = runs.map(|(_, slot, run)| (slot, Some(run))).collect();
        // A stable sort: the newest run of a slot stays in front of its older ones.
        shown.sort_by_key(|(slot, _)| *slot);
        shown.dedup_by_key(|(slot, _)| *slot);
        Shown(shown)
    }
}

impl Shown {
    /// Takes the run of this resource.
    pub(crate) fn remove(&mut self, slot: Slot, uid: Uid) -> Option<Arc<NoOpRun>> {
        let found = self.0.binary_search_by_key(&slot, |(of, _)| *of).ok()?;
        let (_, run) = self.0.get_mut(found)?;
        // The slot may have been taken over by another resource.
        run.take().filter(|run| run.uid == uid)
    }

    /// Returns the remaining runs, in order of slots.
    pub(crate) fn rest(self) -> impl Iterator<Item = (Slot, Arc<NoOpRun>)> {
        self.0.into_iter().filter_map(|(slot, run)| Some((slot, run?)))
    }
}

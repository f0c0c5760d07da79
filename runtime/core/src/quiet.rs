//! Quiet runs: those that found nothing to do and saw what the one before saw. They are counted and shown, and not
//! stored.
//!
//! A look that changes nothing must not cost a write, or a catalog that is merely started writes every row. What such
//! a run leaves stands beside the row until the row is written for another reason; a restart forgets it, and asks for
//! the resource again in any case.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::core::Core;
use crate::resource::{Running, Slot};
use crate::{
    Epoch, InvocationId, LastRun, Outcome, Phase, Reason, Revision, Row, RunResult, Seen, Timestamp, Uid,
    Work,
};

/// The last run of a resource, where it found nothing to do.
///
/// ```
/// use std::sync::Arc;
/// use watershed_core::{Epoch, InvocationId, QuietRun, Reason, RunResult, Timestamp, Uid, Why, Work};
///
/// let quiet = QuietRun {
///     uid: Uid(uuid::Uuid::from_u128(1)),
///     id: InvocationId(5),
///     epoch: Epoch(2),
///     reason: Arc::new(Reason::bare(Why::Resync)),
///     started_at: Timestamp(1_000),
///     ended_at: Timestamp(1_020),
///     work: Work::Checked,
///     runs_total: 3,
/// };
/// assert_eq!(quiet.as_last_run(None).result, RunResult::Done(Work::Checked));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct QuietRun {
    /// Whose.
    pub uid: Uid,
    /// Its number, unique together with the epoch.
    pub id: InvocationId,
    /// The epoch that it ran under.
    pub epoch: Epoch,
    /// Why it ran.
    pub reason: Arc<Reason>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it returned.
    pub ended_at: Timestamp,
    /// Whether it looked.
    pub work: Work,
    /// How often the resource has run, this time included.
    pub runs_total: u64,
}

impl QuietRun {
    /// Whether a row knows of a later run, or of this one.
    pub fn is_in(&self, row: &Row) -> bool {
        let last = row.last_run.as_ref().map(|run| (run.epoch, run.id));
        last >= Some((self.epoch, self.id))
    }

    /// Writes down the run in a row that does not know of it.
    pub fn show_in(&self, row: &mut Row) {
        let seen = row.last_run.as_ref().and_then(|run| run.seen.clone());
        row.runs_total = self.runs_total;
        row.last_success = Some(self.ended_at);
        row.last_run = Some(Arc::new(self.as_last_run(seen)));
    }

    /// The same as a row tells it; `seen` is what the last stored reconcile saw, and so did this one.
    pub fn as_last_run(&self, seen: Option<Seen>) -> LastRun {
        LastRun {
            id: self.id,
            epoch: self.epoch,
            phase: Phase::Reconcile,
            reason: self.reason.clone(),
            started_at: self.started_at,
            ended_at: self.ended_at,
            result: RunResult::Done(self.work),
            seen,
        }
    }
}

/// Quiet runs that readers have not been told of. Each waits for the changes before it to be durable, as every other
/// end does, so that ends are told in the order in which they came.
#[derive(Clone, Default, Debug)]
pub(crate) struct Untold(VecDeque<(Revision, Arc<QuietRun>)>);

impl Untold {
    pub(crate) fn push(&mut self, after: Revision, run: Arc<QuietRun>) {
        self.0.push_back((after, run));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Those that may be told once this revision is durable.
    pub(crate) fn take(&mut self, durable: Revision) -> Vec<Arc<QuietRun>> {
        let count = self.0.partition_point(|(after, _)| *after <= durable);
        self.0.drain(..count).map(|(_, run)| run).collect()
    }
}

impl Core {
    /// Counts a completed reconcile that leaves its row as it is; false if it does not.
    pub(crate) fn count_quiet(&mut self, slot: Slot, run: &Running, outcome: Outcome) -> bool {
        if !self.is_quiet(slot, run, outcome) {
            return false;
        }
        let resource = &mut self.slots[slot];
        let before = resource.quiet.as_ref().map(|quiet| quiet.runs_total);
        let quiet = Arc::new(QuietRun {
            uid: resource.row.uid,
            id: run.invocation,
            epoch: self.epoch,
            reason: run.reason.clone(),
            started_at: run.started_at,
            ended_at: self.now.wall,
            work: outcome.work,
            runs_total: before.unwrap_or(resource.row.runs_total) + 1,
        });
        resource.quiet = Some(quiet.clone());
        self.commits.tell_later(self.revision, quiet);
        true
    }

    fn is_quiet(&self, slot: Slot, run: &Running, outcome: Outcome) -> bool {
        let resource = &self.slots[slot];
        let row = &resource.row;
        let finds_nothing = matches!(outcome.work, Work::None | Work::Checked) && outcome.retrigger.is_none();
        let is_sound = row.error.is_none() && row.attempts == 0 && resource.unreadable().is_none();
        let was_timed = row.next_reconcile.is_some() || resource.extra().retrigger.is_some();
        let sees_the_same = row.last_run.as_ref().is_some_and(|last| {
            last.phase == Phase::Reconcile
                && matches!(last.result, RunResult::Done(_))
                && last.seen == run.seen
        });
        finds_nothing && is_sound && !was_timed && sees_the_same
    }
}

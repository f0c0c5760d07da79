//! The last run of a resource, if it was a no-op.

use std::sync::Arc;

use crate::{
    Epoch, InvocationId, LastRun, ObservedInputs, Phase, Reason, Row, RunResult, StateVersion, Timestamp,
    Uid, Work,
};

/// The last run of a resource, where it found nothing to do.
#[derive(Clone, PartialEq, Debug)]
pub struct NoOpRun {
    /// The resource that ran.
    pub uid: Uid,
    /// Its number, unique together with the epoch.
    pub id: InvocationId,
    /// The epoch that it ran under.
    pub epoch: Epoch,
    /// The reason why it ran.
    pub reason: Arc<Reason>,
    /// The time at which it started.
    pub started_at: Timestamp,
    /// The time at which it returned.
    pub ended_at: Timestamp,
    /// The work: nothing, or a check.
    pub work: Work,
    /// The number of times that the resource has run, this time included.
    pub runs_total: u64,
}

impl NoOpRun {
    /// Returns true if a row knows of a later run, or of this one.
    pub fn is_in(&self, row: &Row) -> bool {
        let last = row.last_run.as_ref().map(|run| (run.epoch, run.id));
        last >= Some((self.epoch, self.id))
    }

    /// Writes down the run in a row that does not know of it.
    pub fn show_in(&self, row: &mut Row) {
        let last = row.last_run.as_deref();
        let seen = last.and_then(|run| run.seen.clone());
        row.runs_total = self.runs_total;
        row.last_success = Some(self.ended_at);
        row.last_run = Some(Arc::new(LastRun {
            requeue_after: last.and_then(|run| run.requeue_after),
            ..self.as_last_run(seen, row.state_version)
        }));
    }

    /// The same as a row tells it; `seen` is what the last stored reconcile saw, and so did this one.
    pub fn as_last_run(&self, seen: Option<ObservedInputs>, state_version: StateVersion) -> LastRun {
        LastRun {
            id: self.id,
            epoch: self.epoch,
            phase: Phase::Reconcile,
            reason: self.reason.clone(),
            started_at: self.started_at,
            ended_at: self.ended_at,
            result: RunResult::Done(self.work),
            seen,
            state_version,
            failed: false,
            repeats: None,
            requeue_after: None,
        }
    }
}

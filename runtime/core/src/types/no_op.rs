//! The last run of a resource, if it was a no-op.

use std::sync::Arc;

use crate::{
    Epoch, InvocationId, LastRun, ObservedInputs, Phase, Reason, Row, RunResult, StateVersion, Timestamp,
    Uid, Work,
};

/// The last run of a resource, which found nothing to do.
#[derive(Clone, PartialEq, Debug)]
pub struct NoOpRun {
    /// Uid of the resource that ran.
    pub uid: Uid,
    /// Id of the invocation, unique within its epoch.
    pub id: InvocationId,
    /// Epoch under which the run acted.
    pub epoch: Epoch,
    /// Reason why the invocation ran.
    pub reason: Arc<Reason>,
    /// Time at which the run started.
    pub started_at: Timestamp,
    /// Time at which the invocation returned.
    pub ended_at: Timestamp,
    /// Work of the run: none, or a check.
    pub work: Work,
    /// Number of runs of the resource so far, this one included.
    pub runs_total: u64,
}

impl NoOpRun {
    /// Returns true if a row already shows this run or a later one.
    pub fn is_in(&self, row: &Row) -> bool {
        let last = row.last_run.as_ref().map(|run| (run.epoch, run.id));
        last >= Some((self.epoch, self.id))
    }

    /// Writes the run to a row that does not show it yet.
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

    /// Returns the run as a row would store it. `seen` are the inputs of the last stored reconcile, which were the
    /// same.
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

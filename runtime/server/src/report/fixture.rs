//! Rows for tests.

use std::sync::Arc;

use watershed_core::{
    Epoch, Error, ErrorKind, InvocationId, LastRun, ObservedInputs, Phase, Reason, Ref, Refreshes, Revision,
    Row, RunResult, SpecVersion, StateVersion, Timestamp, Trigger, Uid, Work,
};

use super::Entry;

/// Returns a model with refs that was built.
pub(crate) fn model(name: &str, refs: &[&str]) -> Row {
    let uid = Uid(uuid::Uuid::from_u128(
        name.bytes().fold(7, |sum, byte| sum * 31 + u128::from(byte)),
    ));
    Row {
        refs: refs.iter().map(|name| Ref::completed("model", *name)).collect(),
        paths: [Arc::from(format!("models/{name}.sql"))].into(),
        revision: Revision(1),
        spec_version: SpecVersion(1),
        state_version: StateVersion(1),
        spec_format: 1,
        state_format: 1,
        runs_total: 1,
        last_run: Some(Arc::new(run(1, RunResult::Done(Work::Built)))),
        last_success: Some(Timestamp(10)),
        ..Row::new(uid, "model", name)
    }
}

/// Returns a run with a number, in epoch 1, that saw spec version 1.
pub(crate) fn run(id: u64, result: RunResult) -> LastRun {
    LastRun {
        id: InvocationId(id),
        epoch: Epoch(1),
        phase: Phase::Reconcile,
        reason: Arc::new(Reason::bare(Trigger::Created)),
        started_at: Timestamp(0),
        ended_at: Timestamp(12),
        result,
        seen: Some(ObservedInputs {
            spec_version: SpecVersion(1),
            refreshes: Refreshes::default(),
            formats: (1, 1),
            refs: Arc::default(),
        }),
        state_version: StateVersion(1),
        failed: result == RunResult::Failed,
        repeats: None,
        requeue_after: None,
    }
}

/// Returns the row with an error of its own.
pub(crate) fn failed(row: Row) -> Row {
    let error = Error::permanent("unknown-column", "there is no column \"x\"");
    let last_run = Some(Arc::new(run(1, RunResult::Failed)));
    Row {
        error: Some(Arc::new(error)),
        last_run,
        last_success: None,
        ..row
    }
}

/// Returns the row, blocked by a failed ref.
pub(crate) fn blocked(row: Row, by: &str) -> Row {
    let kind = ErrorKind::Dependency(Ref::completed("model", by));
    let error = Error::new(kind, "blocked", "a ref has failed");
    Row {
        error: Some(Arc::new(error)),
        last_run: Some(Arc::new(run(1, RunResult::Failed))),
        ..row
    }
}

/// Returns the entry of a settled row.
pub(crate) fn entry(row: Row) -> Entry {
    Entry::at_rest(Arc::new(row))
}

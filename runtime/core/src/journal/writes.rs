//! Changes of rows, and the history of runs.

use std::sync::Arc;
use std::time::Duration;

use super::Journal;
use crate::graph::Graph;
use crate::graph::cycles::CYCLE_CODE;
use crate::graph::resource::{Resource, Running};
use crate::types::index::Slot;
use crate::{
    Epoch, Error, HistoryRow, InvocationId, LastRun, NoOpRun, ObservedInputs, Outcome, Phase, Reason,
    Removed, Repeats, Revision, Row, RunResult, Timestamp, Work,
};

impl Journal {
    /// Returns the revision of the present input's changes, a new one at the first change.
    pub(crate) fn change(&mut self) -> Revision {
        if std::mem::take(&mut self.fresh) {
            self.revision = self.revision.next();
        }
        self.revision
    }

    /// Changes the row of a resource. Readers keep their version.
    pub(crate) fn write(
        &mut self,
        graph: &mut Graph,
        now: Timestamp,
        slot: Slot,
        change: impl FnOnce(&mut Row),
    ) {
        if graph[slot].unreadable().is_some() {
            return; // kept untouched, whatever happens around it
        }
        let revision = self.change();
        let resource = &mut graph[slot];
        let no_op = resource.take_no_op();
        let row = resource.row_mut();
        // Readers know that run already. A row without it would take them back to the one before.
        if let Some(no_op) = no_op {
            no_op.show_in(row);
        }
        change(row);
        row.revision = revision;
        row.updated_at = now;
        if resource.mark_row_dirty() {
            self.dirty.push(slot);
        }
    }

    /// Records the removal of a row. A row that the store never had is not sent.
    pub(crate) fn write_removal(&mut self, graph: &mut Graph, slot: Slot) {
        let revision = self.change();
        let resource = &mut graph[slot];
        resource.take_row_dirty();
        if resource.is_stored() {
            let row = resource.row();
            self.removed.push(Removed {
                uid: row.uid,
                key: row.key(),
                revision,
            });
        }
    }

    /// Stores the last run of a resource in its row.
    pub(crate) fn write_last_run(
        &mut self,
        graph: &mut Graph,
        now: Timestamp,
        slot: Slot,
        (run, result, repeats): (&Running, RunResult, Option<Repeats>),
        requeue_after: Option<Duration>,
    ) {
        let completed = run.phase() == Phase::Reconcile && result != RunResult::Cancelled;
        let epoch = self.epoch;
        self.write(graph, now, slot, |row| {
            let before = row.last_run.as_deref();
            let (seen, state_version, failed) = match completed {
                true => (
                    run.seen().cloned(),
                    row.state_version,
                    result == RunResult::Failed,
                ),
                // A run that did not complete has seen nothing that counts. Its inputs in the row would have changes
                // passed over.
                false => before.map_or_else(Default::default, |last| {
                    (last.seen.clone(), last.state_version, last.failed)
                }),
            };
            row.last_run = Some(Arc::new(LastRun {
                id: run.invocation(),
                epoch,
                phase: run.phase(),
                reason: run.reason().clone(),
                started_at: run.started_at(),
                ended_at: now,
                result,
                seen,
                state_version,
                failed,
                repeats,
                requeue_after,
            }));
        });
    }

    /// Stores the errors of new cycles in their members, and clears them in resources that left a cycle (C7).
    pub(crate) fn write_cycle_errors(
        &mut self,
        graph: &mut Graph,
        now: Timestamp,
        (entered, left): (&[Slot], &[Slot]),
    ) {
        for slot in left.iter().copied() {
            let on_cycle = |resource: &&Resource| {
                resource
                    .row()
                    .error
                    .as_ref()
                    .is_some_and(|error| &*error.code == CYCLE_CODE)
            };
            if graph.get(slot).as_ref().is_some_and(on_cycle) {
                self.write(graph, now, slot, |row| row.error = None);
            }
        }
        let mut cycles: Vec<_> = entered.iter().filter_map(|slot| graph[*slot].cycle()).collect();
        cycles.dedup();
        for cycle in cycles {
            for (slot, error) in graph.spell(cycle) {
                // The same error again is no change, and takes no revision.
                if graph[slot].row().error.as_deref() != Some(&*error) {
                    self.write(graph, now, slot, |row| row.error = Some(error));
                }
            }
        }
    }

    /// Adds a history entry, unless the run found nothing to do. Returns the runs that the entry stands for, if the
    /// next run may join them.
    ///
    /// The row of the resource is still as the run found it.
    pub(crate) fn record(
        &mut self,
        row: &Row,
        now: Timestamp,
        run: &Running,
        (result, error): (RunResult, Option<Arc<Error>>),
    ) -> Option<Repeats> {
        if finds_nothing(row, run, result) {
            return None;
        }
        let before = repeated(row, run, (result, error.as_deref()));
        let repeats = Repeats {
            runs: before.map_or(1, |(_, before)| before.runs.saturating_add(1)),
            since: before.map_or(run.started_at(), |(_, before)| before.since),
        };
        self.history.push(HistoryRow {
            uid: row.uid,
            key: row.key(),
            epoch: self.epoch,
            invocation: Some(run.invocation()),
            phase: run.phase(),
            reason: run.reason().clone(),
            started_at: run.started_at(),
            ended_at: now,
            result,
            error,
            seen: run.seen().cloned(),
            repeats: before.map(|_| repeats),
            replaces: before.map(|(id, _)| id),
        });
        // What was written names the run that wrote it, so that run's entry stays.
        let may_be_joined = !result.is_work() && !has_written_state(row);
        may_be_joined.then_some(repeats)
    }

    /// Adds the history entry of a forced delete.
    pub(crate) fn record_forced(&mut self, row: &Row, now: Timestamp, reason: Arc<Reason>) {
        self.history.push(HistoryRow {
            uid: row.uid,
            key: row.key(),
            epoch: self.epoch,
            invocation: None,
            phase: Phase::Delete,
            reason,
            started_at: now,
            ended_at: now,
            result: RunResult::Done(Work::None),
            error: None,
            seen: None,
            repeats: None,
            replaces: None,
        });
    }

    /// Counts a reconcile as a no-op if it leaves its row unchanged; returns whether it does.
    pub(crate) fn count_no_op(
        &mut self,
        graph: &mut Graph,
        now: Timestamp,
        slot: Slot,
        (run, outcome, next): (&Running, &Outcome, (Option<Timestamp>, Option<Duration>)),
    ) -> bool {
        if !is_no_op(&graph[slot], run, outcome, next) {
            return false;
        }
        let resource = &mut graph[slot];
        let before = resource.no_op().map(|before| before.runs_total);
        let no_op = Arc::new(NoOpRun {
            uid: resource.row().uid,
            id: run.invocation(),
            epoch: self.epoch,
            reason: run.reason().clone(),
            started_at: run.started_at(),
            ended_at: now,
            work: outcome.work,
            runs_total: before.unwrap_or(resource.row().runs_total) + 1,
        });
        resource.set_no_op(no_op.clone());
        self.no_ops.push(self.revision, slot, no_op);
        true
    }
}

/// Returns true if a reconcile found and left everything as it should be: no error before it, and no state written.
fn finds_nothing(row: &Row, run: &Running, result: RunResult) -> bool {
    run.phase() == Phase::Reconcile
        && matches!(result, RunResult::Done(Work::None | Work::Checked))
        && row.error.is_none()
        && !has_written_state(row)
}

/// Returns true if the state was written after the last reconcile that completed.
fn has_written_state(row: &Row) -> bool {
    let before = row.last_run.as_ref().map(|last| last.state_version);
    row.state_version != before.unwrap_or_default()
}

/// Returns the history entry that this run repeats, with the runs that it stands for; none if the run says something
/// new.
fn repeated(
    row: &Row,
    run: &Running,
    (result, error): (RunResult, Option<&Error>),
) -> Option<((Epoch, InvocationId), Repeats)> {
    let last = row.last_run.as_ref()?;
    let spec_of = |seen: Option<&ObservedInputs>| seen.map(|seen| seen.spec_version);
    let is_alike = last.phase == run.phase() && last.result == result;
    // An edit in between is worth an entry of its own, though it has changed nothing.
    let sees_the_same = run.seen().is_none() || spec_of(last.seen.as_ref()) == spec_of(run.seen());
    let says_the_same = match (result, &row.error, error) {
        (RunResult::Failed, Some(before), Some(error)) => before.says_the_same(error),
        (RunResult::Failed, _, _) => false,
        _ => true,
    };
    let repeats = last
        .repeats
        .filter(|_| is_alike && sees_the_same && says_the_same)?;
    Some(((last.epoch, last.id), repeats))
}

/// Returns true if the row already contains the result of this run, including requeue time and readiness; the remaining
/// wait may differ.
fn is_no_op(
    resource: &Resource,
    run: &Running,
    outcome: &Outcome,
    (next, wait): (Option<Timestamp>, Option<Duration>),
) -> bool {
    let row = resource.row();
    let finds_nothing = matches!(outcome.work, Work::None | Work::Checked);
    let is_sound = row.error.is_none() && row.attempts == 0 && resource.unreadable().is_none();
    let sees_the_same = row.last_run.as_ref().is_some_and(|last| {
        last.phase == Phase::Reconcile
            && matches!(last.result, RunResult::Done(_))
            && last.state_version == row.state_version
            && last.seen.as_ref() == run.seen()
            && last.requeue_after.is_some() == wait.is_some()
    });
    let stays = row.next_reconcile == next && row.unready == outcome.unready;
    finds_nothing && is_sound && stays && sees_the_same
}

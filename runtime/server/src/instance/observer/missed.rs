//! Runs that are missing in rows: several runs may share a commit, and a row has the last one alone.

use std::collections::HashMap;

use watershed_api::documents::{Ended, Event, LastRun, Outcome, ResourceName, Time};
use watershed_controller::history::{HistoryRow, InvocationId, Repeats};
use watershed_controller::{Event as Seen, Handle, Uid};

use crate::report::{resource, run_id};

/// History rows by resource, the oldest first.
pub(super) type Missed = HashMap<Uid, Vec<HistoryRow>>;

/// Extra history rows that are read, since cancelled runs are not in the count of runs.
const UNCOUNTED: u32 = 4;

/// The reported runs of a resource, by which a missed run is noticed.
pub(super) struct ReportedRuns {
    /// The last run that was reported.
    pub(super) run: Option<(u64, InvocationId)>,
    /// The number of runs up to the last one reported.
    pub(super) total: u64,
    /// The runs that share the history entry of the last reported run, if later runs may join them; none otherwise.
    pub(super) repeats: Option<Repeats>,
}

/// Reads the runs, by resource, between the last reported one and the latest one in the change.
pub(super) async fn read(handle: &Handle, seen: &Seen, told: impl Fn(Uid) -> Option<ReportedRuns>) -> Missed {
    let mut missed = Missed::new();
    let Seen::Changed(changes) = seen else {
        return missed;
    };
    for row in &changes.rows {
        let (Some(told), Some(last)) = (told(row.uid), &row.last_run) else {
            continue;
        };
        let runs = row.runs_total.saturating_sub(told.total);
        if runs < 2 {
            continue;
        }
        let limit = u32::try_from(runs).unwrap_or(u32::MAX).saturating_add(UNCOUNTED);
        // A catalog that can't be read costs lines of a report, no more.
        let mut rows = handle.history(row.uid, limit).await.unwrap_or_default();
        rows.reverse();
        missed.insert(row.uid, untold(rows, &told, (last.epoch.0, last.id)));
    }
    missed
}

/// Returns the runs between the last reported one and `last`, oldest first.
///
/// The last run is told by its row. Runs that ended alike have one entry, that of the latest, and each of them is told
/// by it.
fn untold(rows: Vec<HistoryRow>, told: &ReportedRuns, last: (u64, InvocationId)) -> Vec<HistoryRow> {
    let told_of = |entry: Repeats| {
        let is_same = |told: &Repeats| told.since == entry.since;
        told.repeats.filter(is_same).map_or(0, |told| told.runs)
    };
    let mut untold = Vec::new();
    for row in rows {
        let id = row.invocation.map(|id| (row.epoch.0, id));
        if id > told.run && id <= Some(last) {
            let runs = row
                .repeats
                .map_or(1, |entry| entry.runs.saturating_sub(told_of(entry)));
            let is_told_by_row = u32::from(id == Some(last));
            let runs = usize::try_from(runs.saturating_sub(is_told_by_row)).unwrap_or(usize::MAX);
            untold.extend(std::iter::repeat_n(row, runs));
        }
    }
    untold
}

/// Returns the event of a missed run's end.
pub(super) fn finished(run: &HistoryRow) -> Event {
    let outcome = resource::outcome(run.result, run.error.as_deref());
    let (started_at, at) = (
        Time::from_millis(run.started_at.0),
        Time::from_millis(run.ended_at.0),
    );
    let id = run.invocation.map(|id| run_id(run.epoch.0, id.0));
    let error = run.error.as_deref().filter(|_| outcome == Outcome::Failed);
    Event::ResourceFinished {
        at,
        resource: ResourceName::new(run.key.kind.as_str(), run.key.name.as_str()),
        work: resource::work(run.result, run.error.as_deref()),
        error: error.map(resource::failure),
        about: Ended::default(),
        run: LastRun {
            id: id.unwrap_or_default(),
            reason: crate::report::resource::reason_of(run.reason.trigger),
            cause: resource::cause(&run.reason),
            chain: resource::chain(&run.reason, &run.key),
            started_at,
            duration_ms: at.since_ms(started_at),
            outcome,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use watershed_controller::history::{Reason as Why, RunResult, Trigger};
    use watershed_controller::reconciler::Phase;
    use watershed_controller::{Error, Key, Timestamp};
    use watershed_core::Epoch;

    use super::*;

    /// Returns the history entry of a failure that stands for several, the first of which began at a time.
    fn failure(id: u64, repeats: Option<(u32, i64)>) -> HistoryRow {
        HistoryRow {
            uid: Uid(uuid::Uuid::from_u128(1)),
            key: Key::new("model", "a"),
            epoch: Epoch(1),
            invocation: Some(InvocationId(id)),
            phase: Phase::Reconcile,
            reason: Arc::new(Why::bare(Trigger::Retry)),
            started_at: Timestamp(0),
            ended_at: Timestamp(0),
            result: RunResult::Failed,
            error: Some(Arc::new(Error::transient("away", "it is away"))),
            seen: None,
            repeats: repeats_of(repeats),
            replaces: None,
        }
    }

    fn repeats_of(repeats: Option<(u32, i64)>) -> Option<Repeats> {
        repeats.map(|(runs, since)| Repeats {
            runs,
            since: Timestamp(since),
        })
    }

    #[test]
    fn failures_that_share_a_commit_and_an_entry_are_each_told() {
        let ids = |rows: &[HistoryRow], run: u64, repeats, last: u64| -> Vec<u64> {
            let told = ReportedRuns {
                run: Some((1, InvocationId(run))),
                total: run,
                repeats: repeats_of(repeats),
            };
            let found = untold(rows.to_vec(), &told, (1, InvocationId(last)));
            found.iter().filter_map(|row| Some(row.invocation?.0)).collect()
        };
        // Runs 5 and 6 failed alike: the row tells of 6.
        assert_eq!(ids(&[failure(6, Some((2, 50)))], 4, None, 6), [6]);
        // So did 4, which was told.
        assert_eq!(ids(&[failure(6, Some((3, 40)))], 4, Some((1, 40)), 6), [6]);
        assert_eq!(ids(&[failure(5, Some((2, 40)))], 4, Some((1, 40)), 5), [0_u64; 0]);
        // Two that failed alike, then one that did not, then a last one.
        let rows = [failure(6, Some((2, 50))), failure(7, None), failure(8, None)];
        assert_eq!(ids(&rows, 4, Some((9, 10)), 8), [6, 6, 7]);
    }
}

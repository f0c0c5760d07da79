//! Runs that no row tells of: two runs of a resource may share one commit, and its row knows the last one alone.

use std::collections::HashMap;

use watershed_api::documents::{Ended, Event, LastRun, Outcome, ResourceName, Time};
use watershed_controller::history::{HistoryRow, InvocationId};
use watershed_controller::{Event as Seen, Handle, Uid};

use crate::report::resource;

/// History rows by resource, the oldest first.
pub(super) type Missed = HashMap<Uid, Vec<HistoryRow>>;

/// Beyond the runs that were counted there may be some that were cancelled, which are not.
const UNCOUNTED: u32 = 4;

/// The counts of a resource by which a missed run is noticed.
pub(super) struct ReportedRuns {
    /// The last run that was told.
    pub(super) run: Option<(u64, InvocationId)>,
    /// The number of runs.
    pub(super) total: u64,
}

/// Reads the runs that happened between what was told and what is seen now.
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
        rows.retain(|run| {
            let id = run.invocation.map(|id| (run.epoch.0, id));
            id > told.run && id < Some((last.epoch.0, last.id))
        });
        rows.reverse();
        missed.insert(row.uid, rows);
    }
    missed
}

/// The end of such a run.
pub(super) fn finished(run: &HistoryRow) -> Event {
    let outcome = resource::outcome(run.result, run.error.as_deref());
    let (started_at, at) = (
        Time::from_millis(run.started_at.0),
        Time::from_millis(run.ended_at.0),
    );
    let id = run.invocation.map(|id| resource::run_id(run.epoch.0, id.0));
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

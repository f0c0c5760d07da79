//! Outcome of a convergence for its resource.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use watershed_core::{Error, Outcome, Work};
use watershed_stategraph::{Graph, Report, Timestamp, Value};

/// Maximum number of failures named in an error: enough to see what they have in common.
const MOST_NAMED: usize = 3;

/// Converts a report to an outcome. Failed items fail the resource; pending ones don't, because they wait for something
/// to appear.
pub(super) fn from_report(report: &Report, check_every: Option<Duration>) -> Result<Outcome, Box<Error>> {
    // Both are waits: a clock that is set back makes neither longer.
    let requeue_after = report.status.next.map(until).into_iter().chain(check_every).min();
    if let Some(mut error) = failure(report) {
        error.requeue_after = requeue_after;
        return Err(error.into());
    }
    if let Some(cycle) = report.status.cycles.first() {
        let names: Vec<String> = cycle.iter().map(ToString::to_string).collect();
        let message = format!("items depend on one another: {}", names.join(" -> "));
        return Err(Error::permanent("graph-cycle", message).into());
    }
    let work = if report.log.entries.is_empty() {
        Work::None
    } else {
        Work::Built
    };
    Ok(Outcome {
        requeue_after,
        ..Outcome::from_work(work)
    })
}

/// Checks that a delete has removed every item of the graph that is not external.
pub(super) fn check_delete<V: Value>(report: &Report, current: &Graph<V>) -> Result<(), Box<Error>> {
    if let Some(mut error) = failure(report) {
        error.retry_after = report.status.next.map(until);
        return Err(error.into());
    }
    let left = current.items().filter(|item| !item.is_external()).count();
    if left == 0 {
        return Ok(());
    }
    let mut error = Error::transient("graph-not-empty", format!("{left} items are still there"));
    error.retry_after = report.status.next.map(until);
    Err(error.into())
}

fn failure(report: &Report) -> Option<Error> {
    let failed = &report.status.failed;
    if failed.is_empty() {
        return None;
    }
    let named = failed
        .iter()
        .take(MOST_NAMED)
        .map(|(reference, operation, error)| format!("{operation} \"{reference}\": {error}"));
    let mut text = named.collect::<Vec<_>>().join("; ");
    if let Some(more) = failed.len().checked_sub(MOST_NAMED).filter(|&more| more > 0) {
        text = format!("{text}; and {more} more");
    }
    Some(Error::transient("item-failed", text))
}

fn until(time: Timestamp) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_millis(time.0).saturating_sub(now)
}

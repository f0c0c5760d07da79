//! The outcome of a call for its resource.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use watershed_core::{Error, Outcome, Timestamp, Work};
use watershed_stategraph::{Graph, Report, Value};

/// Failures named in an error: enough to see what they have in common.
const MOST_NAMED: usize = 3;

/// Failed items are an error of the resource. Pending ones are not: they wait for something to appear.
pub(super) fn from_report(report: &Report, check_every: Option<Duration>) -> Result<Outcome, Box<Error>> {
    let next = report.status.next.map(when);
    let check = check_every.map(|interval| now().after(interval));
    let retrigger = next.into_iter().chain(check).min();
    if let Some(mut error) = failure(report) {
        error.retrigger = retrigger;
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
        retrigger,
        ..Outcome::from_work(work)
    })
}

/// A delete is done when nothing of ours is left.
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

fn when(time: watershed_stategraph::Timestamp) -> Timestamp {
    Timestamp(i64::try_from(time.0).unwrap_or(i64::MAX))
}

fn until(time: watershed_stategraph::Timestamp) -> Duration {
    let wait_ms = when(time).0.saturating_sub(now().0);
    Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0))
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

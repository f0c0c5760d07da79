//! The time of the next run of a resource.

use std::time::SystemTime;

use watershed_api::documents::Time;
use watershed_core::{Row, Timestamp};
use watershed_reconcilers::model::due;

/// Codes of errors of what can't be reached.
const AWAY: [&str; 4] = [
    "connection-refused",
    "connection-failed",
    "host-unknown",
    "engine-unknown",
];

/// Kinds that are run again because the lake that models are built in is away.
const TRIED_AGAIN: [&str; 4] = ["model", "connector", "migration", "metrics_view"];

/// Returns true if a resource that has failed is run again before its schedule would do so.
pub(super) fn is_tried_again(row: &Row) -> bool {
    let is_of_schedule = |at| {
        let now = Timestamp::from(SystemTime::now());
        due::is_bound_of_age(row, at) || due::scheduled(row, now) == Some(at)
    };
    let is_away = row
        .error
        .as_ref()
        .is_some_and(|error| AWAY.contains(&&*error.code));
    is_away
        && TRIED_AGAIN.contains(&row.kind.as_str())
        && row.next_reconcile.is_some_and(|at| !is_of_schedule(at))
}

/// Returns the time of the next scheduled run of a resource. A look that only checks the age of rows doesn't count.
pub(super) fn time_of(row: &Row) -> Option<Time> {
    // A message that has come, or can't come, is only kept for a while.
    if row.kind.as_str() == watershed_delivery::KIND && row.unready.is_none() {
        return None;
    }
    let now = Timestamp::from(SystemTime::now());
    let at = row.next_reconcile?;
    let at = match due::is_bound_of_age(row, at) {
        true => due::scheduled(row, now)?,
        false => at,
    };
    Some(Time::from_millis(at.0))
}

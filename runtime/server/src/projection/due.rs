//! Times at which a resource's health or document changes by the passage of time alone.

use watershed_core::{Row, Timestamp};
use watershed_reconcilers::alert::snooze;
use watershed_reconcilers::model::freshness;

use crate::report::kinds::managed;

/// Returns the next time after `now` at which a resource's health or document changes by time alone.
pub(super) fn next(row: &Row, now: Timestamp) -> Option<Timestamp> {
    let bounds = freshness::next_bound(row, now);
    let snoozed = snooze::end(&row.labels, now);
    let window = managed::record(row).and_then(|record| record.window);
    let window = window.map(|window| [window.opening, window.start, window.end, window.deadline]);
    let moments = bounds
        .into_iter()
        .chain(snoozed)
        .chain(window.into_iter().flatten());
    moments.filter(|at| *at > now).min()
}

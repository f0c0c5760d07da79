//! The time of the next run of a resource.

use std::time::SystemTime;

use watershed_api::documents::Time;
use watershed_core::{Row, Timestamp};
use watershed_reconcilers::model::due;

/// Returns when a resource is run again by itself. A model may be looked at before, when its rows get too old, and nothing
/// is built then: that counts for nothing here.
pub(super) fn time_of(row: &Row) -> Option<Time> {
    let now = Timestamp::from(SystemTime::now());
    let at = row.next_reconcile?;
    let at = match due::is_bound_of_age(row, at) {
        true => due::scheduled(row, now)?,
        false => at,
    };
    Some(Time::from_millis(at.0))
}

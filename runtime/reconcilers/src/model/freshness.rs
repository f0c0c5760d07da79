//! Freshness of a model: the age of its rows, and the limits of it.

use std::time::Duration;

use watershed_core::{Row, Timestamp};
use watershed_metrics::jiff::SignedDuration;
use watershed_proto::{Freshness, Message, ModelSpecGlance, ModelState, Spot};

use super::{
    KIND,
    record::{Record, Shape},
};

/// A finding about rows that are older than a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Old {
    /// The time since the rows came.
    pub age: Duration,
    /// The limit that the rows exceed.
    pub bound: Duration,
    /// True if the limit is that of an error; false if it is that of a warning.
    pub is_stale: bool,
    /// The place of the limits in the model's YAML file.
    pub at: Spot,
}

/// Returns the age limit that a resource's rows exceed; none if they exceed none or no limits are set.
#[must_use]
pub fn old(row: &Row, now: Timestamp) -> Option<Old> {
    if row.kind.as_str() != KIND {
        return None;
    }
    let freshness = ModelSpecGlance::decode(row.spec.as_ref()).ok()?.freshness?;
    let record = Record::from_state(&ModelState::decode(row.state.as_deref()?).ok()?)?;
    let age = u64::try_from(now.0.saturating_sub(since(&record, now).0)).unwrap_or_default();
    let age = Duration::from_millis(age);
    let passed = |bound: &Duration| age >= *bound;
    let error = error(&freshness).filter(passed);
    let bound = error.or_else(|| warn(&freshness).filter(passed))?;
    Some(Old {
        age,
        bound,
        is_stale: error.is_some(),
        at: freshness.at.unwrap_or(Spot { line: 1, column: 1 }),
    })
}

/// Tells that a resource's rows are older than the limit of an error; none if they are not.
#[must_use]
pub fn stale(row: &Row, now: Timestamp) -> Option<String> {
    let old = old(row, now).filter(|old| old.is_stale)?;
    let bound = SignedDuration::try_from(old.bound).unwrap_or(SignedDuration::MAX);
    Some(format!("the rows are stale: they came more than {bound:#} ago"))
}

/// Returns the time when a resource's rows will exceed the next age limit; none without limits or if the last one is
/// exceeded.
#[must_use]
pub fn next_bound(row: &Row, now: Timestamp) -> Option<Timestamp> {
    if row.kind.as_str() != KIND {
        return None;
    }
    let freshness = ModelSpecGlance::decode(row.spec.as_ref()).ok()?.freshness?;
    let record = Record::from_state(&ModelState::decode(row.state.as_deref()?).ok()?)?;
    next(&freshness, since(&record, now), now)
}

/// Returns the time when rows that came at `since` exceed the next limit after `now`.
pub(super) fn next(freshness: &Freshness, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let bounds = [warn(freshness), error(freshness)].into_iter().flatten();
    bounds
        .map(|bound| since.after(bound))
        .filter(|at| *at > now)
        .min()
}

/// Returns the time when the present rows came. Builds of an incremental model that add no rows don't change it; a time
/// from a clock that was ahead is replaced by the time when that was noticed.
pub(super) fn since(record: &Record, now: Timestamp) -> Timestamp {
    let built = Timestamp(record.built_at_ms);
    let of_id = record.build.0.get_timestamp().map(|at| {
        let (seconds, nanos) = at.to_unix();
        let ms = seconds.saturating_mul(1_000) + u64::from(nanos / 1_000_000);
        Timestamp(i64::try_from(ms).unwrap_or(i64::MAX))
    });
    let noted = match (record.shape, record.incremental) {
        (Shape::Table, true) => of_id.unwrap_or(built),
        _ => built,
    };
    record.known(noted, now)
}

fn warn(freshness: &Freshness) -> Option<Duration> {
    freshness.warn_seconds.map(|it| Duration::from_secs(it.into()))
}

fn error(freshness: &Freshness) -> Option<Duration> {
    freshness.error_seconds.map(|it| Duration::from_secs(it.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_look_is_at_the_next_bound_that_is_not_passed() {
        let freshness = Freshness {
            warn_seconds: Some(10),
            error_seconds: Some(20),
            at: None,
        };
        let at = |seconds: i64| Timestamp(seconds * 1_000);
        assert_eq!(next(&freshness, at(100), at(100)), Some(at(110)));
        assert_eq!(next(&freshness, at(100), at(110)), Some(at(120)));
        assert_eq!(next(&freshness, at(100), at(120)), None);
    }
}

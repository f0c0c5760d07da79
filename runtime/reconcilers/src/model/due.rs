//! The times at which a model is reconciled: those of its schedule, and those when its rows exceed an age.

use watershed_core::{Row, Timestamp};
use watershed_proto::{Message, ModelSpec, ModelState};

use super::{KIND, freshness, record::Record, schedule};

/// Returns true if a time is one at which the rows of a model exceed an age limit, which is only reported and builds
/// nothing.
#[must_use]
pub fn is_bound_of_age(row: &Row, at: Timestamp) -> bool {
    let Some((spec, record)) = read(row) else {
        return false;
    };
    let before = Timestamp(at.0.saturating_sub(1));
    spec.freshness
        .is_some_and(|bounds| freshness::next(&bounds, freshness::since(&record, before), before) == Some(at))
}

/// Returns the next time at which a model's schedule builds it; none without a schedule.
#[must_use]
pub fn scheduled(row: &Row, now: Timestamp) -> Option<Timestamp> {
    let (spec, record) = read(row)?;
    schedule::next(&schedule::from_spec(&spec)?, record.mark(now), now)
}

fn read(row: &Row) -> Option<(ModelSpec, Record)> {
    if row.kind.as_str() != KIND {
        return None;
    }
    let spec = ModelSpec::decode(row.spec.as_ref()).ok()?;
    let record = Record::from_state(&ModelState::decode(row.state.as_deref()?).ok()?)?;
    Some((spec, record))
}

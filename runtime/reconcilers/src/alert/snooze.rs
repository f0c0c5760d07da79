//! Snoozing of alerts by labels, which survive edits of the file and evaluations.

use std::collections::BTreeMap;
use std::sync::Arc;

use watershed_controller::Timestamp;
use watershed_metrics::jiff;

use crate::model::schedule;

/// The label with the end of the snooze (RFC 3339), until which nobody is told.
pub const LABEL: &str = "snoozed-until";

/// The label with the time at which the snooze was set.
pub const SAID: &str = "snoozed-at";

/// Returns the end of the snooze that labels set, if any. A snooze set in the future, by a clock that was ahead, is
/// ignored.
#[must_use]
pub fn end(labels: &BTreeMap<Arc<str>, Arc<str>>, now: Timestamp) -> Option<Timestamp> {
    let time = |label: &str| {
        let time: jiff::Timestamp = labels.get(label)?.parse().ok()?;
        Some(Timestamp(time.as_millisecond()))
    };
    let is_trusted = |said: Timestamp| schedule::trusted(said, now) == said;
    time(LABEL).filter(|_| time(SAID).is_none_or(is_trusted))
}

/// Returns labels with a new end of the snooze, set at `now`; without an end the snooze is removed.
#[must_use]
pub fn labels(
    labels: &BTreeMap<Arc<str>, Arc<str>>,
    until: Option<Timestamp>,
    now: Timestamp,
) -> BTreeMap<Arc<str>, Arc<str>> {
    let mut labels = labels.clone();
    for (label, time) in [(LABEL, until), (SAID, until.map(|_| now))] {
        let time = time.and_then(|time| jiff::Timestamp::from_millisecond(time.0).ok());
        match time {
            Some(time) => labels.insert(label.into(), time.to_string().into()),
            None => labels.remove(label),
        };
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snooze_is_two_labels_among_others() {
        let tags = BTreeMap::from([(Arc::from("tags"), Arc::from("a,b"))]);
        let (now, until) = (Timestamp(1_699_999_000_000), Timestamp(1_700_000_000_000));
        let snoozed = labels(&tags, Some(until), now);
        assert_eq!(
            snoozed.get(LABEL).map(AsRef::as_ref),
            Some("2023-11-14T22:13:20Z")
        );
        assert_eq!(end(&snoozed, now), Some(until));
        assert_eq!(labels(&snoozed, None, now), tags);
        assert_eq!(end(&tags, now), None);
    }

    #[test]
    fn a_snooze_by_a_clock_that_was_ahead_holds_nothing_back() {
        let years = 5 * 366 * 86_400_000;
        let (now, ahead) = (Timestamp(1_700_000_000_000), Timestamp(1_700_000_000_000 + years));
        let snoozed = labels(&BTreeMap::new(), Some(Timestamp(ahead.0 + 3_600_000)), ahead);
        assert!(end(&snoozed, ahead).is_some());
        assert_eq!(end(&snoozed, now), None);
        let long = labels(&BTreeMap::new(), Some(ahead), now);
        assert_eq!(end(&long, now), Some(ahead), "who wants years gets them");
    }
}

//! Snoozing: labels with an end, so that neither an edit of the file nor an evaluation undoes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use watershed_controller::Timestamp;
use watershed_metrics::jiff;

use crate::model::schedule;

/// The label of an alert about which nobody is told until the time in it (RFC 3339).
pub const LABEL: &str = "snoozed-until";

/// The label with the time at which that was said.
pub const SAID: &str = "snoozed-at";

/// Returns the time until which nobody is told, if labels say one. One that was said in the future, by a clock that was ahead,
/// holds nothing back.
#[must_use]
pub fn end(labels: &BTreeMap<Arc<str>, Arc<str>>, now: Timestamp) -> Option<Timestamp> {
    let time = |label: &str| {
        let time: jiff::Timestamp = labels.get(label)?.parse().ok()?;
        Some(Timestamp(time.as_millisecond()))
    };
    let is_trusted = |said: Timestamp| schedule::trusted(said, now) == said;
    time(LABEL).filter(|_| time(SAID).is_none_or(is_trusted))
}

/// Returns labels with another end of the snooze, said `now`; without one, nothing is held back any more.
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

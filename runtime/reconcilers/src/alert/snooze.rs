//! Snoozing: a label with an end, so that neither an edit of the file nor an evaluation undoes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use watershed_controller::Timestamp;
use watershed_metrics::jiff;

/// The label of an alert about which nobody is told until the time in it (RFC 3339).
pub const LABEL: &str = "snoozed-until";

/// Returns the time until which nobody is told, if labels say one.
#[must_use]
pub fn end(labels: &BTreeMap<Arc<str>, Arc<str>>) -> Option<Timestamp> {
    let until: jiff::Timestamp = labels.get(LABEL)?.parse().ok()?;
    Some(Timestamp(until.as_millisecond()))
}

/// Returns labels with another end of the snooze; without one, nothing is held back any more.
#[must_use]
pub fn labels(
    labels: &BTreeMap<Arc<str>, Arc<str>>,
    until: Option<Timestamp>,
) -> BTreeMap<Arc<str>, Arc<str>> {
    let mut labels = labels.clone();
    let until = until.and_then(|until| jiff::Timestamp::from_millisecond(until.0).ok());
    match until {
        Some(until) => labels.insert(LABEL.into(), until.to_string().into()),
        None => labels.remove(LABEL),
    };
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snooze_is_one_label_among_others() {
        let tags = BTreeMap::from([(Arc::from("tags"), Arc::from("a,b"))]);
        let until = Timestamp(1_700_000_000_000);
        let snoozed = labels(&tags, Some(until));
        assert_eq!(
            snoozed.get(LABEL).map(AsRef::as_ref),
            Some("2023-11-14T22:13:20Z")
        );
        assert_eq!(end(&snoozed), Some(until));
        assert_eq!(labels(&snoozed, None), tags);
        assert_eq!(end(&tags), None);
    }
}

//! Parsing of durations in project files.

use jiff::{SignedDuration, Span};

/// The number of seconds in a day, which always has 24 hours.
const DAY: i64 = 86_400;

/// Parses a duration to whole seconds, rounded up: a number, `1h30m`, or ISO 8601 (`PT1H30M`). Months count as 30 days
/// and years as 365.
pub fn seconds(text: &str) -> Option<u32> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(seconds);
    }
    let span: Span = text.parse().ok()?;
    let days = 365 * i64::from(span.get_years())
        + 30 * i64::from(span.get_months())
        + 7 * i64::from(span.get_weeks())
        + i64::from(span.get_days());
    let time = SignedDuration::try_from(span.years(0).months(0).weeks(0).days(0)).ok()?;
    if span.is_negative() {
        return None;
    }
    let started = i64::from(time.subsec_nanos() > 0);
    u32::try_from(days * DAY + time.as_secs() + started).ok()
}

/// Parses a duration to milliseconds, such as `1h30m`, `500ms` or `PT1H30M`; a number without a unit is rejected as
/// ambiguous.
pub(crate) fn milliseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    if text.parse::<f64>().is_ok() {
        return None;
    }
    let span: Span = text.parse().ok()?;
    if span.is_negative() || span.get_years() != 0 || span.get_months() != 0 {
        return None;
    }
    let days = 7 * i64::from(span.get_weeks()) + i64::from(span.get_days());
    let time = SignedDuration::try_from(span.weeks(0).days(0)).ok()?;
    let days = u64::try_from(days * DAY * 1_000).ok()?;
    days.checked_add(u64::try_from(time.as_millis()).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_ways_to_write_a_duration() {
        assert_eq!(
            ["90", "1m30s", "PT1M30S", "1.5h", "P1D", "500ms", "P1Y2M"].map(seconds),
            [
                Some(90),
                Some(90),
                Some(90),
                Some(5400),
                Some(86_400),
                Some(1),
                Some(425 * 86_400)
            ]
        );
        assert_eq!(
            ["500ms", "1m30s", "P1D", "0s", "90", "1.5", "1mo", "-5m"].map(milliseconds),
            [
                Some(500),
                Some(90_000),
                Some(86_400_000),
                Some(0),
                None,
                None,
                None,
                None
            ]
        );
        assert_eq!(
            ["", "soon", "-5", "-5m", "1x", "P", "P1X", "P9999Y"].map(seconds),
            [None; 8]
        );
    }
}

//! Ranges in the keys of a query, and comparisons.

use watershed_metrics::jiff::Timestamp;
use watershed_metrics::{Calendar, Expression, Grain, Moments, Offset, Range, RangeError, TimeRange, Zone};

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn range(start: &str, end: &str) -> Range {
    Range {
        start: time(start),
        end: time(end),
    }
}

fn moments() -> Moments {
    Moments {
        now: time("2025-05-15T10:32:36Z"),
        earliest: Some(time("2020-01-01T00:00:00Z")),
        latest: Some(time("2025-05-14T06:32:36Z")),
        watermark: Some(time("2025-05-13T06:32:36Z")),
    }
}

fn resolve(keys: &TimeRange) -> Result<Option<Range>, RangeError> {
    let resolved = keys.resolve(&moments(), &Calendar::new(Zone::UTC), Grain::Second)?;
    resolved.map(|resolved| resolved.range()).transpose()
}

/// Q7: ends, a duration with one end or none, an offset, and rounding.
#[test]
fn ends_and_durations_make_a_range() {
    let start = Some(time("2025-01-31T05:30:00Z"));
    let end = Some(time("2025-02-28T00:00:00Z"));
    let text = |text: &str| Some(text.to_owned());
    let none = TimeRange::default();
    let cases = [
        (none.clone(), None),
        (
            TimeRange {
                start,
                end,
                ..none.clone()
            },
            Some(range("2025-01-31T05:30:00Z", "2025-02-28T00:00:00Z")),
        ),
        (
            TimeRange {
                start,
                iso_duration: text("P1M"),
                ..none.clone()
            },
            Some(range("2025-01-31T05:30:00Z", "2025-02-28T05:30:00Z")),
        ),
        (
            TimeRange {
                end,
                iso_duration: text("P1W"),
                ..none.clone()
            },
            Some(range("2025-02-21T00:00:00Z", "2025-02-28T00:00:00Z")),
        ),
        (
            TimeRange {
                start,
                ..none.clone()
            },
            Some(range("2025-01-31T05:30:00Z", "2025-05-14T06:32:37Z")),
        ),
        (
            TimeRange { end, ..none.clone() },
            Some(range("2020-01-01T00:00:00Z", "2025-02-28T00:00:00Z")),
        ),
        (
            TimeRange {
                iso_duration: text("P2D"),
                iso_offset: text("P1W"),
                ..none.clone()
            },
            Some(range("2025-05-05T00:00:00Z", "2025-05-07T00:00:00Z")),
        ),
        (
            TimeRange {
                iso_duration: text("rill-MTD"),
                iso_offset: text("rill-PM"),
                ..none.clone()
            },
            Some(range("2025-04-01T00:00:00Z", "2025-04-13T06:32:36Z")),
        ),
        (
            TimeRange {
                start,
                end,
                round_to_grain: Some(Grain::Month),
                ..none.clone()
            },
            Some(range("2025-01-01T00:00:00Z", "2025-02-01T00:00:00Z")),
        ),
        (
            TimeRange::expression("2025-02"),
            Some(range("2025-02-01T00:00:00Z", "2025-03-01T00:00:00Z")),
        ),
    ];
    for (keys, expected) in cases {
        assert_eq!(resolve(&keys), Ok(expected), "{keys:?}");
    }
}

/// Q7: keys that exclude each other are refused.
#[test]
fn keys_that_exclude_each_other_are_refused() {
    let start = Some(time("2025-01-31T05:30:00Z"));
    for keys in [
        TimeRange {
            start,
            ..TimeRange::expression("7D")
        },
        TimeRange {
            start,
            end: start,
            iso_duration: Some("P1D".to_owned()),
            expression: None,
            ..TimeRange::default()
        },
        TimeRange {
            iso_offset: Some("P1D".to_owned()),
            ..TimeRange::default()
        },
        TimeRange {
            round_to_grain: Some(Grain::Day),
            ..TimeRange::default()
        },
    ] {
        assert!(matches!(resolve(&keys), Err(RangeError::Keys(_))), "{keys:?}");
    }
    for text in ["P1D ", "1D", "P1DX"] {
        let keys = TimeRange {
            start,
            iso_duration: Some(text.to_owned()),
            ..TimeRange::default()
        };
        assert_eq!(resolve(&keys).is_ok(), text == "P1D ", "{text}");
    }
}

/// Q8: a comparison is a distance from the base: its own length, a length of the calendar, or a word of the format.
#[test]
fn a_comparison_lies_its_distance_before_the_base() {
    let calendar = Calendar::new(Zone::find("America/New_York").expect("a zone"));
    for (base, offset, expected) in [
        (
            "2024-03-10 to 2024-03-12",
            "-1P",
            range("2024-03-08T05:00:00Z", "2024-03-10T05:00:00Z"),
        ),
        (
            "2024-03-10 to 2024-03-12",
            "rill-PP",
            range("2024-03-08T05:00:00Z", "2024-03-10T05:00:00Z"),
        ),
        (
            "2024-03-10 to 2024-03-12",
            "rill-PW",
            range("2024-03-03T05:00:00Z", "2024-03-05T05:00:00Z"),
        ),
        (
            "2024-02-29",
            "P1Y",
            range("2023-02-28T05:00:00Z", "2023-03-01T05:00:00Z"),
        ),
        (
            "2024-02-29",
            "-1Q",
            range("2023-11-29T05:00:00Z", "2023-12-01T05:00:00Z"),
        ),
        (
            "MTD as of 2024-03-15",
            "-1P",
            range("2024-02-01T05:00:00Z", "2024-02-15T05:00:00Z"),
        ),
        (
            "2024-03-10T00 to 2024-03-10T12",
            "-1P",
            range("2024-03-09T18:00:00Z", "2024-03-10T05:00:00Z"),
        ),
    ] {
        let expression: Expression = base.parse().expect("an expression");
        let resolved = expression
            .resolve(&moments(), &calendar, Grain::Second)
            .expect("a range");
        let offset: Offset = offset.parse().expect("a distance");
        let found = offset.of(&resolved).and_then(|found| found.range());
        assert_eq!(found, Ok(expected), "{base} {offset:?}");
    }
    for text in ["", "1P", "P1X", "rill-TD", "-1P and more"] {
        assert!(text.parse::<Offset>().is_err(), "{text}");
    }
}

/// Q8: days given as instants are moved as days, also from one that begins at one o'clock.
#[test]
fn days_given_as_instants_are_moved_as_days() {
    let calendar = Calendar::new(Zone::find("America/Havana").expect("a zone"));
    let days = TimeRange {
        start: Some(time("2024-03-10T05:00:00Z")),
        end: Some(time("2024-03-12T04:00:00Z")),
        ..TimeRange::default()
    };
    let resolved = days.resolve(&moments(), &calendar, Grain::Second);
    let resolved = resolved.expect("a range").expect("bounds");
    let offset: Offset = "-1P".parse().expect("a distance");
    let found = offset.of(&resolved).and_then(|found| found.range());
    assert_eq!(found, Ok(range("2024-03-08T05:00:00Z", "2024-03-10T05:00:00Z")));
}

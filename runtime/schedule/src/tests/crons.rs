//! Tests of the due times of cron expressions.

use super::reference::{Pattern, minutes};
use super::{ZONES, at, later};
use crate::{Cron, CronError, Zone};

/// Expressions that fall into clock changes, month ends, leap days, and both readings of the hour field.
const EXPRESSIONS: &[&str] = &[
    "0 6 * * *",
    "30 2 * * *",
    "15 0 * * *",
    "0 0 * * *",
    "1 0 * * *",
    "45 1 * * *",
    "0 0,12 * * *",
    "*/10 2 * * *",
    "*/20 1-3 * * 0",
    "0 * * * *",
    "15 * * * *",
    "*/7 * * * *",
    "0 */2 * * *",
    "30 23 31 * *",
    "0 3 29 2 *",
    "0 2 13 * 5",
    "59 23 * 12 *",
];

#[test]
fn due_times_equal_those_of_a_reference_over_a_year_in_each_zone() {
    for zone in ZONES {
        // St. John's changed its clock at one minute past midnight until 2011; 2024 has a leap day.
        let year = if *zone == "America/St_Johns" { 2010 } else { 2024 };
        let minutes = minutes(zone, year, year + 1);
        let place = Zone::find(zone).expect("the zone is known");
        let changes: Vec<_> = minutes
            .windows(2)
            .filter(|pair| pair[0].offset != pair[1].offset)
            .map(|pair| pair[1].instant)
            .collect();
        for text in EXPRESSIONS {
            let expected = Pattern::read(text).due(&minutes);
            let cron = Cron::parse(text).expect("the expression is one");
            // All near a clock change, and of dense expressions a share of the others.
            let share = 1 + expected.len() / 500;
            let near = |due| changes.iter().any(|change| due_near(*change, due));
            for (number, due) in expected.iter().enumerate() {
                if number % share == 0 || near(*due) {
                    let next = cron.next_after(later(*due, -1), &place);
                    assert_eq!(next, Some(*due), "{text} in {zone}");
                    let following = cron.next_after(*due, &place).expect("there is a next");
                    let end = later(minutes[minutes.len() - 1].instant, 60);
                    match expected.get(number + 1) {
                        Some(expected) => assert_eq!(following, *expected, "{text} in {zone}"),
                        None => assert!(following >= end, "{text} in {zone}"),
                    }
                    assert_eq!(cron.last_until(*due, &place), Some(*due), "{text} in {zone}");
                    let before = cron
                        .last_until(later(*due, -1), &place)
                        .expect("there is one before");
                    match number.checked_sub(1) {
                        Some(number) => assert_eq!(before, expected[number], "{text} in {zone}"),
                        None => assert!(before < minutes[0].instant, "{text} in {zone}"),
                    }
                }
            }
        }
    }
}

/// Returns true if a due time lies less than two days from a clock change.
fn due_near(change: jiff::Timestamp, due: jiff::Timestamp) -> bool {
    change.duration_since(due).abs() < jiff::SignedDuration::from_hours(48)
}

#[test]
fn any_moment_has_the_due_times_around_it_that_a_reference_has() {
    for zone in ZONES {
        let minutes = minutes(zone, 2026, 2027);
        let place = Zone::find(zone).expect("the zone is known");
        let changes = minutes.windows(2).filter(|pair| pair[0].offset != pair[1].offset);
        let moments: Vec<_> = changes
            .flat_map(|pair| (-300..300).map(|half_minutes| later(pair[1].instant, half_minutes * 30 + 7)))
            .collect();
        for text in [
            "30 2 * * *",
            "0 0 * * *",
            "*/15 1,2 * * *",
            "*/30 * * * *",
            "45 1 * * 0",
        ] {
            let due = Pattern::read(text).due(&minutes);
            let cron = Cron::parse(text).expect("the expression is one");
            for moment in &moments {
                let place_after = due.partition_point(|due| due <= moment);
                assert_eq!(
                    cron.next_after(*moment, &place),
                    due.get(place_after).copied(),
                    "{text} in {zone} after {moment}"
                );
                assert_eq!(
                    cron.last_until(*moment, &place),
                    place_after.checked_sub(1).map(|before| due[before]),
                    "{text} in {zone} until {moment}"
                );
            }
        }
    }
}

#[test]
fn a_named_time_in_a_gap_runs_at_its_end_and_a_repeated_one_at_its_first() {
    let next = |text: &str, zone: &str, after: &str| {
        let cron = Cron::parse(text).expect("the expression is one");
        let zone = Zone::find(zone).expect("the zone is known");
        cron.next_after(at(after), &zone)
            .expect("there is a next")
            .to_string()
    };
    let oslo = "Europe/Oslo";
    assert_eq!(
        next("30 2 * * *", oslo, "2026-03-28T12:00:00Z"),
        "2026-03-29T01:00:00Z"
    );
    assert_eq!(
        next("30 2 * * *", oslo, "2026-10-24T12:00:00Z"),
        "2026-10-25T00:30:00Z"
    );
    assert_eq!(
        next("30 2 * * *", oslo, "2026-10-25T00:30:00Z"),
        "2026-10-26T01:30:00Z"
    );
    // Midnight does not exist in Havana that day.
    assert_eq!(
        next("@daily", "America/Havana", "2026-03-07T12:00:00Z"),
        "2026-03-08T05:00:00Z"
    );
    // A whole day was left out in Samoa.
    assert_eq!(
        next("0 12 * * *", "Pacific/Apia", "2011-12-30T08:00:00Z"),
        "2011-12-30T10:00:00Z"
    );
}

#[test]
fn a_month_that_lacks_the_day_is_passed_over() {
    let cron = Cron::parse("0 0 31 * *").expect("the expression is one");
    let mut due = at("2026-01-01T00:00:00Z");
    let mut months = Vec::new();
    for _ in 0..7 {
        due = cron.next_after(due, &Zone::UTC).expect("there is a next");
        months.push(Zone::UTC.local(due).month());
    }
    assert_eq!(months, [1, 3, 5, 7, 8, 10, 12]);
    let last = Cron::parse("0 0 L * *").expect("the expression is one");
    assert_eq!(
        last.next_after(at("2028-02-01T00:00:00Z"), &Zone::UTC),
        Some(at("2028-02-29T00:00:00Z"))
    );
}

#[test]
fn what_is_no_expression_and_what_never_comes_due_are_errors() {
    for text in [
        "",
        "* * * *",
        "60 * * * *",
        "0 0 * * * *",
        "0 0 * * * * *",
        "a b c d e",
        "@sometimes",
        "0 24 * * *",
    ] {
        let error = Cron::parse(text).expect_err(text);
        assert!(matches!(error, CronError::Invalid { .. }), "{text}: {error}");
    }
    for text in ["0 0 30 2 *", "0 0 31 4,6,9,11 *"] {
        let error = Cron::parse(text).expect_err(text);
        assert_eq!(
            error,
            CronError::Never {
                text: text.to_owned()
            }
        );
    }
}

#[test]
fn zones_are_found_in_any_case_and_only_if_there_are_any() {
    assert_eq!(Zone::find("").expect("no name is UTC"), Zone::UTC);
    assert_eq!(
        Zone::find("europe/oslo").expect("the zone is known").name(),
        Some("Europe/Oslo")
    );
    let error = Zone::find("Local").expect_err("the crate has no machine");
    assert_eq!(error.to_string(), "unknown time zone \"Local\"");
}

#[test]
fn a_local_time_becomes_an_instant_around_clock_changes() {
    let oslo = Zone::find("Europe/Oslo").expect("the zone is known");
    let instant = |local: &str| {
        let local = local.parse().expect("a test names a time");
        oslo.instant(local)
            .expect("the time is representable")
            .to_string()
    };
    assert_eq!(instant("2026-03-29T02:30"), "2026-03-29T01:30:00Z");
    assert_eq!(instant("2026-10-25T02:30"), "2026-10-25T00:30:00Z");
}

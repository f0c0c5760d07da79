//! Tests of the intervals of a calendar.

use jiff::civil::Weekday;

use super::reference::{Minute, minutes};
use super::{ZONES, at, later};
use crate::{Grain, Interval, Intervals, Step, Zone};

/// Returns a key that is equal for two minutes exactly if both lie in one interval, by the rules of metrics: dates for
/// a day and above, the clock and its offset below.
fn key(step: &str, minute: &Minute, latest_day: i32) -> (i64, i32) {
    let local = minute.local;
    let month = i64::from(local.year()) * 12 + i64::from(local.month()) - 1;
    let shown = minute.instant.as_second() + i64::from(minute.offset);
    match step {
        "PT15M" => (shown.div_euclid(900), minute.offset),
        "PT1H" => (shown.div_euclid(3_600), minute.offset),
        "PT6H" => (shown.div_euclid(6 * 3_600), minute.offset),
        "P1D" => (i64::from(latest_day), 0),
        "P3D" => (i64::from(latest_day).div_euclid(3), 0),
        // 1970 began on a Thursday.
        "P1W" => ((i64::from(latest_day) + 3).div_euclid(7), 0),
        "P1M" => (month, 0),
        "P5M" => ((month - 1970 * 12).div_euclid(5), 0),
        "P1Y" => (i64::from(local.year()), 0),
        other => panic!("{other}"),
    }
}

#[test]
fn intervals_begin_where_a_reference_begins_one() {
    for zone in ZONES {
        let year = if *zone == "America/St_Johns" { 2010 } else { 2024 };
        let minutes = minutes(zone, year, year + 1);
        let place = Zone::find(zone).expect("the zone is known");
        for step in ["PT15M", "PT1H", "PT6H", "P1D", "P3D", "P1W", "P1M", "P5M", "P1Y"] {
            let intervals = Intervals::new(step.parse().expect("the step is one"), place.clone());
            let mut latest_day = i32::MIN;
            let mut keys = Vec::with_capacity(minutes.len());
            for minute in &minutes {
                // A day that has begun does not end when the clock goes back over its midnight.
                let shown = minute.instant.as_second() + i64::from(minute.offset);
                latest_day = latest_day.max(i32::try_from(shown.div_euclid(86_400)).expect("a day's number"));
                keys.push(key(step, minute, latest_day));
            }
            let mut starts: Vec<_> = (1..keys.len())
                .filter(|place| keys[*place] != keys[place - 1])
                .collect();
            starts.dedup();
            for pair in starts.windows(2) {
                let (start, end) = (minutes[pair[0]].instant, minutes[pair[1]].instant);
                let expected = Some(Interval { start, end });
                for moment in [start, later(start, 59), later(end, -1)] {
                    assert_eq!(intervals.at(moment), expected, "{step} in {zone} at {moment}");
                }
            }
        }
    }
}

#[test]
fn the_newest_closed_intervals_are_returned_and_older_ones_counted() {
    let hours = Intervals::new(Step::one(Grain::Hour), Zone::UTC);
    let closed = hours.closed(Some(at("2026-06-01T00:00:00Z")), at("2026-06-02T06:30:00Z"), 25);
    assert_eq!((closed.intervals.len(), closed.left_out), (25, 5));
    assert_eq!(closed.intervals[0].start, at("2026-06-01T05:00:00Z"));
    assert_eq!(closed.intervals[24].end, at("2026-06-02T06:00:00Z"));
    assert!(
        closed
            .intervals
            .windows(2)
            .all(|pair| pair[0].end == pair[1].start)
    );

    // The end of the last one is where the next call goes on.
    let again = hours.closed(Some(closed.intervals[24].end), at("2026-06-02T06:59:59Z"), 25);
    assert_eq!((again.intervals.len(), again.left_out), (0, 0));
    let again = hours.closed(Some(closed.intervals[24].end), at("2026-06-02T07:00:00Z"), 25);
    assert_eq!(again.intervals.len(), 1);
}

#[test]
fn without_a_mark_only_the_newest_closed_interval_counts() {
    let days = Intervals::new(
        Step::one(Grain::Day),
        Zone::find("America/Havana").expect("the zone is known"),
    );
    let closed = days.closed(None, at("2026-03-08T12:00:00Z"), 25);
    assert_eq!(closed.left_out, 0);
    let day = Interval {
        start: at("2026-03-07T05:00:00Z"),
        end: at("2026-03-08T05:00:00Z"),
    };
    assert_eq!(closed.intervals, [day]);
    // The day itself begins at 01:00 and has 23 hours.
    let today = days.at(at("2026-03-08T12:00:00Z")).expect("there is one");
    assert_eq!((today.start, today.end), (day.end, at("2026-03-09T04:00:00Z")));
}

#[test]
fn a_day_that_a_zone_left_out_has_no_interval() {
    let days = Intervals::new(
        Step::one(Grain::Day),
        Zone::find("Pacific/Apia").expect("the zone is known"),
    );
    let closed = days.closed(Some(at("2011-12-28T10:00:00Z")), at("2012-01-01T12:00:00Z"), 25);
    let hours: Vec<_> = closed
        .intervals
        .iter()
        .map(|day| day.end.duration_since(day.start).as_hours())
        .collect();
    assert_eq!(hours, [24, 24, 24, 24]);
}

#[test]
fn weeks_and_years_begin_where_they_are_told_to() {
    let moment = at("2026-06-10T12:00:00Z");
    let week = |first| {
        let weeks = Intervals::new(Step::one(Grain::Week), Zone::UTC).weeks_from(first);
        weeks.at(moment).expect("there is one").start
    };
    assert_eq!(week(Weekday::Monday), at("2026-06-08T00:00:00Z"));
    assert_eq!(week(Weekday::Sunday), at("2026-06-07T00:00:00Z"));
    let start = |grain, month| {
        let intervals = Intervals::new(Step::one(grain), Zone::UTC).years_from(month);
        intervals.at(moment).expect("there is one").start
    };
    assert_eq!(start(Grain::Year, 4), at("2026-04-01T00:00:00Z"));
    assert_eq!(start(Grain::Year, 7), at("2025-07-01T00:00:00Z"));
    assert_eq!(start(Grain::Quarter, 2), at("2026-05-01T00:00:00Z"));
}

#[test]
fn a_mark_of_long_ago_costs_a_bounded_walk() {
    let seconds = Intervals::new(Step::one(Grain::Second), Zone::UTC);
    let closed = seconds.closed(Some(at("1970-01-01T00:00:00Z")), at("2026-06-10T12:00:00Z"), 25);
    assert_eq!((closed.intervals.len(), closed.left_out), (25, 199_975));
}

#[test]
fn a_step_is_one_unit() {
    let step: Step = "PT15M".parse().expect("the step is one");
    assert_eq!((step.count.get(), step.grain), (15, Grain::Minute));
    for text in [
        "", "P", "P1DT1H", "1 day", "P0D", "-P1D", "PT0.5S", "P1.5D", "PT1.5S", "D1",
    ] {
        assert!(text.parse::<Step>().is_err(), "{text}");
    }
}

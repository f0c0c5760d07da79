//! Windows in three zones, across changes of the clock, leap days and years.

use std::time::Duration;

use watershed_controller::Timestamp;
use watershed_schedule::Phase;

use crate::window::{BadWindow, Occurrence, Timed};

fn at(text: &str) -> Timestamp {
    let time: watershed_schedule::jiff::Timestamp = text.parse().unwrap();
    Timestamp(time.as_millisecond())
}

fn window(zone: &str, start: &str, end: &str) -> Occurrence {
    let timed = Timed::once(start, end).in_zone(zone);
    let plan = timed
        .plan()
        .unwrap_or_else(|bad| panic!("{start} to {end}: {bad}"));
    plan.at(Timestamp(0)).unwrap()
}

fn hours(window: &Occurrence) -> f64 {
    let minutes = u32::try_from((window.end.0 - window.start.0) / 60_000).unwrap();
    f64::from(minutes) / 60.0
}

/// M10.
#[test]
fn windows_in_three_zones_keep_to_the_clock_over_both_changes() {
    // Zone; start and end by its clock; start in universal time; length in hours.
    let table = [
        // Forward: what is skipped moves on by the gap, and a night loses an hour.
        (
            "Europe/Oslo",
            "2027-03-28T02:30",
            "2027-03-28T05:00",
            "2027-03-28T01:30:00Z",
            1.5,
        ),
        (
            "Europe/Oslo",
            "2027-03-28T01:00",
            "2027-03-28T02:30",
            "2027-03-28T00:00:00Z",
            1.5,
        ),
        (
            "Europe/Oslo",
            "2027-03-27T22:00",
            "2027-03-28T06:00",
            "2027-03-27T21:00:00Z",
            7.0,
        ),
        // Back: of what is shown twice the first is meant, and a night gains an hour.
        (
            "Europe/Oslo",
            "2027-10-31T02:30",
            "2027-10-31T05:00",
            "2027-10-31T00:30:00Z",
            3.5,
        ),
        (
            "Europe/Oslo",
            "2027-10-31T01:00",
            "2027-10-31T02:30",
            "2027-10-30T23:00:00Z",
            1.5,
        ),
        (
            "Europe/Oslo",
            "2027-10-30T22:00",
            "2027-10-31T06:00",
            "2027-10-30T20:00:00Z",
            9.0,
        ),
        (
            "America/New_York",
            "2027-03-14T02:30",
            "2027-03-14T05:00",
            "2027-03-14T07:30:00Z",
            1.5,
        ),
        (
            "America/New_York",
            "2027-03-13T22:00",
            "2027-03-14T06:00",
            "2027-03-14T03:00:00Z",
            7.0,
        ),
        (
            "America/New_York",
            "2027-11-07T01:30",
            "2027-11-07T05:00",
            "2027-11-07T05:30:00Z",
            4.5,
        ),
        (
            "America/New_York",
            "2027-11-06T22:00",
            "2027-11-07T06:00",
            "2027-11-07T02:00:00Z",
            9.0,
        ),
        // Half an hour, in the southern summer.
        (
            "Australia/Lord_Howe",
            "2027-10-03T02:15",
            "2027-10-03T04:00",
            "2027-10-02T15:45:00Z",
            1.25,
        ),
        (
            "Australia/Lord_Howe",
            "2027-10-02T22:00",
            "2027-10-03T06:00",
            "2027-10-02T11:30:00Z",
            7.5,
        ),
        (
            "Australia/Lord_Howe",
            "2027-04-04T01:45",
            "2027-04-04T04:00",
            "2027-04-03T14:45:00Z",
            2.75,
        ),
        (
            "Australia/Lord_Howe",
            "2027-04-03T22:00",
            "2027-04-04T06:00",
            "2027-04-03T11:00:00Z",
            8.5,
        ),
        // Leap day and the turn of the year.
        (
            "Europe/Oslo",
            "2028-02-28T12:00",
            "2028-03-01T12:00",
            "2028-02-28T11:00:00Z",
            48.0,
        ),
        (
            "Europe/Oslo",
            "2027-02-28T12:00",
            "2027-03-01T12:00",
            "2027-02-28T11:00:00Z",
            24.0,
        ),
        (
            "America/New_York",
            "2027-12-31T23:00",
            "2028-01-01T01:00",
            "2028-01-01T04:00:00Z",
            2.0,
        ),
        (
            "",
            "2027-03-01T09:00",
            "2027-03-01T11:00",
            "2027-03-01T09:00:00Z",
            2.0,
        ),
    ];
    for (zone, start, end, begins, length) in table {
        let found = window(zone, start, end);
        assert_eq!(found.start, at(begins), "{zone} from {start}");
        assert!(
            (hours(&found) - length).abs() < 1e-9,
            "{zone} from {start}: {} hours",
            hours(&found)
        );
        // Margins are elapsed time, whatever the clock does in them.
        assert_eq!(found.opening, Timestamp(found.start.0 - 15 * 60_000));
        assert_eq!(found.deadline, Timestamp(found.end.0 + 10 * 60_000));
    }
}

/// M10.
#[test]
fn windows_that_are_none_are_refused() {
    let refused = |timed: Timed| timed.plan().expect_err("it is refused");
    let once = |start: &str, end: &str| Timed::once(start, end);
    assert!(matches!(
        refused(once("2027-03-01T09:00", "2027-03-01T09:00")),
        BadWindow::Bounds(_)
    ));
    assert!(matches!(
        refused(once("2027-03-01T10:00", "2027-03-01T09:00")),
        BadWindow::Bounds(_)
    ));
    // Both ends in the gap come to the same moment only if they are the same; here the end comes first.
    let gap = once("2027-03-28T02:59", "2027-03-28T03:10").in_zone("Europe/Oslo");
    assert!(matches!(refused(gap), BadWindow::Bounds(_)));
    assert_eq!(
        refused(once("2027-02-29T09:00", "2027-03-01T09:00")),
        BadWindow::Time("2027-02-29T09:00".into())
    );
    assert_eq!(
        refused(once("x", "2027-03-01T09:00")),
        BadWindow::Time("x".into())
    );
    let nowhere = once("2027-03-01T09:00", "2027-03-01T10:00").in_zone("Moon/Base");
    assert_eq!(refused(nowhere), BadWindow::Zone("Moon/Base".into()));
    assert!(matches!(
        refused(Timed::cron("0 9 * *", Duration::from_secs(60))),
        BadWindow::Cron { .. }
    ));
    assert!(matches!(
        refused(Timed::cron("0 9 * * *", Duration::ZERO)),
        BadWindow::Bounds(_)
    ));
    let endless = Timed::cron("0 9 * * *", Duration::MAX);
    assert!(matches!(refused(endless), BadWindow::Bounds(_)));
}

/// M10: with a cron expression each occurrence is a window.
#[test]
fn recurring_windows_follow_one_another_over_clock_changes() {
    let timed = Timed::cron("0 9 * * *", Duration::from_secs(3600)).in_zone("Europe/Oslo");
    let plan = timed.plan().unwrap();
    let mut now = at("2027-03-26T00:00:00Z");
    let mut starts = Vec::new();
    let mut phases = Vec::new();
    for _ in 0..16 {
        let window = plan.at(now).unwrap();
        if starts.last() != Some(&window.start) {
            starts.push(window.start);
        }
        phases.push(window.phase(now));
        now = plan.next_boundary(now).unwrap();
    }
    let expected = [
        "2027-03-26T08:00:00Z",
        "2027-03-27T08:00:00Z",
        "2027-03-28T07:00:00Z",
        "2027-03-29T07:00:00Z",
    ];
    assert_eq!(starts[..4], expected.map(at));
    let day = [Phase::Before, Phase::Approaching, Phase::Active, Phase::Teardown];
    assert_eq!(phases[..8], [day, day].concat());
}

/// M10: `end` only moves later, `start` only before the lead.
#[test]
fn a_window_may_be_moved_only_as_far_as_the_rules_say() {
    let minutes = |opening, start, end, deadline| Occurrence {
        opening: Timestamp(opening),
        start: Timestamp(start),
        end: Timestamp(end),
        deadline: Timestamp(deadline),
    };
    let accepted = minutes(10, 20, 30, 40);
    let later = minutes(10, 20, 31, 41);
    let earlier = minutes(10, 20, 29, 39);
    let moved = minutes(15, 25, 35, 45);
    for now in 0..50 {
        let now = Timestamp(now);
        let is_over = now.0 >= 40;
        assert_eq!(accepted.may_follow(&accepted, now), Ok(()));
        assert_eq!(later.may_follow(&accepted, now), Ok(()));
        assert_eq!(earlier.may_follow(&accepted, now).is_ok(), is_over);
        assert_eq!(moved.may_follow(&accepted, now).is_ok(), is_over || now.0 < 10);
        let boundary = [10, 20, 30, 40].into_iter().find(|at| *at > now.0);
        assert_eq!(accepted.next_boundary(now), boundary.map(Timestamp));
    }
    assert!(minutes(0, 21, 29, 40).is_within(&accepted));
    assert!(!minutes(0, 19, 29, 40).is_within(&accepted) && !minutes(0, 21, 31, 40).is_within(&accepted));
}

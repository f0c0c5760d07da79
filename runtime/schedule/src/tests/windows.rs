//! Tests of the phases of windows.

use jiff::SignedDuration;

use super::reference::{Pattern, minutes};
use super::{ZONES, at, later};
use crate::{Cron, Margins, Phase, Recurrence, Window, WindowError, Zone};

fn margins(lead: i64, teardown: i64) -> Margins {
    Margins {
        lead: SignedDuration::from_mins(lead),
        teardown: SignedDuration::from_mins(teardown),
    }
}

#[test]
fn each_boundary_opens_the_next_phase() {
    let start = at("2027-03-01T09:00:00Z");
    let window = Window::new(start, later(start, 7_200), margins(15, 10)).expect("the window is one");
    let mut now = later(start, -86_400);
    let mut phases = vec![window.phase(now)];
    while let Some(boundary) = window.next_boundary(now) {
        assert_eq!(window.phase(later(boundary, -1)), phases[phases.len() - 1]);
        phases.push(window.phase(boundary));
        now = boundary;
    }
    assert_eq!(
        phases,
        [
            Phase::Before,
            Phase::Approaching,
            Phase::Active,
            Phase::Teardown,
            Phase::Expired
        ]
    );
    assert_eq!(now, window.deadline());
    assert_eq!(
        (window.opening(), window.deadline()),
        (later(start, -900), later(start, 7_800))
    );
}

#[test]
fn a_window_that_is_none_is_refused() {
    let start = at("2027-03-01T09:00:00Z");
    assert_eq!(Window::new(start, start, Margins::NONE), Err(WindowError::Empty));
    assert_eq!(
        Window::new(start, later(start, 60), margins(0, -1)),
        Err(WindowError::Negative { margin: "teardown" })
    );
    let end = jiff::Timestamp::MAX;
    assert_eq!(
        Window::new(start, end, margins(0, 1)),
        Err(WindowError::OutOfRange)
    );
    let cron = Cron::parse("@daily").expect("the expression is one");
    let recurrence = Recurrence::new(cron, Zone::UTC, SignedDuration::ZERO, Margins::NONE);
    assert_eq!(recurrence, Err(WindowError::Empty));
}

#[test]
fn a_part_lies_within_its_owner_up_to_the_boundaries() {
    let window = |from, to| {
        let start = at("2027-03-01T09:00:00Z");
        Window::new(later(start, from), later(start, to), margins(15, 10)).expect("the window is one")
    };
    assert!(window(0, 60).is_within(&window(0, 60)));
    assert!(!window(-1, 60).is_within(&window(0, 60)));
    assert!(!window(0, 61).is_within(&window(0, 60)));
}

/// Compares windows with a reference at every minute of the days around both clock changes. The reference lists all
/// occurrences and applies the three rules literally.
#[test]
fn recurring_windows_equal_a_reference_around_clock_changes() {
    // Apart; each lead inside the teardown before; each window into the next one.
    let shapes = [
        ("30 2 * * *", 90, 15, 10),
        ("0 */2 * * *", 60, 50, 40),
        ("15 * * * *", 100, 5, 5),
    ];
    for zone in ZONES {
        let minutes = minutes(zone, 2026, 2027);
        let place = Zone::find(zone).expect("the zone is known");
        for (text, length, lead, teardown) in shapes {
            let starts = Pattern::read(text).due(&minutes);
            let cron = Cron::parse(text).expect("the expression is one");
            let length = SignedDuration::from_mins(length);
            let recurrence =
                Recurrence::new(cron, place.clone(), length, margins(lead, teardown)).expect("windows");
            let mut boundary = None;
            let mut before = None;
            for (number, minute) in minutes.iter().enumerate().skip(3_000) {
                let from = number.saturating_sub(2_000);
                let changes = minutes
                    .get(number + 2_000)
                    .is_none_or(|ahead| ahead.offset != minutes[from].offset);
                if !changes || number + 3_000 > minutes.len() {
                    (boundary, before) = (None, None);
                    continue;
                }
                let now = minute.instant;
                let next = starts.partition_point(|start| *start <= now);
                let (last, next) = (starts[next - 1], starts[next]);
                let lead = SignedDuration::from_mins(lead);
                let teardown = SignedDuration::from_mins(teardown);
                let (start, phase) = if now < last + length {
                    (last, Phase::Active)
                } else if now >= next - lead {
                    (next, Phase::Approaching)
                } else if now < last + length + teardown {
                    (last, Phase::Teardown)
                } else {
                    (next, Phase::Before)
                };
                let window = recurrence.at(now).expect("there is one");
                assert_eq!(
                    (window.start(), window.phase(now)),
                    (start, phase),
                    "{text} in {zone} at {now}"
                );
                if before.is_some_and(|before| before != (start, phase)) {
                    assert_eq!(
                        boundary,
                        Some(now),
                        "{text} in {zone}: the change at {now} was announced"
                    );
                }
                before = Some((start, phase));
                if boundary.is_none_or(|boundary| boundary <= now) {
                    boundary = recurrence.next_boundary(now);
                }
            }
        }
    }
}

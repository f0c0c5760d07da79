//! Property tests of due times.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::later;
use crate::{Cron, Due, Schedule, Zone};

fn expression() -> impl Strategy<Value = String> {
    let minute = prop_oneof![
        Just("*".to_owned()),
        Just("*/15".to_owned()),
        (0..60).prop_map(|m: i32| m.to_string())
    ];
    let hour = prop_oneof![
        Just("*".to_owned()),
        Just("*/3".to_owned()),
        (0..24).prop_map(|h: i32| h.to_string()),
        (0..12).prop_map(|h: i32| format!("{h}-{}", h + 5)),
        (0..20).prop_map(|h: i32| format!("{h},{}", h + 2)),
    ];
    let day = prop_oneof![3 => Just("*".to_owned()), 1 => (1..29).prop_map(|d: i32| d.to_string()), 1 => Just("L".to_owned())];
    let month = prop_oneof![3 => Just("*".to_owned()), 1 => (1..13).prop_map(|m: i32| m.to_string())];
    let weekday = prop_oneof![3 => Just("*".to_owned()), 1 => (0..8).prop_map(|d: i32| d.to_string())];
    (minute, hour, day, month, weekday).prop_map(|(m, h, d, n, w)| format!("{m} {h} {d} {n} {w}"))
}

fn zone() -> impl Strategy<Value = Zone> {
    let names = [
        "America/New_York",
        "Australia/Lord_Howe",
        "America/Havana",
        "Europe/Oslo",
        "Asia/Kathmandu",
        "UTC",
    ];
    prop::sample::select(names.to_vec()).prop_map(|name| Zone::find(name).expect("the zone is known"))
}

/// Generates instants within half a century, to the millisecond.
fn moment() -> impl Strategy<Value = Timestamp> {
    let from = 946_684_800_000_i64;
    (from..from + 1_577_880_000_000)
        .prop_map(|ms| Timestamp::from_millisecond(ms).expect("the moment is representable"))
}

proptest! {
    #[test]
    fn the_next_is_later_and_the_last_is_not(text in expression(), zone in zone(), moment in moment()) {
        let cron = Cron::parse(&text).expect("the expression is one");
        let next = cron.next_after(moment, &zone).expect("there is a next");
        let last = cron.last_until(moment, &zone).expect("there is a last");
        prop_assert!(last <= moment && moment < next);
        // Nothing is due between the two.
        prop_assert_eq!(cron.next_after(last, &zone), Some(next));
        prop_assert_eq!(cron.last_until(later(next, -1), &zone), Some(last));
        prop_assert_eq!(cron.last_until(next, &zone), Some(next));
    }

    #[test]
    fn a_schedule_is_due_exactly_from_its_time_on(
        text in expression(), zone in zone(), mark in moment(), every in 1..1_000_000_i64,
    ) {
        let cron = Cron::parse(&text).expect("the expression is one");
        let every = SignedDuration::from_secs(every);
        let schedule = Schedule::cron(cron.clone(), zone.clone()).or_every(every).expect("the interval is long enough");
        let next = schedule.next_after(mark).expect("there is a next");
        prop_assert_eq!(next, (mark + every).min(cron.next_after(mark, &zone).expect("there is a next")));
        prop_assert_eq!(schedule.due(mark, later(next, -1)), Due::Later(next));
        let Due::Now(tick) = schedule.due(mark, next) else { panic!("due at its time") };
        prop_assert_eq!((tick.time, tick.first, tick.missed), (next, next, 0));
    }

    #[test]
    fn a_tick_stands_for_all_that_was_missed(
        text in expression(), zone in zone(), mark in moment(), every in 60..1_000_000_i64, slept in 0..2_000_000_i64,
    ) {
        let cron = Cron::parse(&text).expect("the expression is one");
        let now = later(mark, slept);
        let mut expected = std::collections::BTreeSet::new();
        let mut due = cron.next_after(mark, &zone);
        while let Some(time) = due.filter(|time| *time <= now) {
            expected.insert(time);
            due = cron.next_after(time, &zone);
        }
        let times = slept / every;
        expected.extend((1..=times).map(|times| later(mark, times * every)));
        let schedule = Schedule::cron(cron, zone).or_every(SignedDuration::from_secs(every)).expect("long enough");
        match schedule.due(mark, now) {
            Due::Now(tick) => {
                prop_assert_eq!(Some(&tick.first), expected.first());
                prop_assert_eq!(Some(&tick.time), expected.last());
                prop_assert_eq!(tick.missed, (expected.len() as u64 - 1).min(1_000));
            }
            Due::Later(next) => prop_assert!(expected.is_empty() && next > now),
            other => prop_assert!(false, "{:?}", other),
        }
    }
}

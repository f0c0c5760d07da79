//! Tests of processes under a simulated clock: they sleep, and their clock jumps.

use jiff::{SignedDuration, Timestamp};

use super::reference::{Pattern, minutes};
use super::{ZONES, at, later};
use crate::{Concurrency, Cron, Decision, Due, REWIND_TOLERANCE, Schedule, ScheduleError, Tick, Timer, Zone};

/// Random number generator, with equal numbers for equal seeds.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: i64) -> i64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((self.0 >> 33) % bound.unsigned_abs()).expect("the bound is small")
    }
}

fn timer(text: &str, zone: &str, mark: Timestamp) -> Timer {
    let cron = Cron::parse(text).expect("the expression is one");
    Timer::new(
        Schedule::cron(cron, Zone::find(zone).expect("the zone is known")),
        mark,
    )
}

#[test]
fn a_process_that_sleeps_at_random_runs_every_time_once_or_as_missed() {
    for (seed, zone) in ZONES.iter().enumerate() {
        let minutes = minutes(zone, 2026, 2027);
        for text in ["30 2 * * *", "0 * * * *", "0 0 1,15 * *"] {
            let due = Pattern::read(text).due(&minutes);
            let mut dice = Dice(seed as u64);
            let (mut now, end) = (minutes[0].instant, minutes[minutes.len() - 1].instant);
            let mut timer = timer(text, zone, later(now, -1));
            let mut seen = 0;
            while now < end {
                match timer.poll(now) {
                    Due::Now(tick) => {
                        let count = due.partition_point(|due| *due <= now);
                        assert!(count > seen, "{text} in {zone}: nothing new at {now}");
                        let missed = (count - seen - 1) as u64;
                        let expected = Tick {
                            time: due[count - 1],
                            first: due[seen],
                            missed: missed.min(1_000),
                        };
                        assert_eq!(tick, expected, "{text} in {zone} at {now}, seed {seed}");
                        seen = count;
                    }
                    Due::Later(next) => {
                        assert_eq!(
                            due.partition_point(|due| *due <= now),
                            seen,
                            "{text} in {zone} at {now}"
                        );
                        // It wakes on time, or much later.
                        let oversleeps = dice.below(10) == 0;
                        now = if oversleeps {
                            later(next, dice.below(3_000_000))
                        } else {
                            next
                        };
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

#[test]
fn a_clock_that_goes_back_a_little_repeats_nothing() {
    let mut timer = timer("*/30 * * * *", "UTC", at("2026-06-01T11:59:00Z"));
    let noon = at("2026-06-01T12:00:00Z");
    assert!(matches!(timer.poll(noon), Due::Now(_)));
    for seconds in [1, 600, 3_600, 3 * 3_600] {
        assert_eq!(
            timer.poll(later(noon, -seconds)),
            Due::Later(at("2026-06-01T12:30:00Z"))
        );
    }
    assert!(matches!(
        timer.poll(later(noon, 1_800)),
        Due::Now(Tick { missed: 0, .. })
    ));
}

#[test]
fn a_clock_that_was_years_ahead_does_not_stop_the_schedule() {
    let mut timer = timer("0 6 * * *", "Europe/Oslo", at("2026-06-01T00:00:00Z"));
    assert!(matches!(
        timer.poll(at("2031-01-01T00:00:00Z")),
        Due::Now(Tick { missed: 1_000, .. })
    ));
    assert_eq!(
        timer.poll(at("2026-06-01T12:00:00Z")),
        Due::Later(at("2026-06-02T04:00:00Z"))
    );
    assert_eq!(timer.mark(), at("2026-06-01T12:00:00Z"));
    assert!(matches!(
        timer.poll(at("2026-06-02T04:00:00Z")),
        Due::Now(Tick { missed: 0, .. })
    ));
}

#[test]
fn a_schedule_alone_says_that_its_mark_can_not_be_trusted() {
    let every = Schedule::every(SignedDuration::from_mins(5)).expect("the interval is long enough");
    let now = at("2026-06-01T00:00:00Z");
    assert_eq!(
        every.due(now + REWIND_TOLERANCE, now),
        Due::Later(at("2026-06-01T03:05:00Z"))
    );
    assert_eq!(every.due(later(now + REWIND_TOLERANCE, 1), now), Due::Rewound);
    assert_eq!(Schedule::NEVER.due(now, now), Due::Never);
    assert_eq!(
        Schedule::every(SignedDuration::from_millis(999)),
        Err(ScheduleError)
    );
}

#[test]
fn a_run_for_another_reason_starts_the_interval_anew() {
    let every = Schedule::every(SignedDuration::from_hours(1)).expect("the interval is long enough");
    let mut timer = Timer::new(every.clone(), at("2026-06-01T00:00:00Z"));
    timer.ran(at("2026-06-01T00:40:00Z"));
    assert_eq!(
        timer.poll(at("2026-06-01T01:00:00Z")),
        Due::Later(at("2026-06-01T01:40:00Z"))
    );
    timer.reschedule(Schedule::every(SignedDuration::from_mins(15)).expect("the interval is long enough"));
    let Due::Now(tick) = timer.poll(at("2026-06-01T01:00:00Z")) else {
        panic!("due")
    };
    assert_eq!((tick.time, tick.missed), (at("2026-06-01T00:55:00Z"), 0));
}

#[test]
fn the_end_of_representable_time_is_no_due_time() {
    for text in ["0 0 1 1 *", "* * * * *"] {
        let mut timer = timer(text, "America/New_York", Timestamp::MAX);
        assert_eq!(timer.poll(Timestamp::MAX), Due::Never);
        let cron = Cron::parse(text).expect("the expression is one");
        assert_eq!(cron.last_until(Timestamp::MIN, &Zone::UTC), None);
    }
}

#[test]
fn overlapping_runs_are_skipped_or_replaced() {
    assert_eq!(Concurrency::Forbid.decide(false), Decision::Start);
    assert_eq!(Concurrency::Replace.decide(false), Decision::Start);
    assert_eq!(Concurrency::Forbid.decide(true), Decision::Skip);
    assert_eq!(Concurrency::Replace.decide(true), Decision::Replace);
}

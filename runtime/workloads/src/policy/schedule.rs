//! Ticks of a scheduled job (rule W8).

use watershed_core::Timestamp;
use watershed_schedule::jiff::Timestamp as Instant;
use watershed_schedule::{Concurrency, Due, Schedule};

/// The decision about a job's ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Run for this scheduled time, which becomes the mark; earlier missed ticks are included.
    Run(Timestamp),
    /// Stop the current run, then run for this scheduled time, which becomes the mark.
    Replace(Timestamp),
    /// Skip the tick because of the current run. Its time becomes the mark, so the tick is not made up for.
    Skip(Timestamp),
    /// Wait until this time, before which nothing is due.
    Wait(Timestamp),
    /// Wait for ever, since the schedule has no further time.
    Never,
    /// The clock was set back so far that the mark is useless. `now` becomes the mark; decide again.
    Rewound,
}

/// Decides about the ticks of a job that has run up to `mark` (W8). Missed ticks run once; a tick during a run is
/// skipped or replaces the run.
///
/// A job that has a schedule runs for ticks and refreshes alone. For a new one the mark is the time of its creation.
pub fn decide(
    schedule: &Schedule,
    concurrency: Concurrency,
    mark: Timestamp,
    is_running: bool,
    now: Timestamp,
) -> Decision {
    use watershed_schedule::Decision as Tick;
    match schedule.due(instant(mark), instant(now)) {
        Due::Never => Decision::Never,
        Due::Rewound => Decision::Rewound,
        Due::Later(time) => Decision::Wait(timestamp(time)),
        Due::Now(tick) => match concurrency.decide(is_running) {
            Tick::Start => Decision::Run(timestamp(tick.time)),
            Tick::Skip => Decision::Skip(timestamp(tick.time)),
            Tick::Replace => Decision::Replace(timestamp(tick.time)),
        },
    }
}

/// Converts a time for the calendar, clamped to its range.
fn instant(time: Timestamp) -> Instant {
    let nearest = if time.0 < 0 { Instant::MIN } else { Instant::MAX };
    Instant::from_millisecond(time.0).unwrap_or(nearest)
}

/// Converts a scheduled time for the controller. Exact, since scheduled times are whole seconds after a mark in
/// milliseconds.
fn timestamp(instant: Instant) -> Timestamp {
    Timestamp(instant.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_schedule::{Cron, Zone};

    const HOUR: i64 = 3_600_000;

    fn hours(count: i64) -> Timestamp {
        Timestamp(count * HOUR)
    }

    /// Covers W8: decisions by mark, time, current run and policy.
    #[test]
    fn a_tick_runs_once_and_is_skipped_or_replaces_during_a_run() {
        let hourly = Schedule::cron(Cron::parse("0 * * * *").unwrap(), Zone::UTC);
        let [forbid, replace] = [Concurrency::Forbid, Concurrency::Replace];
        let wait = Decision::Wait(hours(11));
        for (now, running, concurrency, expected) in [
            (10 * HOUR, false, forbid, wait),
            (10 * HOUR + 1, true, forbid, wait),
            (11 * HOUR - 1, true, replace, wait),
            (11 * HOUR, false, forbid, Decision::Run(hours(11))),
            (11 * HOUR, false, replace, Decision::Run(hours(11))),
            (11 * HOUR, true, forbid, Decision::Skip(hours(11))),
            (11 * HOUR, true, replace, Decision::Replace(hours(11))),
            (15 * HOUR + 7, false, forbid, Decision::Run(hours(15))),
            (15 * HOUR + 7, true, forbid, Decision::Skip(hours(15))),
            (15 * HOUR + 7, true, replace, Decision::Replace(hours(15))),
            (8 * HOUR, false, forbid, wait),
            (6 * HOUR, false, forbid, Decision::Rewound),
            (6 * HOUR, true, replace, Decision::Rewound),
        ] {
            let found = decide(&hourly, concurrency, hours(10), running, Timestamp(now));
            assert_eq!(found, expected, "{now} {running} {concurrency:?}");
        }
        let never = decide(&Schedule::NEVER, forbid, hours(0), false, hours(9));
        assert_eq!(never, Decision::Never);
    }

    #[test]
    fn times_out_of_the_calendar_are_the_nearest_ones_in_it() {
        let daily = Schedule::cron(Cron::parse("@daily").unwrap(), Zone::UTC);
        let [first, last] = [Timestamp(i64::MIN), Timestamp(i64::MAX)];
        assert_eq!(
            decide(&daily, Concurrency::Forbid, last, false, first),
            Decision::Rewound
        );
        assert_eq!(
            decide(&daily, Concurrency::Forbid, last, false, last),
            Decision::Never
        );
    }
}

//! Timers: a schedule with the time up to which it has run.

use jiff::Timestamp;

use crate::{Due, Schedule};

/// A schedule with its mark: the time up to which it has run.
///
/// The mark is all that has to be stored. A process that slept asks once when it wakes, and gets one tick for all the
/// times that it missed; a clock that jumps forward is no different.
///
/// ```
/// use watershed_schedule::{Cron, Due, Schedule, Timer, Zone};
///
/// let daily = Schedule::cron(Cron::parse("@daily")?, Zone::UTC);
/// let mut timer = Timer::new(daily, "2026-11-01T12:00:00Z".parse()?);
/// // The laptop was closed for three days.
/// let Due::Now(tick) = timer.poll("2026-11-04T08:00:00Z".parse()?) else { panic!("due") };
/// assert_eq!((tick.time, tick.missed), ("2026-11-04T00:00:00Z".parse()?, 2));
/// assert_eq!(timer.poll("2026-11-04T08:00:00Z".parse()?), Due::Later("2026-11-05T00:00:00Z".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timer {
    schedule: Schedule,
    mark: Timestamp,
}

impl Timer {
    /// Creates a timer that has run up to `mark`. For new work, that is the time of creation.
    pub fn new(schedule: Schedule, mark: Timestamp) -> Self {
        Self { schedule, mark }
    }

    /// Returns the time up to which the timer has run, which is all that must be stored.
    pub fn mark(&self) -> Timestamp {
        self.mark
    }

    /// Replaces the schedule and keeps the mark.
    pub fn reschedule(&mut self, schedule: Schedule) {
        self.schedule = schedule;
    }

    /// Moves the mark after work that was done for another reason than the schedule, such as a request.
    pub fn ran(&mut self, mark: Timestamp) {
        self.mark = mark;
    }

    /// Determines whether the timer is due. A tick moves the mark, so that it is returned once; never [`Due::Rewound`].
    pub fn poll(&mut self, now: Timestamp) -> Due {
        let mut due = self.schedule.due(self.mark, now);
        if due == Due::Rewound {
            self.mark = now;
            due = self.schedule.due(self.mark, now);
        }
        if let Due::Now(tick) = due {
            self.mark = tick.time;
        }
        due
    }
}

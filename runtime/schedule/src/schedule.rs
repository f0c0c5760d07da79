//! Schedules: a cron expression, an interval, or both.

use jiff::{SignedDuration, Timestamp};

use crate::{Cron, Zone};

/// Largest step back of a clock that is still tolerated.
///
/// A correction by a time server, or a machine that was set to local time for a moment, must not run everything again:
/// times that have run are not repeated. A clock that goes back further was wrong before, and schedules follow it from
/// where it is now. Vixie cron draws the line at three hours too.
pub const REWIND_TOLERANCE: SignedDuration = SignedDuration::from_hours(3);

/// Maximum number of missed times that are counted one by one; larger numbers are reported as this.
const MAX_COUNTED: u64 = 1_000;

/// A rule of due times, given the mark: the time up to which the work is done.
///
/// With a cron expression and an interval it is due by whichever comes first. Which mark to use is the caller's
/// choice: the [time of the last tick](Tick::time) gives an even grid, the end of the last run gives at least `every`
/// between two runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    cron: Option<Cron>,
    every: Option<SignedDuration>,
    zone: Zone,
}

/// Error of an interval that is too short for a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an interval must be at least a second long")]
pub struct ScheduleError;

/// Answer of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Due now. The next mark is the tick's time or the end of the run, as the caller chooses.
    Now(Tick),
    /// Due at this later time.
    Later(Timestamp),
    /// Never due, neither now nor later.
    Never,
    /// The clock went back so far that the mark can't be trusted. The caller must set its mark to `now` and ask again,
    /// as [`Timer`](crate::Timer) does.
    Rewound,
}

/// A due time, together with the missed times before it, so that they run once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    /// Latest due time that has come.
    pub time: Timestamp,
    /// Earliest due time that this tick stands for: [`time`](Self::time) itself if none was missed.
    pub first: Timestamp,
    /// Number of earlier due times that were missed, at most 1,000.
    pub missed: u64,
}

impl Schedule {
    /// A schedule that is never due by itself.
    pub const NEVER: Self = Self {
        cron: None,
        every: None,
        zone: Zone::UTC,
    };

    /// Creates a schedule that follows a cron expression in a time zone.
    pub fn cron(cron: Cron, zone: Zone) -> Self {
        Self {
            cron: Some(cron),
            zone,
            ..Self::NEVER
        }
    }

    /// Creates a schedule that is due at this interval after the mark.
    ///
    /// # Errors
    /// [`ScheduleError`] if `every` is shorter than a second.
    pub fn every(every: SignedDuration) -> Result<Self, ScheduleError> {
        Self::NEVER.or_every(every)
    }

    /// Adds an interval. The schedule is then due at the earlier of both times.
    ///
    /// # Errors
    /// [`ScheduleError`] if `every` is shorter than a second.
    pub fn or_every(self, every: SignedDuration) -> Result<Self, ScheduleError> {
        if every < SignedDuration::from_secs(1) {
            return Err(ScheduleError);
        }
        Ok(Self {
            every: Some(every),
            ..self
        })
    }

    /// Returns the time zone of the cron expression.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Returns the first due time after a mark, if any.
    pub fn next_after(&self, mark: Timestamp) -> Option<Timestamp> {
        let cron = self
            .cron
            .as_ref()
            .and_then(|cron| cron.next_after(mark, &self.zone));
        let every = self.every.and_then(|every| mark.checked_add(every).ok());
        earliest(cron, every)
    }

    /// Determines whether work last done at `mark` is due `now`, or when it will be.
    pub fn due(&self, mark: Timestamp, now: Timestamp) -> Due {
        if !is_trusted(mark, now) {
            return Due::Rewound;
        }
        match self.next_after(mark) {
            None => Due::Never,
            Some(first) if first > now => Due::Later(first),
            Some(first) => Due::Now(self.tick(mark, first, now)),
        }
    }

    /// Returns the tick for every due time from `first` to `now`.
    fn tick(&self, mark: Timestamp, first: Timestamp, now: Timestamp) -> Tick {
        let cron = self
            .cron
            .as_ref()
            .and_then(|cron| cron.last_until(now, &self.zone));
        let every = self.every.and_then(|every| last_multiple(mark, every, now));
        let time = cron.into_iter().chain(every).fold(first, Timestamp::max);
        let mut missed = 0;
        let mut next = Some(first);
        while let Some(earlier) = next.filter(|earlier| *earlier < time && missed < MAX_COUNTED) {
            missed += 1;
            next = self.following(mark, earlier);
        }
        Tick { time, first, missed }
    }

    /// Returns the due time after another one, with the mark unchanged.
    fn following(&self, mark: Timestamp, time: Timestamp) -> Option<Timestamp> {
        let cron = self
            .cron
            .as_ref()
            .and_then(|cron| cron.next_after(time, &self.zone));
        let every = self.every.and_then(|every| {
            let last = last_multiple(mark, every, time).unwrap_or(mark);
            last.checked_add(every).ok()
        });
        earliest(cron, every)
    }
}

/// Returns true unless a mark lies so far in the future that the clock behind it was wrong, see [`REWIND_TOLERANCE`].
pub fn is_trusted(mark: Timestamp, now: Timestamp) -> bool {
    mark.duration_since(now) <= REWIND_TOLERANCE
}

/// Returns the latest `mark + n * every`, with n at least 1, that is not after `now`.
fn last_multiple(mark: Timestamp, every: SignedDuration, now: Timestamp) -> Option<Timestamp> {
    let times = now.duration_since(mark).as_nanos() / every.as_nanos();
    if times < 1 {
        return None;
    }
    let nanos = mark.as_nanosecond() + times * every.as_nanos();
    Timestamp::from_nanosecond(nanos).ok()
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

//! Intervals of a calendar, for work that is done once for each.

use std::collections::VecDeque;

use jiff::civil::{Date, Time, Weekday};
use jiff::{SignedDuration, Timestamp, ToSpan as _};

use crate::{Grain, Step, Zone};

/// Seconds in each unit below a day.
const SECONDS: [(Grain, i64); 3] = [(Grain::Second, 1), (Grain::Minute, 60), (Grain::Hour, 3_600)];

/// Maximum number of intervals visited by one call, so that short intervals since a time long ago cost only a fraction
/// of a second.
const MAX_WALKED: usize = 200_000;

/// A calendar cut into intervals of equal steps, without gaps.
///
/// Steps of a day or more follow the zone's dates: an interval begins with the first instant of its first day, so a day
/// has 23 or 25 hours where the clock is changed. Shorter steps follow the clock with the offset in force: a repeated
/// hour is two intervals, and a clock change that falls inside of an interval ends it. Steps of several units are counted
/// from 1970, steps of several weeks from the first whole week of that year.
///
/// ```
/// use watershed_schedule::{Intervals, Zone};
///
/// let days = Intervals::new("P1D".parse()?, Zone::find("America/New_York")?);
/// let closed = days.closed(Some("2026-10-31T04:00:00Z".parse()?), "2026-11-02T12:00:00Z".parse()?, 25);
/// let hours: Vec<i64> = closed.intervals.iter().map(|day| day.end.duration_since(day.start).as_hours()).collect();
/// assert_eq!(hours, [24, 25]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intervals {
    step: Step,
    zone: Zone,
    first_day_of_week: Weekday,
    /// Number of the month in which years begin, 1 to 12.
    first_month_of_year: i8,
}

/// A span of time that includes its start and excludes its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// First instant of the interval.
    pub start: Timestamp,
    /// First instant after the interval.
    pub end: Timestamp,
}

/// Intervals that have closed since the last one handled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Closed {
    /// Newest closed intervals, oldest first.
    pub intervals: Vec<Interval>,
    /// Number of older intervals that were left out, at most 200,000.
    pub left_out: u64,
}

impl Intervals {
    /// Cuts a zone's calendar into steps. Weeks begin on Monday, years in January.
    pub fn new(step: Step, zone: Zone) -> Self {
        Self {
            step,
            zone,
            first_day_of_week: Weekday::Monday,
            first_month_of_year: 1,
        }
    }

    /// Sets the day on which weeks begin.
    #[must_use]
    pub fn weeks_from(self, first_day_of_week: Weekday) -> Self {
        Self {
            first_day_of_week,
            ..self
        }
    }

    /// Sets the month, 1 to 12, in which years begin, and so the quarters. Other numbers are clamped to that range.
    #[must_use]
    pub fn years_from(self, first_month_of_year: i8) -> Self {
        Self {
            first_month_of_year: first_month_of_year.clamp(1, 12),
            ..self
        }
    }

    /// Returns the interval that contains a moment. `None` only near the ends of representable time.
    pub fn at(&self, moment: Timestamp) -> Option<Interval> {
        match SECONDS.iter().find(|(grain, _)| *grain == self.step.grain) {
            Some((_, seconds)) => self.by_clock(moment, seconds * i64::from(self.step.count.get())),
            None => self.by_date(moment),
        }
    }

    /// Returns the newest `limit` intervals that begin at or after `since` and end by `until`. `since` is the end of
    /// the last interval handled; without it, only the newest closed interval is returned.
    pub fn closed(&self, since: Option<Timestamp>, until: Timestamp, limit: usize) -> Closed {
        let Some(open) = self.at(until) else {
            return Closed::default();
        };
        let limit = if since.is_none() { limit.min(1) } else { limit };
        let mut kept = VecDeque::new();
        let mut left_out = 0;
        let mut end = open.start;
        // From the newest back: a limit is reached soon, and what is left out has only to be counted.
        for _ in 0..MAX_WALKED {
            let before = end.checked_sub(SignedDuration::from_nanos(1)).ok();
            let Some(interval) = before.and_then(|before| self.at(before)) else {
                break;
            };
            if since.is_some_and(|since| interval.start < since) {
                break;
            }
            if kept.len() < limit {
                kept.push_front(interval);
            } else if since.is_none() {
                break;
            } else {
                left_out += 1;
            }
            end = interval.start;
        }
        Closed {
            intervals: kept.into(),
            left_out,
        }
    }

    /// Returns an interval of this many seconds, cut short where the clock is changed.
    fn by_clock(&self, moment: Timestamp, seconds: i64) -> Option<Interval> {
        let offset = i64::from(self.zone.offset(moment).seconds());
        let shown = moment.as_second() + offset - i64::from(moment.subsec_nanosecond() < 0);
        let from = shown.div_euclid(seconds) * seconds - offset;
        let start = Timestamp::from_second(from).ok()?;
        let end = Timestamp::from_second(from + seconds).ok()?;
        let changed = self.zone.last_change(moment);
        let changes = self.zone.next_change(moment);
        Some(Interval {
            start: changed.map_or(start, |changed| changed.max(start)),
            end: changes.map_or(end, |changes| changes.min(end)),
        })
    }

    /// Returns an interval of whole days.
    fn by_date(&self, moment: Timestamp) -> Option<Interval> {
        let date = self.zone.local(moment).date();
        let (first, after) = self.dates(date)?;
        let interval = Interval {
            start: self.beginning(first)?,
            end: self.beginning(after)?,
        };
        if moment < interval.end {
            return Some(interval);
        }
        // A clock that is set back over midnight shows the day before once more: it has ended, and the new one goes on.
        let (first, after) = self.dates(after)?;
        Some(Interval {
            start: self.beginning(first)?,
            end: self.beginning(after)?,
        })
    }

    /// Returns the first day of the interval that contains a day, and the first day after the interval.
    fn dates(&self, date: Date) -> Option<(Date, Date)> {
        let count = i32::try_from(self.step.count.get()).ok()?;
        match self.step.grain {
            Grain::Week => self.days(date, count.checked_mul(7)?, self.first_week()),
            Grain::Month => self.months(date, count, 1),
            Grain::Quarter => self.months(date, count.checked_mul(3)?, self.first_month_of_year),
            Grain::Year => self.months(date, count.checked_mul(12)?, self.first_month_of_year),
            _ => self.days(date, count, Date::constant(1970, 1, 1)),
        }
    }

    fn days(&self, date: Date, days: i32, origin: Date) -> Option<(Date, Date)> {
        let since = origin.until(date).ok()?.get_days();
        let first = origin
            .checked_add(since.div_euclid(days).checked_mul(days)?.days())
            .ok()?;
        Some((first, first.checked_add(days.days()).ok()?))
    }

    fn months(&self, date: Date, months: i32, first_month: i8) -> Option<(Date, Date)> {
        let origin = 1970 * 12 + i32::from(first_month) - 1;
        let month = i32::from(date.year()) * 12 + i32::from(date.month()) - 1;
        let first = origin + (month - origin).div_euclid(months) * months;
        Some((first_of(first)?, first_of(first.checked_add(months)?)?))
    }

    /// Returns the first day of the first whole week of 1970.
    fn first_week(&self) -> Date {
        let new_year = Date::constant(1970, 1, 1);
        let days = self.first_day_of_week.since(new_year.weekday());
        new_year.saturating_add(i64::from(days).days())
    }

    /// Returns the first instant of a day, which is later than midnight if the clock skips it. If the clock shows
    /// midnight twice, the first counts.
    fn beginning(&self, date: Date) -> Option<Timestamp> {
        self.zone.once(date.to_datetime(Time::midnight()))
    }
}

/// Returns the first day of a month, given the number of months since the year 0.
fn first_of(months: i32) -> Option<Date> {
    let year = i16::try_from(months.div_euclid(12)).ok()?;
    let month = i8::try_from(months.rem_euclid(12) + 1).ok()?;
    Date::new(year, month, 1).ok()
}

//! Resolution of range expressions to instants.

use jiff::{SignedDuration, Timestamp};
use watershed_schedule::Grain;

use super::error::RangeError;
use super::expression::{Base, Expression, Interval, Part, Point, Shift};
use super::length::Length;
use super::position::Position;
use crate::calendar::{Calendar, Range};

/// The largest number of hours to step through one by one: those of a leap year and a day.
const MAX_HOURS: i64 = 367 * 24;

/// The moments that a range may refer to; those of data are none without data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moments {
    /// The time of the query.
    pub now: Timestamp,
    /// The earliest time in the data, if there is any.
    pub earliest: Option<Timestamp>,
    /// The latest time in the data, if there is any.
    pub latest: Option<Timestamp>,
    /// The time up to which the data is complete, if there is any.
    pub watermark: Option<Timestamp>,
}

impl Moments {
    /// Replaces now, the latest time and the watermark by one time, such as the end of an alert's interval.
    #[must_use]
    pub fn executed_at(self, time: Timestamp) -> Self {
        Self {
            now: time,
            latest: Some(time),
            watermark: Some(time),
            ..self
        }
    }
}

/// A resolved range, with its ends as calendar positions, so that it can be moved as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    pub(super) start: Position,
    pub(super) end: Position,
    pub(super) period: Period,
    pub(super) calendar: Calendar,
    /// The grain that the expression names with `by`, if any.
    pub grain: Option<Grain>,
}

/// The length of a range, for the shift `-1P`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Period {
    /// The length that the expression states: `2M`, `MTD` (a month), `2013-02` (a month).
    Length(Length),
    /// The length between the ends: a number of days for whole days, else the elapsed time.
    Ends,
}

impl Resolved {
    /// Returns the range with its start and end as instants.
    ///
    /// # Errors
    /// [`RangeError::OutOfRange`] near the ends of representable time.
    pub fn range(&self) -> Result<Range, RangeError> {
        Ok(Range {
            start: self.start.instant(&self.calendar)?,
            end: self.end.instant(&self.calendar)?,
        })
    }

    /// Returns the calendar of the resolution, in the expression's zone if it names one.
    pub fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    /// Returns the range with both ends moved by a shift.
    pub(super) fn shifted(&self, shift: Shift) -> Result<Self, RangeError> {
        let (start, end) = match (shift, self.period) {
            (Shift::By(length), _) => self.both(|position| position.by(length, &self.calendar))?,
            (Shift::Periods(count), Period::Length(length)) => {
                let length = length.times(count);
                self.both(|position| position.by(length, &self.calendar))?
            }
            (Shift::Periods(count), Period::Ends) => self.by_ends(count)?,
        };
        Ok(Self {
            start,
            end,
            ..self.clone()
        })
    }

    fn both(
        &self,
        to: impl Fn(Position) -> Result<Position, RangeError>,
    ) -> Result<(Position, Position), RangeError> {
        Ok((to(self.start)?, to(self.end)?))
    }

    fn by_ends(&self, count: i64) -> Result<(Position, Position), RangeError> {
        let whole = |position: Position| position.whole_date(&self.calendar);
        if let (Some(first), Some(after)) = (whole(self.start), whole(self.end)) {
            let days = i64::from(first.until(after).map_err(|_| RangeError::OutOfRange)?.get_days());
            let length = Length::of(days, Grain::Day).times(count);
            // From dates and not from instants: a day that begins at one o'clock is followed by one that does not.
            let start = Position::beginning(first, Grain::Day).by(length, &self.calendar)?;
            let end = Position::beginning(after, Grain::Day).by(length, &self.calendar)?;
            return Ok((start, end));
        }
        let range = self.range()?;
        let count = i32::try_from(count).map_err(|_| RangeError::OutOfRange)?;
        let time = range.end.duration_since(range.start).checked_mul(count);
        let time: SignedDuration = time.ok_or(RangeError::OutOfRange)?;
        self.both(|position| position.elapse(time, &self.calendar))
    }
}

impl Expression {
    /// Resolves an expression at given moments, by a calendar. `smallest` is the smallest grain of the data, by which
    /// `inf` ends after the latest time.
    ///
    /// # Errors
    /// [`RangeError::NoData`] where it refers to a moment that is missing, [`RangeError::NoSuchPart`] for what its whole
    /// lacks, [`RangeError::OutOfRange`] beyond representable time.
    pub fn resolve(
        &self,
        moments: &Moments,
        calendar: &Calendar,
        smallest: Grain,
    ) -> Result<Resolved, RangeError> {
        let calendar = match &self.zone {
            Some(zone) => calendar.clone().in_zone(zone.clone()),
            None => calendar.clone(),
        };
        let scene = Scene {
            moments,
            calendar: &calendar,
        };
        let mut reference = Position::at(moments.now);
        for anchor in self.anchors.iter().rev() {
            reference = scene.point(anchor, reference)?;
        }
        let (start, end, period) = scene.interval(&self.interval, reference, smallest)?;
        let resolved = Resolved {
            start,
            end,
            period,
            calendar,
            grain: self.by,
        };
        match self.shift {
            Some(shift) => resolved.shifted(shift),
            None => Ok(resolved),
        }
    }
}

/// The moments and the calendar for resolving an expression.
pub(super) struct Scene<'s> {
    pub(super) moments: &'s Moments,
    pub(super) calendar: &'s Calendar,
}

impl Scene<'_> {
    fn interval(
        &self,
        interval: &Interval,
        reference: Position,
        smallest: Grain,
    ) -> Result<(Position, Position, Period), RangeError> {
        let calendar = self.calendar;
        Ok(match interval {
            Interval::Before(length) => {
                let start = reference.by(length.times(-1), calendar)?;
                (start, reference, Period::Length(*length))
            }
            Interval::ToDate(grain) => {
                let start = reference.floor(*grain, calendar)?;
                (start, reference, Period::Length(Length::of(1, *grain)))
            }
            Interval::Between(start, end) => (
                self.point(start, reference)?,
                self.point(end, reference)?,
                Period::Ends,
            ),
            Interval::After(start, length) => {
                let start = self.point(start, reference)?;
                (start, start.by(*length, calendar)?, Period::Length(*length))
            }
            Interval::Parts(parts) => self.parts(parts, reference)?,
            Interval::Whole(iso, grain) => {
                let length = Length::of(1, *grain);
                let start = Position::iso(*iso, Some(*grain));
                (start, start.by(length, calendar)?, Period::Length(length))
            }
            Interval::Ending(length) => {
                let end = self.end_of_watermark(length.smallest)?;
                (end.by(length.times(-1), calendar)?, end, Period::Length(*length))
            }
            Interval::All => (self.earliest()?, self.after_latest(smallest)?, Period::Ends),
        })
    }

    /// Returns the position of the earliest time of the data.
    pub(super) fn earliest(&self) -> Result<Position, RangeError> {
        self.known(self.moments.earliest, "earliest").map(Position::at)
    }

    /// Returns a position after the latest time of the data.
    pub(super) fn after_latest(&self, smallest: Grain) -> Result<Position, RangeError> {
        let latest = Position::at(self.known(self.moments.latest, "latest")?);
        latest.by(Length::of(1, smallest), self.calendar)
    }

    /// Returns the end of the bucket that contains the watermark.
    pub(super) fn end_of_watermark(&self, grain: Grain) -> Result<Position, RangeError> {
        let watermark = Position::at(self.known(self.moments.watermark, "watermark")?);
        self.next(watermark.floor(grain, self.calendar)?, grain)
    }

    /// Returns the beginning of the bucket after the one that begins at a position.
    fn next(&self, start: Position, grain: Grain) -> Result<Position, RangeError> {
        if grain >= Grain::Day {
            return start.by(Length::of(1, grain), self.calendar);
        }
        let bucket = self.calendar.bucket(start.instant(self.calendar)?, grain);
        Position::at(bucket.ok_or(RangeError::OutOfRange)?.end).floor(grain, self.calendar)
    }

    fn known(&self, moment: Option<Timestamp>, point: &'static str) -> Result<Timestamp, RangeError> {
        moment.ok_or(RangeError::NoData { point })
    }

    fn point(&self, point: &Point, reference: Position) -> Result<Position, RangeError> {
        let moments = self.moments;
        let mut position = match point.base {
            Base::Reference => reference,
            Base::Now => Position::at(moments.now),
            Base::Earliest => Position::at(self.known(moments.earliest, "earliest")?),
            Base::Latest => Position::at(self.known(moments.latest, "latest")?),
            Base::Watermark => Position::at(self.known(moments.watermark, "watermark")?),
            Base::Iso(iso, grain) => Position::iso(iso, grain),
        };
        for step in &point.moves {
            position = position.step(*step, self.calendar)?;
        }
        Ok(position)
    }

    /// Returns the start, end and length of nested parts, in the whole that the reference was floored to or else the
    /// usual one.
    fn parts(&self, parts: &[Part], reference: Position) -> Result<(Position, Position, Period), RangeError> {
        let outermost = parts.last().map_or(Grain::Day, |part| part.grain);
        let floored = reference.floored.filter(|whole| *whole > outermost);
        let mut whole = floored.unwrap_or(usual_whole(outermost));
        let mut start = reference.floor(whole, self.calendar)?;
        let mut end = start;
        for part in parts.iter().rev() {
            (start, end) = self.part(*part, start, whole)?;
            whole = part.grain;
        }
        Ok((start, end, Period::Length(Length::of(1, whole))))
    }

    fn part(&self, part: Part, whole: Position, grain: Grain) -> Result<(Position, Position), RangeError> {
        let calendar = self.calendar;
        let after = self.next(whole, grain)?;
        let before = part.number - 1;
        let start = match part.grain {
            Grain::Week => whole
                .first_week(calendar)?
                .by(Length::of(before, Grain::Week), calendar)?,
            Grain::Hour => self.hour(whole, before)?,
            Grain::Minute | Grain::Second => {
                let from = whole.by(Length::of(before, part.grain), calendar)?;
                from.floor(part.grain, calendar)?
            }
            _ => whole.by(Length::of(before, part.grain), calendar)?,
        };
        // The last week of a month is the one before the next month's first.
        let limit = match part.grain {
            Grain::Week => after.first_week(calendar)?,
            _ => after,
        };
        if start.instant(calendar)? >= limit.instant(calendar)? {
            return Err(RangeError::NoSuchPart {
                ordinal: format!("{}{}", letter(part.grain), part.number),
                whole: grain.as_str(),
            });
        }
        Ok((start, self.next(start, part.grain)?))
    }

    /// Returns the position of an hour by its number in a whole; repeated hours count twice, skipped ones not at all.
    fn hour(&self, whole: Position, before: i64) -> Result<Position, RangeError> {
        let mut hour = whole.floor(Grain::Hour, self.calendar)?;
        for _ in 0..before.min(MAX_HOURS) {
            hour = self.next(hour, Grain::Hour)?;
        }
        Ok(hour)
    }
}

/// Returns the whole in which parts are numbered by default.
fn usual_whole(part: Grain) -> Grain {
    match part {
        Grain::Second => Grain::Minute,
        Grain::Minute => Grain::Hour,
        Grain::Hour => Grain::Day,
        Grain::Day | Grain::Week => Grain::Month,
        Grain::Month | Grain::Quarter | Grain::Year => Grain::Year,
    }
}

fn letter(grain: Grain) -> char {
    match grain {
        Grain::Second => 's',
        Grain::Minute => 'm',
        Grain::Hour => 'h',
        Grain::Day => 'D',
        Grain::Week => 'W',
        Grain::Month => 'M',
        Grain::Quarter => 'Q',
        Grain::Year => 'Y',
    }
}

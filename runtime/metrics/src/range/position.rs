//! Positions on a calendar, and moves between them.

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Timestamp};
use watershed_schedule::Grain;

use super::error::RangeError;
use super::expression::{Iso, Move};
use super::length::Length;
use crate::calendar::Calendar;

/// A position on a zone's calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    at: At,
    /// The grain of the last floor, which moves do not change; none without one.
    pub(super) floored: Option<Grain>,
}

/// An instant, or a local time. A day that the clock begins at one o'clock is kept as its midnight, so that the next
/// day begins at midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Instant(Timestamp),
    Local(DateTime),
}

impl Position {
    /// Returns the position at an instant, not rounded to a unit.
    pub(super) fn at(instant: Timestamp) -> Self {
        Self {
            at: At::Instant(instant),
            floored: None,
        }
    }

    /// Returns the position at the beginning of a date.
    pub(super) fn beginning(date: Date, grain: Grain) -> Self {
        Self {
            at: At::Local(date.to_datetime(Time::midnight())),
            floored: Some(grain),
        }
    }

    /// Returns the position of a written time, which names a unit or an instant.
    pub(super) fn iso(iso: Iso, grain: Option<Grain>) -> Self {
        let at = match iso {
            Iso::Instant(instant) => At::Instant(instant),
            Iso::Local(local) => At::Local(local),
        };
        Self { at, floored: grain }
    }

    /// Returns the first instant at which the clock shows the position or, if skipped, the first one after.
    pub(super) fn instant(self, calendar: &Calendar) -> Result<Timestamp, RangeError> {
        match self.at {
            At::Instant(instant) => Ok(instant),
            At::Local(local) => calendar.zone().once(local).ok_or(RangeError::OutOfRange),
        }
    }

    /// Returns the local date of this position in the calendar's zone.
    pub(super) fn date(self, calendar: &Calendar) -> Date {
        match self.at {
            At::Instant(instant) => calendar.zone().local(instant).date(),
            At::Local(local) => local.date(),
        }
    }

    /// Returns the date if the position is its beginning; none otherwise.
    pub(super) fn whole_date(self, calendar: &Calendar) -> Option<Date> {
        let date = self.date(calendar);
        let instant = self.instant(calendar).ok()?;
        (calendar.beginning(date)? == instant).then_some(date)
    }

    /// Returns the beginning of the bucket that contains the position.
    pub(super) fn floor(self, grain: Grain, calendar: &Calendar) -> Result<Self, RangeError> {
        let instant = self.instant(calendar)?;
        let bucket = calendar.bucket(instant, grain).ok_or(RangeError::OutOfRange)?;
        if grain < Grain::Day {
            return Ok(Self {
                at: At::Instant(bucket.start),
                floored: Some(grain),
            });
        }
        let date = calendar.zone().local(bucket.start).date();
        Ok(Self::beginning(date, grain))
    }

    /// Returns the beginning of the first week of a period that begins at the position.
    pub(super) fn first_week(self, calendar: &Calendar) -> Result<Self, RangeError> {
        let week = calendar.first_week(self.date(calendar));
        let week = week.ok_or(RangeError::OutOfRange)?;
        Ok(Self::beginning(week, Grain::Week))
    }

    /// Returns the position moved by a length: months and days by the calendar, then seconds by elapsed time.
    pub(super) fn by(self, length: Length, calendar: &Calendar) -> Result<Self, RangeError> {
        let mut at = self.at;
        if length.has_dates() {
            let local = match at {
                At::Instant(instant) => calendar.zone().local(instant),
                At::Local(local) => local,
            };
            at = At::Local(length.move_dates(local).ok_or(RangeError::OutOfRange)?);
        }
        Self { at, ..self }.elapse(length.elapsed(), calendar)
    }

    /// Returns the position moved by elapsed time.
    pub(super) fn elapse(self, time: SignedDuration, calendar: &Calendar) -> Result<Self, RangeError> {
        if time.is_zero() {
            return Ok(self);
        }
        let instant = self.instant(calendar)?.checked_add(time);
        Ok(Self {
            at: At::Instant(instant.map_err(|_| RangeError::OutOfRange)?),
            ..self
        })
    }

    /// Returns the position after a move.
    pub(super) fn step(self, step: Move, calendar: &Calendar) -> Result<Self, RangeError> {
        match step {
            Move::Floor(grain) => self.floor(grain, calendar),
            Move::FirstWeek => self.first_week(calendar),
            Move::By(length) => self.by(length, calendar),
        }
    }
}

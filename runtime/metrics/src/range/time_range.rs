//! Time ranges as queries state them, and their comparisons.

use jiff::Timestamp;
use watershed_schedule::Grain;

use super::cursor::Cursor;
use super::error::RangeError;
use super::expression::{Expression, Shift};
use super::length::Length;
use super::parse;
use super::position::Position;
use super::resolve::{Moments, Period, Resolved, Scene};
use crate::calendar::Calendar;

/// A time range as a query states it: by an expression, or by ends and durations.
///
/// With one end and a duration, the other end follows; with a duration alone it ends with the watermark's bucket of the
/// duration's smallest unit, as the same text does as an expression. `iso_offset` moves the whole range back,
/// `round_to_grain` floors both ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimeRange {
    /// The first instant, if given.
    pub start: Option<Timestamp>,
    /// The first instant after the range, if given.
    pub end: Option<Timestamp>,
    /// An ISO 8601 duration, or without ends another expression (`inf`, `rill-MTD`).
    pub iso_duration: Option<String>,
    /// The distance by which the range is moved back: an ISO 8601 duration, or a word such as `rill-PP` or `rill-PW`.
    pub iso_offset: Option<String>,
    /// The grain that both ends are floored to, if any.
    pub round_to_grain: Option<Grain>,
    /// A range expression, which excludes all other keys.
    pub expression: Option<String>,
}

/// The distance from a range back to the one it is compared with.
///
/// `-1P` (once the range's own length), `-1M`, a duration in ISO 8601 (so far back), or `rill-PP`, `rill-PD`, `rill-PW`,
/// `rill-PM`, `rill-PQ`, `rill-PY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset(Shift);

impl std::str::FromStr for Offset {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        parse::comparison(text).map(Self)
    }
}

impl Offset {
    /// Returns a range moved by the distance, on its calendar and clipped at the end of months.
    ///
    /// # Errors
    /// [`RangeError::OutOfRange`] beyond representable time.
    pub fn of(self, range: &Resolved) -> Result<Resolved, RangeError> {
        range.shifted(self.0)
    }
}

impl TimeRange {
    /// Resolves the range at given moments, by a calendar; none if nothing bounds it.
    ///
    /// # Errors
    /// Those of [`Expression`], and [`RangeError::Keys`] for keys that exclude each other or of which one is missing.
    pub fn resolve(
        &self,
        moments: &Moments,
        calendar: &Calendar,
        smallest: Grain,
    ) -> Result<Option<Resolved>, RangeError> {
        self.check()?;
        if let Some(text) = &self.expression {
            let expression: Expression = text.parse()?;
            return expression.resolve(moments, calendar, smallest).map(Some);
        }
        let Some(range) = self.ends(moments, calendar, smallest)? else {
            return Ok(None);
        };
        let mut range = match &self.iso_offset {
            Some(offset) => offset.parse::<Offset>()?.of(&range)?,
            None => range,
        };
        if let Some(grain) = self.round_to_grain {
            range.start = range.start.floor(grain, &range.calendar)?;
            range.end = range.end.floor(grain, &range.calendar)?;
        }
        Ok(Some(range))
    }

    /// Checks that no keys exclude each other and none is missing, which does not depend on the moments.
    ///
    /// # Errors
    /// [`RangeError::Keys`], and [`RangeError::Syntax`] for what is no duration beside an end.
    pub fn check(&self) -> Result<(), RangeError> {
        let ends = usize::from(self.start.is_some()) + usize::from(self.end.is_some());
        let has_duration = self.iso_duration.is_some();
        if let Some(text) = &self.expression
            && *self != Self::expression(text)
        {
            return Err(RangeError::Keys(
                "`expression` stands alone: no other key may be set beside it",
            ));
        }
        if ends == 2 && has_duration {
            return Err(RangeError::Keys(
                "of `start`, `end` and `iso_duration` two are enough",
            ));
        }
        if let (1, Some(text)) = (ends, &self.iso_duration) {
            duration(text)?;
        }
        let moved = self.iso_offset.is_some() || self.round_to_grain.is_some();
        if moved && ends == 0 && !has_duration {
            return Err(RangeError::Keys(
                "`iso_offset` and `round_to_grain` need a range: `iso_duration`, or ends",
            ));
        }
        Ok(())
    }

    /// Returns the time range of an expression.
    pub fn expression(text: &str) -> Self {
        Self {
            expression: Some(text.to_owned()),
            ..Self::default()
        }
    }

    fn ends(
        &self,
        moments: &Moments,
        calendar: &Calendar,
        smallest: Grain,
    ) -> Result<Option<Resolved>, RangeError> {
        let resolved = |start: Position, end: Position, period: Period| {
            Ok(Some(Resolved {
                start,
                end,
                period,
                calendar: calendar.clone(),
                grain: None,
            }))
        };
        let length = match &self.iso_duration {
            None => None,
            Some(text) if self.start.is_none() && self.end.is_none() => {
                let expression: Expression = text.parse()?;
                return expression.resolve(moments, calendar, smallest).map(Some);
            }
            Some(text) => Some(duration(text)?),
        };
        match (self.start, self.end, length) {
            (Some(start), Some(end), _) => resolved(Position::at(start), Position::at(end), Period::Ends),
            (Some(start), None, Some(length)) => {
                let start = Position::at(start);
                resolved(start, start.by(length, calendar)?, Period::Length(length))
            }
            (None, Some(end), Some(length)) => {
                let end = Position::at(end);
                resolved(end.by(length.times(-1), calendar)?, end, Period::Length(length))
            }
            (Some(start), None, None) => {
                let scene = Scene { moments, calendar };
                resolved(Position::at(start), scene.after_latest(smallest)?, Period::Ends)
            }
            (None, Some(end), None) => {
                let scene = Scene { moments, calendar };
                resolved(scene.earliest()?, Position::at(end), Period::Ends)
            }
            (None, None, _) => Ok(None),
        }
    }
}

/// Parses an ISO 8601 duration.
fn duration(text: &str) -> Result<Length, RangeError> {
    let mut cursor = Cursor::new(text.trim());
    let length = cursor.iso_length()?;
    if cursor.is_done() {
        Ok(length)
    } else {
        Err(cursor.expected("the end of the duration"))
    }
}

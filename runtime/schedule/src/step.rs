//! Lengths of the intervals of a calendar.

use std::num::NonZeroU32;
use std::str::FromStr;

use jiff::Span;

/// A unit of the calendar or the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grain {
    /// Seconds, as the zone's clock shows them.
    Second,
    /// Minutes, as the zone's clock shows them.
    Minute,
    /// Hours, as the zone's clock shows them.
    Hour,
    /// Days of the zone's calendar, which may have 23 or 25 hours.
    Day,
    /// Weeks, from the calendar's first day of the week.
    Week,
    /// Months of the calendar, of 28 to 31 days.
    Month,
    /// Quarters, from the calendar's first month of the year.
    Quarter,
    /// Years, from the calendar's first month of the year.
    Year,
}

impl Grain {
    /// Every unit, shortest first.
    pub const ALL: [Grain; 8] = [
        Grain::Second,
        Grain::Minute,
        Grain::Hour,
        Grain::Day,
        Grain::Week,
        Grain::Month,
        Grain::Quarter,
        Grain::Year,
    ];

    /// Returns the unit's name, as queries and engines write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Grain::Second => "second",
            Grain::Minute => "minute",
            Grain::Hour => "hour",
            Grain::Day => "day",
            Grain::Week => "week",
            Grain::Month => "month",
            Grain::Quarter => "quarter",
            Grain::Year => "year",
        }
    }
}

/// A number of units: `P1D`, `PT15M`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// Number of units in one step.
    pub count: NonZeroU32,
    /// Unit that is counted.
    pub grain: Grain,
}

/// Error of a text that is not a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not an ISO 8601 duration of one unit, such as `PT1H`, `P1D` or `P1M`")]
pub struct StepError {
    /// The rejected text.
    pub text: String,
}

impl Step {
    /// Creates a step of one unit.
    pub const fn one(grain: Grain) -> Self {
        Self {
            count: NonZeroU32::MIN,
            grain,
        }
    }
}

impl FromStr for Step {
    type Err = StepError;

    /// Parses an ISO 8601 duration in a single unit.
    fn from_str(text: &str) -> Result<Self, StepError> {
        parse(text).ok_or_else(|| StepError {
            text: text.to_owned(),
        })
    }
}

fn parse(text: &str) -> Option<Step> {
    // The library reads more than ISO 8601 (`1 day`), which the format does not.
    let iso = text.starts_with(['P', 'p']);
    let span: Span = text.parse().ok().filter(|_| iso)?;
    let units = [
        (i64::from(span.get_years()), Grain::Year),
        (i64::from(span.get_months()), Grain::Month),
        (i64::from(span.get_weeks()), Grain::Week),
        (i64::from(span.get_days()), Grain::Day),
        (i64::from(span.get_hours()), Grain::Hour),
        (span.get_minutes(), Grain::Minute),
        (span.get_seconds(), Grain::Second),
        (span.get_milliseconds(), Grain::Second),
        (span.get_microseconds(), Grain::Second),
        (span.get_nanoseconds(), Grain::Second),
    ];
    let mut given = units
        .into_iter()
        .enumerate()
        .filter(|(_, (count, _))| *count != 0);
    let (place, (count, grain)) = given.next()?;
    let whole = place < 7 && given.next().is_none();
    let count = u32::try_from(count).ok().and_then(NonZeroU32::new)?;
    whole.then_some(Step { count, grain })
}

//! Lengths of time by the calendar, such as `7D`, `3W18D23h` or `P1Y2M`.

use jiff::civil::DateTime;
use jiff::{SignedDuration, Span};
use watershed_schedule::Grain;

/// A length of time as months, days and seconds, which can't be converted: a month has 28 to 31 days, a day 23 to 25
/// hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Length {
    months: i64,
    days: i64,
    seconds: i64,
    /// The smallest unit that the length names.
    pub(super) smallest: Grain,
}

/// The largest number before a unit, about 300 years in seconds.
pub(super) const MAX_COUNT: i64 = 9_999_999_999;

impl Length {
    /// Returns a zero length in a unit.
    pub(super) fn none(grain: Grain) -> Self {
        Self {
            months: 0,
            days: 0,
            seconds: 0,
            smallest: grain,
        }
    }

    /// Returns the length of `count` units, which may be negative but not beyond [`MAX_COUNT`].
    pub(super) fn of(count: i64, grain: Grain) -> Self {
        let mut length = Self::none(grain);
        match grain {
            Grain::Year => length.months = count * 12,
            Grain::Quarter => length.months = count * 3,
            Grain::Month => length.months = count,
            Grain::Week => length.days = count * 7,
            Grain::Day => length.days = count,
            Grain::Hour => length.seconds = count * 3_600,
            Grain::Minute => length.seconds = count * 60,
            Grain::Second => length.seconds = count,
        }
        length
    }

    /// Returns the sum of two lengths.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            months: self.months.saturating_add(other.months),
            days: self.days.saturating_add(other.days),
            seconds: self.seconds.saturating_add(other.seconds),
            smallest: self.smallest.min(other.smallest),
        }
    }

    /// Returns the length multiplied by `count`, which may be negative.
    pub(super) fn times(self, count: i64) -> Self {
        Self {
            months: self.months.saturating_mul(count),
            days: self.days.saturating_mul(count),
            seconds: self.seconds.saturating_mul(count),
            ..self
        }
    }

    /// Returns true if the length has months or days, which only a calendar can add.
    pub(super) fn has_dates(&self) -> bool {
        self.months != 0 || self.days != 0
    }

    /// Adds the months and then the days to a local time, clipped at the end of months; none if out of range.
    pub(super) fn move_dates(&self, local: DateTime) -> Option<DateTime> {
        let months = Span::new().try_months(self.months).ok()?;
        let days = Span::new().try_days(self.days).ok()?;
        local.checked_add(months).ok()?.checked_add(days).ok()
    }

    /// Returns the seconds of the length as a duration.
    pub(super) fn elapsed(&self) -> SignedDuration {
        SignedDuration::from_secs(self.seconds)
    }
}

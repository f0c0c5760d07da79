//! The calendar of a time zone: the beginnings of hours, days, weeks and years.

use jiff::Timestamp;
use jiff::civil::{Date, Time, Weekday};
use watershed_schedule::{Grain, Intervals, Step, Zone};

/// A zone's clock and dates, with the first day of weeks and the first month of years.
///
/// ```
/// use watershed_metrics::{Calendar, Grain, Zone};
///
/// let calendar = Calendar::new(Zone::find("America/New_York")?);
/// let day = calendar.bucket("2024-03-10T12:00:00Z".parse()?, Grain::Day).unwrap();
/// assert_eq!(day.start, "2024-03-10T05:00:00Z".parse()?);
/// assert_eq!(day.end, "2024-03-11T04:00:00Z".parse()?); // 23 hours
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    zone: Zone,
    first_day_of_week: Weekday,
    /// The first month of years, 1 to 12.
    first_month_of_year: i8,
}

/// A half-open span of instants: from `start` up to and without `end`. Empty if the end is not later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Range {
    /// The first instant of the range.
    pub start: Timestamp,
    /// The first instant after the range.
    pub end: Timestamp,
}

impl Range {
    /// Returns true if an instant is in the range.
    pub fn contains(&self, moment: Timestamp) -> bool {
        self.start <= moment && moment < self.end
    }

    /// Returns true if no instant is in the range.
    pub fn is_empty(&self) -> bool {
        self.end <= self.start
    }
}

impl Calendar {
    /// Returns the calendar of a zone, with weeks from Monday and years from January.
    pub fn new(zone: Zone) -> Self {
        Self {
            zone,
            first_day_of_week: Weekday::Monday,
            first_month_of_year: 1,
        }
    }

    /// Sets the day on which weeks begin: 1 for Monday to 7 for Sunday. Other numbers, such as 0 for unset, mean
    /// Monday.
    #[must_use]
    pub fn weeks_from(self, day: u32) -> Self {
        let day = i8::try_from(day).ok();
        let found = day.and_then(|day| Weekday::from_monday_one_offset(day).ok());
        Self {
            first_day_of_week: found.unwrap_or(Weekday::Monday),
            ..self
        }
    }

    /// Sets the month, 1 to 12, in which years begin, and thereby quarters. Other numbers, such as 0 for unset, mean
    /// January.
    #[must_use]
    pub fn years_from(self, month: u32) -> Self {
        let month = i8::try_from(month).ok().filter(|month| (1..=12).contains(month));
        Self {
            first_month_of_year: month.unwrap_or(1),
            ..self
        }
    }

    /// Replaces the time zone of the calendar.
    #[must_use]
    pub fn in_zone(self, zone: Zone) -> Self {
        Self { zone, ..self }
    }

    /// Returns the time zone in which days and larger units begin.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Returns the bucket of a grain that contains an instant; none only near the ends of representable time.
    ///
    /// Grains of a day and above follow the zone's dates, those below the zone's clock with the offset in force: a
    /// repeated hour is two buckets. A bucket begins with its first instant.
    pub fn bucket(&self, moment: Timestamp, grain: Grain) -> Option<Range> {
        let interval = Intervals::new(Step::one(grain), self.zone.clone())
            .weeks_from(self.first_day_of_week)
            .years_from(self.first_month_of_year)
            .at(moment)?;
        Some(Range {
            start: interval.start,
            end: interval.end,
        })
    }

    /// Returns the buckets that overlap a range, in order; none if there are more than `limit`.
    pub fn buckets(&self, range: Range, grain: Grain, limit: usize) -> Option<Vec<Range>> {
        let mut found = Vec::new();
        let mut moment = range.start;
        while moment < range.end {
            if found.len() == limit {
                return None;
            }
            let bucket = self.bucket(moment, grain)?;
            found.push(bucket);
            moment = bucket.end;
        }
        Some(found)
    }

    /// Returns the first instant of a date. If the clock skips midnight, the date begins later; if midnight occurs
    /// twice, at the first one.
    pub(crate) fn beginning(&self, date: Date) -> Option<Timestamp> {
        self.zone.once(date.to_datetime(Time::midnight()))
    }

    /// Returns the first day of the week that contains a date.
    pub(crate) fn week(&self, date: Date) -> Option<Date> {
        let days = date.weekday().since(self.first_day_of_week);
        date.checked_sub(jiff::Span::new().days(i64::from(days))).ok()
    }

    /// Returns the first day of the first week of a period that begins on a date: the first week with at least four
    /// days in the period, as in ISO 8601.
    pub(crate) fn first_week(&self, first: Date) -> Option<Date> {
        let week = self.week(first)?;
        let outside = first.weekday().since(self.first_day_of_week);
        match outside {
            ..=3 => Some(week),
            _ => week.checked_add(jiff::Span::new().days(7)).ok(),
        }
    }
}

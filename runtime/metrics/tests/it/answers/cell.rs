//! Values of the naive evaluator, and times by a clock that is read minute by minute.

use std::cmp::Ordering;

use watershed_metrics::Grain;
use watershed_metrics::jiff::civil::{Date, DateTime, Weekday};
use watershed_metrics::jiff::tz::TimeZone;
use watershed_metrics::jiff::{Span, Timestamp};

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    Day(Date),
    /// Microseconds.
    Time(i64),
    List(Vec<Cell>),
}

impl Cell {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub(crate) fn is_null(&self) -> bool {
        *self == Self::Null
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Compares two values as SQL does; nothing with NULL.
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Number(a), Self::Number(b)) => Some(number_order(*a, *b)),
            (Self::Text(a), Self::Text(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
            (Self::Day(a), Self::Day(b)) => Some(a.cmp(b)),
            (Self::Time(a), Self::Time(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }

    /// Q11: NULLs last both ways.
    pub(crate) fn sort(&self, other: &Self, descending: bool) -> Ordering {
        match (self.is_null(), other.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ => {
                let order = self.compare(other).unwrap_or(Ordering::Equal);
                if descending { order.reverse() } else { order }
            }
        }
    }

    /// Returns the value as the engine's answer shows it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Null => "NULL".to_owned(),
            Self::Bool(flag) => flag.to_string(),
            Self::Number(number) => format!("{number:?}"),
            Self::Text(text) => format!("'{text}'"),
            Self::Day(date) => date.to_string(),
            Self::Time(micros) => utc(*micros).to_string().replace('T', " "),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(Self::shown).collect();
                format!("[{}]", items.join(", "))
            }
        }
    }

    /// Returns the value as SQL writes it.
    pub(crate) fn sql(&self) -> String {
        match self {
            Self::Text(text) => format!("'{}'", text.replace('\'', "''")),
            Self::Day(_) | Self::Time(_) => format!("'{}'", self.shown()),
            Self::Number(number) if !number.is_finite() => format!("'{number}'::DOUBLE"),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(Self::sql).collect();
                format!("[{}]", items.join(", "))
            }
            _ => self.shown(),
        }
    }
}

/// The engine's order of numbers: NaN is equal to itself and above all others.
fn number_order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

pub(crate) fn utc(micros: i64) -> DateTime {
    TimeZone::UTC.to_datetime(instant(micros))
}

pub(crate) fn instant(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).expect("a time")
}

/// Weeks and years of a view, in a zone.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    pub(crate) zone: TimeZone,
    pub(crate) first_day_of_week: i8,
    pub(crate) first_month_of_year: i8,
}

const MINUTE: i64 = 60_000_000;

impl Clock {
    /// Q9: what the clock shows, cut to a grain; below a day together with the offset.
    fn cut(&self, micros: i64, grain: Grain) -> (DateTime, i32) {
        let at = instant(micros);
        let local = self.zone.to_datetime(at);
        let offset = self.zone.to_offset(at).seconds();
        let date = local.date();
        let hour = date.at(local.hour(), 0, 0, 0);
        match grain {
            Grain::Second => (
                hour.with()
                    .minute(local.minute())
                    .second(local.second())
                    .build()
                    .expect("a time"),
                offset,
            ),
            Grain::Minute => (
                hour.with().minute(local.minute()).build().expect("a time"),
                offset,
            ),
            Grain::Hour => (hour, offset),
            grain => (self.first_date(date, grain).at(0, 0, 0, 0), 0),
        }
    }

    /// The first date of the stretch of days that holds a date.
    pub(crate) fn first_date(&self, date: Date, grain: Grain) -> Date {
        let mut day = date;
        loop {
            let month = i32::from(day.month()) - i32::from(self.first_month_of_year);
            let is_first = match grain {
                Grain::Week => {
                    let first = Weekday::from_monday_one_offset(self.first_day_of_week).expect("a day");
                    day.weekday() == first
                }
                Grain::Month => day.day() == 1,
                Grain::Quarter => day.day() == 1 && month.rem_euclid(3) == 0,
                Grain::Year => day.day() == 1 && month == 0,
                _ => true,
            };
            if is_first {
                return day;
            }
            day = day.yesterday().expect("a day");
        }
    }

    /// The first instant of a date: found by looking at the clock.
    pub(crate) fn beginning(&self, date: Date) -> i64 {
        let midnight = date.at(0, 0, 0, 0).to_zoned(TimeZone::UTC).expect("a time");
        let mut micros = midnight.timestamp().as_microsecond() - 16 * 60 * MINUTE;
        while self.zone.to_datetime(instant(micros)).date() < date {
            micros += 15 * MINUTE;
        }
        micros
    }

    /// Q9: a bucket's first instant.
    pub(crate) fn bucket(&self, micros: i64, grain: Grain) -> i64 {
        let (shown, _) = self.cut(micros, grain);
        if grain >= Grain::Day {
            return self.beginning(shown.date());
        }
        if grain == Grain::Second {
            return micros.div_euclid(1_000_000) * 1_000_000;
        }
        let mut first = micros.div_euclid(MINUTE) * MINUTE;
        while self.cut(first - MINUTE, grain) == self.cut(first, grain) {
            first -= MINUTE;
        }
        first
    }

    /// All buckets of a half-open range, looked at every quarter of an hour.
    pub(crate) fn buckets(&self, start: i64, end: i64, grain: Grain) -> Vec<i64> {
        let mut found: Vec<i64> = Vec::new();
        let mut micros = start;
        let mut last = None;
        while micros < end {
            let cut = self.cut(micros, grain);
            if last != Some(cut) {
                found.push(self.bucket(micros, grain));
                last = Some(cut);
            }
            micros = (micros.div_euclid(15 * MINUTE) + 1) * 15 * MINUTE;
        }
        found
    }
}

pub(crate) fn days(date: Date, count: i64) -> Date {
    date.checked_add(Span::new().days(count)).expect("a day")
}

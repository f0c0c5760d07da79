//! Cutting of times to buckets in SQL, with the offsets of zones as constants, so that the engine needs no time zone
//! data (Q9).

use jiff::{SignedDuration, Timestamp};
use watershed_dialect::SqlType;
use watershed_schedule::{Grain, Zone};

use super::bounds::Extent;
use crate::calendar::Range;
use crate::sql::{Constant, Expr, Infix};
use crate::view::DataType;

/// The margin in hours around the known extent of data for which offsets are written, to cover rows that arrive before
/// the query runs.
const MARGIN_HOURS: i64 = 2 * 366 * 24;

/// The largest number of clock changes that are written, enough for three centuries.
const MAX_CHANGES: usize = 800;

/// The UTC offsets of a zone over a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clock {
    /// The first instant of each offset after the first, with the offset in microseconds.
    changes: Vec<(Timestamp, i64)>,
    /// The offset before all changes, in microseconds.
    first: i64,
}

/// A dimension cut to a grain: the key that rows are grouped by, and how to convert a key to the first instant of its
/// bucket.
pub(super) struct Bucket {
    pub(super) key: Expr,
    local: Option<Clock>,
}

/// The first day of weeks and the first month of years.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shifts {
    pub(super) first_day_of_week: u32,
    pub(super) first_month_of_year: u32,
}

impl Clock {
    /// Returns the offsets around an extent; an unknown end stands for the years 1800 and 2200.
    pub(super) fn new(zone: &Zone, extent: Extent) -> Self {
        let from = extent.earliest.unwrap_or(year(1800));
        let until = extent.latest.unwrap_or(year(2200));
        let margin = SignedDuration::from_hours(MARGIN_HOURS);
        let from = from.checked_sub(margin).unwrap_or(Timestamp::MIN);
        let until = until.checked_add(margin).unwrap_or(Timestamp::MAX);
        let micros = |instant| i64::from(zone.offset(instant).seconds()) * 1_000_000;
        let mut changes = Vec::new();
        let mut at = from;
        while let Some(change) = zone.next_change(at) {
            if change > until || changes.len() == MAX_CHANGES {
                break;
            }
            changes.push((change, micros(change)));
            at = change;
        }
        Self {
            first: micros(from),
            changes,
        }
    }

    /// Returns the offsets of a zone that apply within a range.
    pub(super) fn within(zone: &Zone, range: Range) -> Self {
        let extent = Extent {
            earliest: Some(range.start),
            latest: Some(range.end),
            watermark: None,
        };
        Self::new(zone, extent)
    }

    fn is_utc(&self) -> bool {
        self.first == 0 && self.changes.is_empty()
    }

    /// Returns true if all offsets and changes are multiples of `length` microseconds, so that buckets of that length
    /// equal those of UTC.
    fn is_aligned(&self, length: i64) -> bool {
        let mut changes = self.changes.iter();
        self.first % length == 0
            && changes.all(|(at, offset)| offset % length == 0 && at.as_microsecond() % length == 0)
    }

    /// Returns the expression for the offset at a time, in microseconds.
    fn offset(&self, time: &Expr) -> Expr {
        let offsets = std::iter::once(self.first).chain(self.changes.iter().map(|(_, offset)| *offset));
        let mut cases: Vec<(Expr, Expr)> = Vec::new();
        let mut last = self.first;
        for (offset, (change, _)) in offsets.zip(&self.changes) {
            let before = time.clone().infix(Infix::Less, timestamp(*change));
            cases.push((before, integer(offset)));
        }
        if let Some((_, offset)) = self.changes.last() {
            last = *offset;
        }
        choose(cases, integer(last))
    }

    /// Returns the expression for the last clock change at or before a time; NULL if there is none.
    fn change(&self, time: &Expr) -> Expr {
        let mut cases = Vec::new();
        for (change, _) in self.changes.iter().rev() {
            let since = time.clone().infix(Infix::GreaterOrEqual, timestamp(*change));
            cases.push((since, timestamp(*change)));
        }
        choose(cases, Expr::NULL)
    }

    /// Returns the expression for the instant of a local time: the first one that shows it, or the end of the gap that
    /// skips it.
    fn instant(&self, local: &Expr) -> Expr {
        let mut cases = Vec::new();
        let mut offset = self.first;
        let mut began = None;
        let at = |began: Option<Timestamp>, offset: i64| {
            let instant = moved(local.clone(), Infix::Minus, integer(offset));
            match began {
                None => instant,
                Some(began) => Expr::Call("greatest", vec![instant, timestamp(began)]),
            }
        };
        for (change, next) in &self.changes {
            let ends = change.checked_add(SignedDuration::from_micros(offset));
            let ends = timestamp(ends.unwrap_or(Timestamp::MAX));
            cases.push((local.clone().infix(Infix::Less, ends), at(began, offset)));
            (offset, began) = (*next, Some(*change));
        }
        choose(cases, at(began, offset))
    }
}

impl Bucket {
    /// Creates the bucket of a time, cut to a grain.
    pub(super) fn new(value: Expr, data_type: DataType, grain: Grain, shifts: Shifts, clock: &Clock) -> Self {
        let plain = |key| Self { key, local: None };
        if data_type == DataType::Date {
            return plain(floor(value, grain, shifts).cast(SqlType::Date));
        }
        // An instant and a time without a zone are the same number of microseconds.
        let value = match data_type {
            DataType::Instant => Expr::Call("make_timestamp", vec![micros(value)]),
            _ => value,
        };
        if clock.is_utc() {
            return plain(floor(value, grain, shifts));
        }
        if grain >= Grain::Day {
            let local = moved(value.clone(), Infix::Plus, clock.offset(&value));
            return Self {
                key: floor(local, grain, shifts),
                local: Some(clock.clone()),
            };
        }
        if clock.is_aligned(length(grain)) {
            return plain(floor(value, grain, shifts));
        }
        let offset = clock.offset(&value);
        let local = moved(value.clone(), Infix::Plus, offset.clone());
        let start = moved(floor(local, grain, shifts), Infix::Minus, offset);
        // `greatest` leaves NULL out.
        let start = Expr::Call("greatest", vec![start, clock.change(&value)]);
        plain(Expr::when(value.missing(), Expr::NULL, start))
    }

    /// Creates a bucket for a value that is not cut.
    pub(super) fn whole(value: Expr) -> Self {
        Self {
            key: value,
            local: None,
        }
    }

    /// Returns true if keys are local times, which have to be converted to the bucket's first instant.
    pub(super) fn is_local(&self) -> bool {
        self.local.is_some()
    }

    /// Returns the expression for the first instant of the bucket with a key.
    pub(super) fn start(&self, key: Expr) -> Expr {
        match &self.local {
            None => key,
            Some(clock) => Expr::when(key.clone().missing(), Expr::NULL, clock.instant(&key)),
        }
    }
}

/// Returns the condition that a time is in a range. A date is in a range if its first instant in the zone is.
pub(super) fn within(value: Expr, data_type: DataType, range: Range, zone: &Zone) -> Expr {
    let constant = |instant: Timestamp| match data_type {
        DataType::Date => day(instant, zone),
        DataType::Instant => Expr::typed(local_text(instant), SqlType::Instant),
        _ => timestamp(instant),
    };
    Expr::all(vec![
        value.clone().infix(Infix::GreaterOrEqual, constant(range.start)),
        value.infix(Infix::Less, constant(range.end)),
    ])
}

/// Returns the constant for the first day that begins at or after an instant.
fn day(instant: Timestamp, zone: &Zone) -> Expr {
    let date = zone.local(instant).date();
    let begins = zone.once(date.to_datetime(jiff::civil::Time::midnight()));
    let date = match begins {
        Some(begins) if begins < instant => date.tomorrow().unwrap_or(date),
        _ => date,
    };
    Expr::typed(date.to_string(), SqlType::Date)
}

/// Returns the constant for the first instant of a bucket, in the type of a dimension.
pub(super) fn start(instant: Timestamp, data_type: DataType, zone: &Zone) -> Expr {
    match data_type {
        DataType::Date => day(instant, zone),
        _ => timestamp(instant),
    }
}

/// Returns the constant for an instant as a UTC timestamp without zone, rounded up to the engine's microseconds.
pub(super) fn timestamp(instant: Timestamp) -> Expr {
    Expr::typed(local_text(instant), SqlType::Timestamp)
}

pub(super) fn local_text(instant: Timestamp) -> String {
    let up = instant
        .checked_add(SignedDuration::from_nanos(999))
        .unwrap_or(instant);
    format!("{:.6}", jiff::tz::TimeZone::UTC.to_datetime(up)).replace('T', " ")
}

fn floor(value: Expr, grain: Grain, shifts: Shifts) -> Expr {
    let shift = match grain {
        Grain::Week => Some(("to_days", shifts.first_day_of_week)).filter(|(_, day)| (2..=7).contains(day)),
        Grain::Quarter | Grain::Year => {
            Some(("to_months", shifts.first_month_of_year)).filter(|(_, month)| (2..=12).contains(month))
        }
        _ => None,
    };
    let cut = |value| Expr::Call("date_trunc", vec![Expr::text(grain.as_str()), value]);
    match shift {
        None => cut(value),
        Some((unit, first)) => {
            let by = Expr::Call(unit, vec![integer(i64::from(first) - 1)]);
            cut(value.infix(Infix::Minus, by.clone())).infix(Infix::Plus, by)
        }
    }
}

fn micros(value: Expr) -> Expr {
    Expr::Call("epoch_us", vec![value])
}

/// Returns the expression for a time moved by microseconds.
fn moved(value: Expr, operator: Infix, by: Expr) -> Expr {
    Expr::Call("make_timestamp", vec![micros(value).infix(operator, by)])
}

fn choose(cases: Vec<(Expr, Expr)>, otherwise: Expr) -> Expr {
    if cases.is_empty() {
        return otherwise;
    }
    Expr::Case(cases, Some(Box::new(otherwise)))
}

fn integer(number: i64) -> Expr {
    Expr::Constant(Constant::Integer(number))
}

fn year(year: i16) -> Timestamp {
    let first = jiff::civil::date(year, 1, 1).to_zoned(jiff::tz::TimeZone::UTC);
    first.map_or(Timestamp::UNIX_EPOCH, |first| first.timestamp())
}

fn length(grain: Grain) -> i64 {
    match grain {
        Grain::Second => 1_000_000,
        Grain::Minute => 60_000_000,
        _ => 3_600_000_000,
    }
}

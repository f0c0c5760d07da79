//! Naive references, which know only a zone's offset at an instant and the calendar, and go through time minute by
//! minute.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};

use crate::Zone;

/// A minute of a zone's clock.
#[derive(Clone, Copy)]
pub(super) struct Minute {
    /// Start of the minute.
    pub(super) instant: Timestamp,
    /// Local time at the start of the minute.
    pub(super) local: DateTime,
    /// Offset of local time from UTC, in seconds.
    pub(super) offset: i32,
}

impl Minute {
    /// Returns the number of minutes from 1970 to the local time: it grows by one a minute, except at a clock change.
    fn number(&self) -> i64 {
        (self.instant.as_second() + i64::from(self.offset)).div_euclid(60)
    }
}

/// Returns the local time that is this many minutes after the start of 1970.
fn shown(number: i64) -> DateTime {
    let instant = Timestamp::from_second(number * 60).expect("the minute is representable");
    Zone::UTC.local(instant)
}

/// Returns every minute from the start of one year to the start of another, in UTC.
pub(super) fn minutes(zone: &str, from: i16, to: i16) -> Vec<Minute> {
    let zone = Zone::find(zone).expect("the zone is known");
    let instant = |year| {
        let start = Date::constant(year, 1, 1).at(0, 0, 0, 0);
        Zone::UTC
            .instant(start)
            .expect("the year is representable")
            .as_second()
    };
    (instant(from)..instant(to))
        .step_by(60)
        .map(|second| {
            let instant = Timestamp::from_second(second).expect("the minute is representable");
            let offset = zone.offset(instant).seconds();
            let local = shown((second + i64::from(offset)).div_euclid(60));
            Minute {
                instant,
                local,
                offset,
            }
        })
        .collect()
}

/// Sets of values that an expression allows, as bits.
pub(super) struct Pattern {
    fields: [u64; 5],
    any_day: bool,
    any_weekday: bool,
    any_hour: bool,
}

impl Pattern {
    /// Parses an expression of numbers, lists, ranges, steps and `*`.
    pub(super) fn read(text: &str) -> Self {
        let parts: Vec<&str> = text.split(' ').collect();
        let bounds = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
        let fields = std::array::from_fn(|place| values(parts[place], bounds[place]));
        Self {
            fields,
            any_day: parts[2] == "*",
            any_weekday: parts[4] == "*",
            any_hour: parts[1].starts_with('*'),
        }
    }

    /// Returns true if the expression matches a local time, without regard to clock changes.
    pub(super) fn shows(&self, local: DateTime) -> bool {
        let [minutes, hours, days, months, weekdays] = &self.fields;
        let has = |field: &u64, value: i8| field & (1 << value) != 0;
        let day = has(days, local.day());
        let weekday = has(weekdays, local.weekday().to_sunday_zero_offset());
        let date = match (self.any_day, self.any_weekday) {
            (false, false) => day || weekday,
            _ => day && weekday,
        };
        has(minutes, local.minute()) && has(hours, local.hour()) && has(months, local.month()) && date
    }

    /// Lists every due time among consecutive minutes, by the rules in the documentation of the crate.
    pub(super) fn due(&self, minutes: &[Minute]) -> Vec<Timestamp> {
        let mut due = Vec::new();
        let mut latest = minutes[0].number() - 1;
        for minute in minutes {
            let number = minute.number();
            let skipped = (latest + 1..number).any(|skipped| self.shows(shown(skipped)));
            let repeated = number <= latest;
            let runs = if self.any_hour {
                self.shows(minute.local)
            } else {
                skipped || (!repeated && self.shows(minute.local))
            };
            if runs {
                due.push(minute.instant);
            }
            latest = latest.max(number);
        }
        due
    }
}

/// Parses one field into the set of its values, as bits.
fn values(field: &str, (low, high): (i8, i8)) -> u64 {
    let number = |text: &str| -> i8 { text.parse().expect("a number") };
    let mut values = 0;
    for part in field.split(',') {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let (from, to) = match range.split_once('-') {
            Some((from, to)) => (number(from), number(to)),
            None if range == "*" => (low, high),
            None => (number(range), number(range)),
        };
        for value in (from..=to).step_by(number(step) as usize) {
            values |= 1 << value;
        }
    }
    values
}

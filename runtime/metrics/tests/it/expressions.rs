//! Range expressions: a table of them, and what holds for any.

use proptest::prelude::*;
use watershed_metrics::jiff::{Span, Timestamp};
use watershed_metrics::{Calendar, Expression, Grain, Moments, Range, Zone};

/// The surroundings that lines of the table are resolved in.
struct Setting {
    moments: Moments,
    zone: String,
    weeks: u32,
    months: u32,
}

impl Setting {
    fn set(&mut self, key: &str, value: &str) {
        let time = || value.parse::<Timestamp>().expect("a time");
        match key {
            "now" => self.moments.now = time(),
            "earliest" => self.moments.earliest = Some(time()),
            "latest" => self.moments.latest = Some(time()),
            "watermark" => self.moments.watermark = Some(time()),
            "zone" => value.clone_into(&mut self.zone),
            "weeks" => self.weeks = value.parse().expect("a day"),
            "months" => self.months = value.parse().expect("a month"),
            _ => panic!("unknown setting {key}"),
        }
    }

    fn resolve(&self, text: &str) -> Result<Range, String> {
        let calendar = Calendar::new(Zone::find(&self.zone).expect("a zone"))
            .weeks_from(self.weeks)
            .years_from(self.months);
        let expression: Expression = text.parse().map_err(|error| format!("{error}"))?;
        let resolved = expression.resolve(&self.moments, &calendar, Grain::Second);
        let range = resolved.and_then(|resolved| resolved.range());
        range.map_err(|error| error.to_string())
    }
}

fn setting() -> Setting {
    Setting {
        moments: moments(),
        zone: String::new(),
        weeks: 1,
        months: 1,
    }
}

fn moments() -> Moments {
    let time = |text: &str| text.parse::<Timestamp>().expect("a time");
    Moments {
        now: time("2025-05-15T10:32:36Z"),
        earliest: Some(time("2020-01-01T00:32:36Z")),
        latest: Some(time("2025-05-14T06:32:36Z")),
        watermark: Some(time("2025-05-13T06:32:36Z")),
    }
}

/// Q7: each form of a range, with `as of`, `by`, `tz` and `offset`, stands for the instants that the table says.
#[test]
fn expressions_stand_for_the_ranges_of_the_table() {
    let mut setting = setting();
    let mut wrong = String::new();
    let mut checked = 0;
    let lines = include_str!("expressions.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        if let Some(settings) = line.strip_prefix("with ") {
            for (key, value) in settings.split(' ').filter_map(|pair| pair.split_once('=')) {
                setting.set(key, value);
            }
        } else if let Some((text, expected)) = line.split_once(" => ") {
            let found = setting.resolve(text);
            let said = match &found {
                Ok(range) => format!("{} .. {}", range.start, range.end),
                Err(_) => "!".to_owned(),
            };
            if said != expected {
                wrong += &format!("{text}\n    expected {expected}\n    found    {said} {found:?}\n");
            }
            checked += 1;
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(checked > 200, "only {checked} lines were read");
}

/// Q7: what only data has is missing where there is none, and that is said.
#[test]
fn without_data_only_ranges_of_the_clock_resolve() {
    let mut empty = setting();
    empty.moments = Moments {
        now: empty.moments.now,
        earliest: None,
        latest: None,
        watermark: None,
    };
    assert!(empty.resolve("7D").is_ok());
    assert!(empty.resolve("2024").is_ok());
    for (text, point) in [
        ("P7D", "watermark"),
        ("rill-MTD", "watermark"),
        ("inf", "earliest"),
        ("7D as of latest", "latest"),
    ] {
        assert_eq!(
            empty.resolve(text),
            Err(format!("without data there is no {point}"))
        );
    }
}

/// Q7: the time of an execution stands for now, the latest time and the watermark.
#[test]
fn the_time_of_an_execution_stands_for_now_latest_and_watermark() {
    let mut at = setting();
    at.moments = at
        .moments
        .executed_at("2024-02-29T12:00:00Z".parse().expect("a time"));
    for text in [
        "1D as of now/D",
        "1D as of latest/D",
        "1D as of watermark/D",
        "rill-PDC",
    ] {
        let range = at.resolve(text).expect("a range");
        assert_eq!(range.start.to_string(), "2024-02-28T00:00:00Z", "{text}");
    }
}

#[test]
fn an_error_says_where_and_what_was_expected() {
    let error = "7D as of latest/X".parse::<Expression>().expect_err("no unit");
    assert_eq!(
        error.to_string(),
        "\"7D as of latest/X\" is no range of time: expected `as of`, `by`, `tz`, `offset` or the end at \"/X\""
    );
}

fn soup() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "as of ",
        "to ",
        "by ",
        "tz ",
        "offset ",
        "ref",
        "now",
        "latest",
        "earliest",
        "watermark",
        "inf",
        "rill-",
        "P",
        "T",
        "TD",
        "of ",
        "2024",
        "2024-02-29",
        "T23:59",
        "Z",
        "/",
        ",",
        "-",
        "+",
        "1",
        "9999999999",
        "s",
        "m",
        "h",
        "D",
        "W",
        "M",
        "Q",
        "Y",
        " ",
        "UTC",
        "America/Havana",
        "é",
        "-1P",
        ".5",
    ]);
    prop::collection::vec(words, 0..9).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_text_panics(text in soup()) {
        let _ = setting().resolve(&text);
    }

    #[test]
    fn any_text_at_all_is_read_or_refused(text in ".{0,40}") {
        let _ = setting().resolve(&text);
    }

    /// Q7: days, weeks and months are those of the zone's calendar, ends of months clipped.
    #[test]
    fn lengths_are_those_of_the_zones_calendar(
        zone in prop::sample::select(vec!["America/New_York", "Australia/Lord_Howe", "America/Havana", "UTC"]),
        day in 0_i64..1500,
        count in 0_i64..400,
        unit in 0..4_usize,
    ) {
        let zoned = "2022-01-01T12:00:00Z".parse::<Timestamp>().expect("a time").in_tz(zone).expect("a zone");
        let end = zoned.checked_add(Span::new().days(day)).expect("in range").start_of_day().expect("a day");
        let (letter, span) = [
            ("D", Span::new().days(count)),
            ("W", Span::new().weeks(count)),
            ("M", Span::new().months(count)),
            ("Q", Span::new().months(count * 3)),
        ][unit];
        // The date is moved, not the time: a day that begins at one o'clock is a day all the same.
        let date = end.date().checked_sub(span).expect("in range");
        let start = date.to_zoned(end.time_zone().clone()).expect("in range").start_of_day().expect("a day");
        let mut setting = setting();
        setting.set("zone", zone);
        let found = setting.resolve(&format!("{count}{letter} as of {}", end.date())).expect("a range");
        prop_assert_eq!(found, Range { start: start.timestamp(), end: end.timestamp() });
    }

    /// Q8: once the range's own length back ends where the range begins, if that is so many whole days.
    #[test]
    fn the_period_before_whole_days_has_as_many(first in 0_i64..1000, days in 1_i64..100) {
        let mut setting = setting();
        setting.set("zone", "America/Havana");
        let date = |days: i64| {
            watershed_metrics::jiff::civil::date(2023, 1, 1).checked_add(Span::new().days(days)).expect("in range")
        };
        let base = setting.resolve(&format!("{} to {}", date(first), date(first + days))).expect("a range");
        let before = setting
            .resolve(&format!("{} to {} offset -1P", date(first), date(first + days)))
            .expect("a range");
        prop_assert_eq!(before.end, base.start);
        let expected = setting.resolve(&format!("{} to {}", date(first - days), date(first))).expect("a range");
        prop_assert_eq!(before, expected);
    }
}

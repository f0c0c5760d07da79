//! Buckets of a calendar against the days of another library, minute by minute where clocks change.

use watershed_metrics::jiff::civil::{Date, DateTime, Weekday};
use watershed_metrics::jiff::tz::TimeZone;
use watershed_metrics::jiff::{SignedDuration, Span, Timestamp};
use watershed_metrics::{Calendar, Grain, Range, Zone};

/// A shift of an hour, of half an hour, and one at midnight.
const ZONES: [&str; 3] = ["America/New_York", "Australia/Lord_Howe", "America/Havana"];

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// Q9: what the clock shows, cut to a grain; below a day together with the offset, so that a repeated hour counts twice.
fn shown(zone: &TimeZone, moment: Timestamp, grain: Grain) -> (DateTime, i32) {
    let local = zone.to_datetime(moment);
    let offset = zone.to_offset(moment).seconds();
    let minute = local
        .with()
        .second(0)
        .subsec_nanosecond(0)
        .build()
        .expect("a time");
    let hour = minute.with().minute(0).build().expect("a time");
    let day = hour.with().hour(0).build().expect("a time");
    match grain {
        Grain::Minute => (minute, offset),
        Grain::Hour => (hour, offset),
        _ => (day, 0),
    }
}

/// Q9: at both changes of a year each minute is in the bucket that began when the clock first showed it.
#[test]
fn buckets_begin_with_their_first_instant_where_clocks_change() {
    for name in ZONES {
        let zone = TimeZone::get(name).expect("a zone");
        let calendar = Calendar::new(Zone::find(name).expect("a zone"));
        let changes: Vec<Timestamp> = zone
            .following(time("2024-01-01T00:00:00Z"))
            .map(|change| change.timestamp())
            .take(2)
            .collect();
        for change in changes {
            for grain in [Grain::Minute, Grain::Hour, Grain::Day] {
                let mut moment = change - SignedDuration::from_hours(60);
                let mut began = None;
                while moment < change + SignedDuration::from_hours(60) {
                    let before = moment - SignedDuration::from_secs(60);
                    if shown(&zone, before, grain) != shown(&zone, moment, grain) {
                        began = Some(moment);
                    }
                    let bucket = calendar.bucket(moment, grain).expect("a bucket");
                    assert!(bucket.contains(moment));
                    if let Some(began) = began {
                        assert_eq!(bucket.start, began, "{name} {grain:?} at {moment}");
                    }
                    moment += SignedDuration::from_secs(60);
                }
            }
        }
    }
}

/// Returns the first instant of a date, by the other library.
fn first(date: Date, zone: &TimeZone) -> Timestamp {
    let noon = date.at(12, 0, 0, 0).to_zoned(zone.clone()).expect("a time");
    noon.start_of_day().expect("a day").timestamp()
}

/// Q9: days, weeks from each day, months, quarters and years from each month, for each day of four years.
#[test]
fn days_weeks_and_years_are_those_of_the_calendar() {
    for name in ZONES {
        let zone = TimeZone::get(name).expect("a zone");
        let calendar = Calendar::new(Zone::find(name).expect("a zone"));
        for days in 0..1461_i64 {
            let date = Date::constant(2022, 12, 31).saturating_add(Span::new().days(days));
            let noon = date.at(12, 0, 0, 0).to_zoned(zone.clone()).expect("a time");
            let check = |calendar: &Calendar, grain: Grain, from: Date, after: Date| {
                let bucket = calendar.bucket(noon.timestamp(), grain).expect("a bucket");
                let expected = Range {
                    start: first(from, &zone),
                    end: first(after, &zone),
                };
                assert_eq!(bucket, expected, "{name} {grain:?} at {date}");
            };
            check(&calendar, Grain::Day, date, date.tomorrow().expect("a day"));
            for day in 1..=7_i8 {
                let begins = Weekday::from_monday_one_offset(day).expect("a day");
                let mut from = date;
                while from.weekday() != begins {
                    from = from.yesterday().expect("a day");
                }
                let calendar = calendar.clone().weeks_from(u32::try_from(day).expect("small"));
                check(
                    &calendar,
                    Grain::Week,
                    from,
                    from.saturating_add(Span::new().days(7)),
                );
            }
            for month in 1..=12_i8 {
                let calendar = calendar.clone().years_from(u32::try_from(month).expect("small"));
                for (grain, months) in [(Grain::Month, 1), (Grain::Quarter, 3), (Grain::Year, 12)] {
                    let mut from = date.first_of_month();
                    while (i32::from(from.month()) - i32::from(month)).rem_euclid(months) != 0 {
                        from = from.yesterday().expect("a day").first_of_month();
                    }
                    let after = from.saturating_add(Span::new().months(i64::from(months)));
                    check(&calendar, grain, from, after);
                }
            }
        }
    }
}

/// Q9: the days with a change have 23 and 25 hours, or half an hour more and less.
#[test]
fn days_with_a_change_are_shorter_and_longer() {
    for (name, day, minutes, buckets) in [
        ("America/New_York", "2024-03-10T12:00:00Z", 23 * 60, 23),
        ("America/New_York", "2024-11-03T12:00:00Z", 25 * 60, 25),
        ("America/Havana", "2024-03-10T12:00:00Z", 23 * 60, 23),
        ("America/Havana", "2024-11-03T12:00:00Z", 25 * 60, 25),
        ("Australia/Lord_Howe", "2024-04-07T01:00:00Z", 24 * 60 + 30, 25),
        ("Australia/Lord_Howe", "2024-10-06T01:00:00Z", 23 * 60 + 30, 24),
    ] {
        let calendar = Calendar::new(Zone::find(name).expect("a zone"));
        let day = calendar.bucket(time(day), Grain::Day).expect("a day");
        assert_eq!(day.end.duration_since(day.start).as_mins(), minutes, "{name}");
        let hours = calendar.buckets(day, Grain::Hour, 30).expect("few");
        assert_eq!(hours.len(), buckets, "{name}");
        assert_eq!((hours[0].start, hours[hours.len() - 1].end), (day.start, day.end));
        assert!(hours.windows(2).all(|two| two[0].end == two[1].start));
        assert_eq!(calendar.buckets(day, Grain::Hour, buckets - 1), None);
    }
}

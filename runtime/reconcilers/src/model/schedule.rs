//! The schedule of a model, by which it is refreshed without an edit.

use watershed_core::Timestamp;
use watershed_proto::{Message as _, ModelSpec, Schedule as Said};
use watershed_schedule::{
    Cron, Due, Schedule, Zone,
    jiff::{self, SignedDuration, tz::TimeZone},
};

/// Returns the schedule that a spec sets; none if it has no times.
pub(super) fn from_spec(spec: &ModelSpec) -> Option<Schedule> {
    read(spec.refresh_schedule.as_ref())
}

/// Returns the schedule that a file sets; none if it has no times. The compiler has rejected invalid values.
pub(crate) fn read(said: Option<&Said>) -> Option<Schedule> {
    let said = said.filter(|said| !said.disable)?;
    if said.cron.is_empty() && said.ticker_seconds == 0 {
        return None;
    }
    let zone = match said.time_zone.as_str() {
        "Local" => Zone::from(TimeZone::system()),
        name => Zone::find(name).unwrap_or(Zone::UTC),
    };
    let cron = Cron::parse(&said.cron).ok();
    let schedule = cron
        .clone()
        .map_or(Schedule::NEVER, |cron| Schedule::cron(cron, zone));
    let every = i64::from(said.ticker_seconds);
    match (cron, every) {
        (None, 0) => None,
        (_, 0) => Some(schedule),
        (_, every) => schedule.or_every(SignedDuration::from_secs(every)).ok(),
    }
}

/// The fingerprint of a schedule without times.
pub(crate) const NO_TIMES: &str = "-";

/// Returns a fingerprint of a schedule's times; when it changes, the schedule counts from then on.
pub(crate) fn fingerprint(said: Option<&Said>) -> String {
    let (Some(said), Some(_)) = (said, read(said)) else {
        return NO_TIMES.to_owned();
    };
    let times = Said {
        cron: said.cron.clone(),
        ticker_seconds: said.ticker_seconds,
        time_zone: said.time_zone.clone(),
        ..Said::default()
    };
    let hash = blake3::hash(&times.encode_to_vec()).to_hex();
    hash.chars().take(16).collect()
}

/// Returns a mark, or `now` if the mark is in the future by a clock that was ahead.
pub(crate) fn trusted(mark: Timestamp, now: Timestamp) -> Timestamp {
    match watershed_schedule::is_trusted(instant(mark), instant(now)) {
        true => mark,
        false => now,
    }
}

/// Returns true if a tick is due at `now`, given the mark of the last one.
pub(super) fn is_due(schedule: &Schedule, mark: Timestamp, now: Timestamp) -> bool {
    matches!(schedule.due(instant(mark), instant(now)), Due::Now(_))
}

/// Returns the first due time after `mark`, or after `now` if the mark is in the future.
pub(super) fn next(schedule: &Schedule, mark: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let next = schedule.next_after(instant(mark.min(now)))?;
    Some(Timestamp(next.as_millisecond()))
}

fn instant(time: Timestamp) -> jiff::Timestamp {
    let nearest = if time.0 < 0 {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    };
    jiff::Timestamp::from_millisecond(time.0).unwrap_or(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(said: Said) -> Option<Schedule> {
        from_spec(&ModelSpec {
            refresh_schedule: Some(said),
            ..ModelSpec::default()
        })
    }

    fn at(text: &str) -> Timestamp {
        Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    #[test]
    fn a_cron_expression_counts_in_its_zone() {
        let said = Said {
            cron: "0 6 * * *".into(),
            time_zone: "Europe/Oslo".into(),
            ..Said::default()
        };
        let daily = schedule(said.clone()).unwrap();
        let built = at("2026-06-01T12:00:00Z");
        assert_eq!(next(&daily, built, built), Some(at("2026-06-02T04:00:00Z")));
        assert!(!is_due(&daily, built, at("2026-06-02T03:59:59Z")));
        assert!(
            is_due(&daily, built, at("2026-06-09T00:00:00Z")),
            "missed times too"
        );
        let disable = true;
        assert_eq!(schedule(Said { disable, ..said }), None);
        assert_eq!(schedule(Said::default()), None);
    }

    #[test]
    fn an_interval_counts_from_the_last_build() {
        let hourly = schedule(Said {
            ticker_seconds: 3_600,
            ..Said::default()
        });
        let built = at("2026-06-01T12:34:56Z");
        assert_eq!(
            next(&hourly.unwrap(), built, built),
            Some(at("2026-06-01T13:34:56Z"))
        );
    }

    #[test]
    fn a_mark_of_a_clock_that_was_ahead_is_none_and_a_correction_repeats_nothing() {
        let now = at("2026-03-10T14:00:00Z");
        for (mark, known) in [
            ("2026-03-10T06:00:00Z", "2026-03-10T06:00:00Z"),
            ("2026-03-10T16:59:00Z", "2026-03-10T16:59:00Z"),
            ("2031-01-01T00:00:00Z", "2026-03-10T14:00:00Z"),
        ] {
            assert_eq!(trusted(at(mark), now), at(known), "{mark}");
        }
        assert_eq!(trusted(Timestamp(i64::MAX), now), now);
    }

    #[test]
    fn other_times_have_another_fingerprint_and_other_settings_the_same() {
        let of = |cron: &str, zone: &str, disable| {
            fingerprint(Some(&Said {
                cron: cron.into(),
                time_zone: zone.into(),
                ref_update: disable,
                disable,
                ..Said::default()
            }))
        };
        assert_ne!(of("15 1 * * *", "", false), of("15 2 * * *", "", false));
        assert_ne!(
            of("15 1 * * *", "", false),
            of("15 1 * * *", "Europe/Oslo", false)
        );
        assert_eq!(of("15 1 * * *", "", true), NO_TIMES, "it is switched off");
        assert_eq!(fingerprint(None), NO_TIMES);
    }

    #[test]
    fn a_clock_that_was_set_back_makes_nothing_due_and_loses_no_time() {
        let hourly = schedule(Said {
            ticker_seconds: 3_600,
            ..Said::default()
        });
        let (hourly, built) = (hourly.unwrap(), at("2027-01-01T00:00:00Z"));
        let now = at("2026-06-01T12:00:00Z");
        assert!(!is_due(&hourly, built, now));
        assert_eq!(next(&hourly, built, now), Some(at("2026-06-01T13:00:00Z")));
    }
}

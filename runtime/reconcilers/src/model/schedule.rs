//! The schedule of a model: when it is refreshed without an edit.

use watershed_core::Timestamp;
use watershed_proto::{ModelSpec, Schedule as Said};
use watershed_schedule::{
    Cron, Due, Schedule, Zone,
    jiff::{self, SignedDuration, tz::TimeZone},
};

/// Returns the schedule that a spec asks for; none if it has no times.
pub(super) fn from_spec(spec: &ModelSpec) -> Option<Schedule> {
    read(spec.refresh_schedule.as_ref())
}

/// Returns the schedule that a file says; none if it has no times. The compiler has refused what can't be read.
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

/// Returns whether something is due `now` that was last done at `mark`. A mark in the future, of a clock that was set
/// back since, makes nothing due.
pub(super) fn is_due(schedule: &Schedule, mark: Timestamp, now: Timestamp) -> bool {
    matches!(schedule.due(instant(mark), instant(now)), Due::Now(_))
}

/// Returns the first due time after `mark`, and after `now` if the mark is in the future.
pub(super) fn next(schedule: &Schedule, mark: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let next = schedule.next_after(instant(mark.min(now)))?;
    Some(Timestamp(next.as_millisecond()))
}

fn instant(time: Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(time.0).unwrap_or_default()
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

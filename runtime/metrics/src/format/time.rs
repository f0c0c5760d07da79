//! Formats of times that are cut to a grain, shown by the clock of their zone.

use crate::jiff::{Timestamp, civil};
use crate::{Grain, Zone};

/// A format of times that are cut to a grain: by the clock of a zone, as short as the grain allows.
///
/// ```
/// use watershed_metrics::format::TimeFormat;
/// use watershed_metrics::{Grain, Zone};
///
/// let days = TimeFormat::new(Zone::find("America/New_York")?, Grain::Day);
/// assert_eq!(days.apply("2013-07-01 04:00:00"), "2013-07-01");
/// # Ok::<(), watershed_metrics::UnknownZone>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeFormat {
    zone: Zone,
    grain: Grain,
}

impl TimeFormat {
    /// Creates the format for times cut to a grain in a time zone.
    pub fn new(zone: Zone, grain: Grain) -> Self {
        Self { zone, grain }
    }

    /// Returns the time zone of the format.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Returns the equivalent format code of spreadsheets.
    pub fn sheet_code(&self) -> &'static str {
        match self.grain {
            Grain::Second => "yyyy-mm-dd hh:mm:ss",
            Grain::Minute | Grain::Hour => "yyyy-mm-dd hh:mm",
            Grain::Day | Grain::Week | Grain::Month | Grain::Quarter | Grain::Year => "yyyy-mm-dd",
        }
    }

    /// Formats an instant as text.
    pub fn at(&self, instant: Timestamp) -> String {
        self.zone.local(instant).strftime(self.pattern()).to_string()
    }

    /// Formats a UTC time as written in documents: `2013-07-01 04:00:00`, with or without an offset. Dates and other
    /// texts stay as they are.
    pub fn apply(&self, time: &str) -> String {
        instant(time).map_or_else(|| time.to_owned(), |instant| self.at(instant))
    }

    fn pattern(&self) -> &'static str {
        match self.grain {
            Grain::Second => "%Y-%m-%d %H:%M:%S",
            Grain::Minute | Grain::Hour => "%Y-%m-%d %H:%M",
            Grain::Day | Grain::Week | Grain::Month | Grain::Quarter | Grain::Year => "%Y-%m-%d",
        }
    }
}

fn instant(time: &str) -> Option<Timestamp> {
    if !time.contains(':') {
        return None;
    }
    let universal = || Zone::UTC.instant(time.parse::<civil::DateTime>().ok()?);
    time.parse().ok().or_else(universal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_by_the_clock_of_the_zone_as_short_as_their_grain() {
        let written = |zone: &str, grain, time: &str| {
            let zone = Zone::find(zone).expect("a zone");
            TimeFormat::new(zone, grain).apply(time)
        };
        for (zone, grain, time, expected) in [
            ("Asia/Tokyo", Grain::Day, "2013-06-30 15:00:00", "2013-07-01"),
            ("Asia/Tokyo", Grain::Month, "2013-06-30 15:00:00+00", "2013-07-01"),
            (
                "America/New_York",
                Grain::Hour,
                "2013-07-01T04:00:00Z",
                "2013-07-01 00:00",
            ),
            ("UTC", Grain::Second, "2013-07-01 04:05:06", "2013-07-01 04:05:06"),
            ("Asia/Tokyo", Grain::Day, "2013-07-01", "2013-07-01"),
            ("Asia/Tokyo", Grain::Day, "infinity", "infinity"),
            ("Asia/Tokyo", Grain::Day, "", ""),
        ] {
            assert_eq!(written(zone, grain, time), expected, "{time} in {zone}");
        }
    }
}

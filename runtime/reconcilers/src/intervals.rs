//! Calendar intervals that alerts and reports evaluate one by one (N2).

use watershed_controller::Timestamp;
use watershed_core::Error;
use watershed_metrics::jiff::civil::Weekday;
use watershed_proto::{DataResolver, Intervals as Said, Schedule};
use watershed_resolvers::{Resolvers, Until};
use watershed_schedule::{Intervals, Step, StepError, Zone};

use crate::{metrics_view, model::schedule, surroundings::instant};

/// The default number of intervals to catch up on.
const LIMIT: usize = 25;

/// A calendar divided into intervals.
pub(crate) struct Cut {
    intervals: Intervals,
    limit: usize,
    checks_unclosed: bool,
}

/// The end of an interval to be evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) at: Timestamp,
    /// True if the interval is over; an open interval is evaluated up to the current moment.
    pub(crate) is_closed: bool,
}

impl End {
    /// Returns the time up to which data is read for the interval.
    pub(crate) fn until(self) -> Until {
        match self.is_closed {
            true => Until::end(instant(self.at)),
            false => Until::moment(instant(self.at)),
        }
    }
}

/// The intervals to be evaluated.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// The ends of the intervals, oldest first.
    pub(crate) ends: Vec<End>,
    /// The number of older intervals that are skipped, as there are too many.
    pub(crate) left_out: u64,
}

impl Cut {
    /// Divides the calendar in a schedule's time zone, by the weeks of the metrics view that is queried.
    ///
    /// # Errors
    /// A length that is none; the compiler has refused it.
    pub(crate) fn of(
        said: &Said,
        schedule: Option<&Schedule>,
        data: Option<&DataResolver>,
        resolvers: &Resolvers<'_>,
    ) -> Result<Self, Error> {
        let step: Step = said
            .iso_duration
            .parse()
            .map_err(|error: StepError| Error::permanent("invalid-value", error.to_string()))?;
        let schedule = schedule::read(schedule);
        let zone = schedule.map_or(Zone::UTC, |schedule| schedule.zone().clone());
        let properties = data.and_then(|data| data.properties.as_ref());
        let view = properties.and_then(|properties| properties.str(metrics_view::KIND));
        let (day, month) = view.map_or((0, 0), |view| resolvers.views.first_of_calendar(view));
        let mut intervals = Intervals::new(step, zone);
        if let Ok(day) = Weekday::from_monday_one_offset(i8::try_from(day).unwrap_or_default()) {
            intervals = intervals.weeks_from(day);
        }
        if month > 0 {
            intervals = intervals.years_from(i8::try_from(month).unwrap_or(1));
        }
        Ok(Self {
            intervals,
            limit: match said.limit {
                0 => LIMIT,
                limit => usize::try_from(limit).unwrap_or(LIMIT),
            },
            checks_unclosed: said.check_unclosed,
        })
    }

    /// Returns the days of a time zone, for tests.
    #[cfg(test)]
    pub(crate) fn days(zone: Zone) -> Self {
        Self {
            intervals: Intervals::new("P1D".parse().unwrap(), zone),
            limit: LIMIT,
            checks_unclosed: false,
        }
    }

    /// Returns the intervals since the last evaluated one; the newest one again if there are none and one is requested.
    pub(crate) fn due(&self, last: Option<Timestamp>, moment: Timestamp, is_wanted: bool) -> Due {
        let until = instant(moment);
        let mut closed = self.intervals.closed(last.map(instant), until, self.limit);
        if closed.intervals.is_empty() && is_wanted {
            closed = self.intervals.closed(None, until, 1);
        }
        let end = |interval: &watershed_schedule::Interval| End {
            at: Timestamp(interval.end.as_millisecond()),
            is_closed: true,
        };
        let mut ends: Vec<End> = closed.intervals.iter().map(end).collect();
        let is_open = self.intervals.at(until).is_some_and(|open| open.start < until);
        if self.checks_unclosed && is_open {
            ends.push(End {
                at: moment,
                is_closed: false,
            });
        }
        Due {
            ends,
            left_out: closed.left_out,
        }
    }
}

#[cfg(test)]
mod tests {
    use watershed_metrics::jiff;

    use super::*;

    fn at(text: &str) -> Timestamp {
        let instant: jiff::Timestamp = text.parse().unwrap();
        Timestamp(instant.as_millisecond())
    }

    fn cut(checks_unclosed: bool) -> Cut {
        let zone = Zone::find("America/New_York").unwrap();
        Cut {
            intervals: Intervals::new("P1D".parse().unwrap(), zone),
            limit: 3,
            checks_unclosed,
        }
    }

    fn ends(due: &Due) -> Vec<String> {
        let text = |end: &End| instant(end.at).to_string();
        due.ends.iter().map(text).collect()
    }

    /// Tests rule N2: closed intervals are evaluated once, and on the first look only the newest.
    #[test]
    fn each_closed_interval_is_evaluated_once_and_the_newest_first_time() {
        let noon = at("2024-03-11T16:00:00Z");
        let first = cut(false).due(None, noon, false);
        assert_eq!(
            ends(&first),
            ["2024-03-11T04:00:00Z"],
            "the day of 23 hours has ended"
        );
        let again = cut(false).due(Some(first.ends[0].at), noon, false);
        assert_eq!(again, Due::default());
        let wanted = cut(false).due(Some(first.ends[0].at), noon, true);
        assert_eq!(wanted.ends, first.ends);
        let open = cut(true).due(Some(first.ends[0].at), noon, false);
        assert_eq!(
            open.ends,
            [End {
                at: noon,
                is_closed: false
            }]
        );
    }

    /// Tests rule N2: of too many intervals, the newest are evaluated and the others counted.
    #[test]
    fn too_many_intervals_leave_the_newest_and_count_the_others() {
        let due = cut(false).due(
            Some(at("2024-03-01T05:00:00Z")),
            at("2024-03-11T16:00:00Z"),
            false,
        );
        assert_eq!(due.left_out, 7);
        assert_eq!(
            ends(&due),
            [
                "2024-03-09T05:00:00Z",
                "2024-03-10T05:00:00Z",
                "2024-03-11T04:00:00Z"
            ]
        );
    }
}

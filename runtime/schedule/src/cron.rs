//! Cron expressions in a time zone.

use std::fmt;
use std::str::FromStr;

use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::AmbiguousOffset;
use jiff::{SignedDuration, Timestamp};

use crate::Zone;

/// Maximum number of steps in one search. A step goes to the next match in a repeated stretch of the clock, or to the
/// next clock change; the longest stretch on record is a day of minutes, and 100 years have 200 changes.
const MAX_STEPS: usize = 2_000;

/// A cron expression of five fields (minute, hour, day of the month, month, weekday), or a word such as `@daily`.
///
/// When day and weekday are both given, either one is enough, as in every cron. `L`, `W` and `#` are understood
/// (`0 6 L * *` is the last day of a month, `0 6 * * MON#1` its first Monday). The [crate's page](crate#daylight-saving)
/// says what happens when the clock is changed.
///
/// ```
/// use watershed_schedule::{Cron, Zone};
///
/// let cron = Cron::parse("0 6 29 2 *")?;
/// let next = cron.next_after("2026-11-22T00:00:00Z".parse()?, &Zone::UTC);
/// assert_eq!(next, Some("2028-02-29T06:00:00Z".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    pattern: croner::Cron,
    hours: Hours,
}

/// Readings of the hour field, which differ when the clock is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hours {
    /// Explicit hours: each local time runs exactly once.
    Named,
    /// `*` or `*/n`: runs follow the clock through its changes.
    Any,
}

/// Reasons why a text is not a cron expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// The text does not have the right form.
    #[error("invalid cron expression \"{text}\": {reason}")]
    Invalid {
        /// The rejected text.
        text: String,
        /// First mistake in the text.
        reason: String,
    },
    /// The form is right, but no date ever matches, such as the 30th of February.
    #[error("the cron expression \"{text}\" never comes due")]
    Never {
        /// The rejected text.
        text: String,
    },
}

impl Cron {
    /// Parses an expression.
    ///
    /// # Errors
    /// [`CronError`], also when the expression could never come due.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let text = text.trim().to_owned();
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Optional)
            .build();
        let pattern = match parser.parse(&text) {
            Ok(pattern) => pattern,
            Err(error) => {
                let reason = error.to_string();
                return Err(CronError::Invalid { text, reason });
            }
        };
        let hours = hours(&text);
        let cron = Self { text, pattern, hours };
        // A leap day that falls on a given weekday recurs within 40 years.
        let start = DateTime::constant(2000, 1, 1, 0, 0, 0, 0);
        match cron.match_at_or_after(start) {
            Some(_) => Ok(cron),
            None => Err(CronError::Never { text: cron.text }),
        }
    }

    /// Returns the expression as given, without blanks around it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the first due time later than `after`. `None` only near the end of representable time.
    pub fn next_after(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        match self.hours {
            Hours::Named => self.next_named(after, zone),
            Hours::Any => self.next_any(after, zone),
        }
    }

    /// Returns the last due time at or before `until`. `None` only near the beginning of representable time.
    pub fn last_until(&self, until: Timestamp, zone: &Zone) -> Option<Timestamp> {
        match self.hours {
            Hours::Named => self.last_named(until, zone),
            Hours::Any => self.last_any(until, zone),
        }
    }

    /// Searches forward through matching local times. Their instants ([`Zone::once`]) never decrease, so the first
    /// instant that is late enough is the answer.
    fn next_named(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let mut local = zone.local(after);
        for _ in 0..MAX_STEPS {
            local = self.match_after(local)?;
            let instant = zone.once(local)?;
            if instant > after {
                return Some(instant);
            }
        }
        None
    }

    fn last_named(&self, until: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let mut local = zone.local(until);
        // The second time through a repeated stretch, all of the stretch has been: it ran the first time.
        if let AmbiguousOffset::Fold { before, after } = zone.rules().to_ambiguous_timestamp(local).offset()
            && zone.offset(until) == after
        {
            let length = before.duration_since(after);
            local = local.checked_add(length).ok()?;
        }
        local = self.match_at_or_before(local)?;
        for _ in 0..MAX_STEPS {
            let instant = zone.once(local)?;
            if instant <= until {
                return Some(instant);
            }
            local = self.match_before(local)?;
        }
        None
    }

    /// Searches from one change of the offset to the next: in between, local time and instants advance together.
    fn next_any(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let mut start = after;
        let mut found = self.match_after(zone.local(after))?;
        for _ in 0..MAX_STEPS {
            let instant = zone.offset(start).to_timestamp(found).ok()?;
            match zone.next_change(start) {
                Some(change) if change <= instant => {
                    start = change;
                    found = self.match_at_or_after(zone.local(change))?;
                }
                _ => return Some(instant),
            }
        }
        None
    }

    fn last_any(&self, until: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let mut end = until;
        let mut found = self.match_at_or_before(zone.local(until))?;
        for _ in 0..MAX_STEPS {
            let instant = zone.offset(end).to_timestamp(found).ok()?;
            match zone.last_change(end) {
                Some(change) if instant < change => {
                    end = change.checked_sub(SignedDuration::from_nanos(1)).ok()?;
                    found = self.match_at_or_before(zone.local(end))?;
                }
                _ => return Some(instant),
            }
        }
        None
    }

    fn match_after(&self, local: DateTime) -> Option<DateTime> {
        whole(self.pattern.find_next_occurrence(&second(local)?, false).ok())
    }

    fn match_at_or_after(&self, local: DateTime) -> Option<DateTime> {
        let floor = second(local)?;
        // A match within the second that has begun lies before `local`.
        let inclusive = floor == local;
        whole(self.pattern.find_next_occurrence(&floor, inclusive).ok())
    }

    fn match_at_or_before(&self, local: DateTime) -> Option<DateTime> {
        whole(self.pattern.find_previous_occurrence(&second(local)?, true).ok())
    }

    fn match_before(&self, local: DateTime) -> Option<DateTime> {
        whole(self.pattern.find_previous_occurrence(&second(local)?, false).ok())
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        Self::parse(text)
    }
}

/// Returns the reading of an expression's hour field. Of the words, only `@hourly` runs in every hour.
fn hours(text: &str) -> Hours {
    let any = match text.split_whitespace().nth(1) {
        Some(field) => field.starts_with('*'),
        None => text.eq_ignore_ascii_case("@hourly"),
    };
    if any { Hours::Any } else { Hours::Named }
}

/// Removes the fraction of a second.
fn second(local: DateTime) -> Option<DateTime> {
    local.with().subsec_nanosecond(0).build().ok()
}

/// Returns a match unchanged. Its seconds are always zero, because expressions have no such field.
fn whole(found: Option<DateTime>) -> Option<DateTime> {
    debug_assert!(
        found.is_none_or(|found| found.second() == 0),
        "a match at a whole minute"
    );
    found
}

//! Windows of time as people state them, and the window that applies at a time.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_controller::Timestamp;
use watershed_schedule::jiff::civil::DateTime;
use watershed_schedule::jiff::{self, SignedDuration};
use watershed_schedule::{Cron, Margins, Phase, Recurrence, Window, WindowError, Zone};

/// The default lead of a window: 15 minutes.
pub const LEAD: Duration = Duration::from_secs(15 * 60);
/// The default teardown of a window: 10 minutes.
pub const TEARDOWN: Duration = Duration::from_secs(10 * 60);

/// A window as people state it: local times in a time zone, once or by a cron expression, with a lead and a teardown.
///
/// ```
/// use watershed_managers::Timed;
///
/// let once = Timed::once("2027-03-01T09:00", "2027-03-01T11:00").in_zone("Europe/Oslo");
/// assert!(once.plan().is_ok());
/// assert!(Timed::once("2027-03-01T11:00", "2027-03-01T09:00").plan().is_err());
/// assert!(Timed::cron("0 9 * * 1-5", std::time::Duration::from_secs(7200)).plan().is_ok());
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Timed {
    /// The local times of the window.
    pub when: When,
    /// The IANA name of the time zone; empty for UTC.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub time_zone: String,
    /// The time before the start for preparation.
    pub lead: Duration,
    /// The time after the end for cleanup.
    pub teardown: Duration,
}

/// The local times of a window.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// A window between two local times, such as `2027-03-01T09:00`.
    Once {
        /// The local time of the start.
        start: String,
        /// The local time of the end.
        end: String,
    },
    /// A window at each time of a cron expression.
    Cron {
        /// The cron expression for the starts.
        cron: String,
        /// The length of each window.
        duration: Duration,
    },
}

/// The reason why a window is refused, with the code `bad-window`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadWindow {
    /// The text is not a valid local time.
    #[error("\"{0}\" is no local time such as 2027-03-01T09:00")]
    Time(String),
    /// The time zone is unknown.
    #[error("unknown time zone \"{0}\"")]
    Zone(String),
    /// The cron expression is invalid.
    #[error("\"{cron}\" is no cron expression: {message}")]
    Cron {
        /// The invalid cron expression.
        cron: String,
        /// The description of the error.
        message: String,
    },
    /// The boundaries of the window are out of order, or out of range.
    #[error(transparent)]
    Bounds(#[from] WindowError),
    /// The end of an accepted window was moved to an earlier time.
    #[error("the end of a window may only be moved to a later time; to end early, set what is desired")]
    EndsEarlier,
    /// The start of an accepted window was moved after its lead had begun.
    #[error("the start of a window can't be moved once its lead has begun")]
    StartMoved,
    /// The window of the named part is not inside its owner's window.
    #[error("the window of part \"{0}\" is not inside its owner's")]
    Outside(String),
    /// The window of the named part begins before the window of an earlier part.
    #[error("the window of part \"{0}\" begins before that of a part in front of it")]
    OutOfOrder(String),
}

/// The windows of a resource, with instants for their times.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Plan {
    /// A window that occurs once.
    Once(Window),
    /// A series of windows.
    Recurring(Box<Recurrence>),
}

impl Timed {
    /// Returns a window between two local times, in UTC and with the default lead and teardown.
    pub fn once(start: impl Into<String>, end: impl Into<String>) -> Self {
        let (start, end) = (start.into(), end.into());
        Self::of(When::Once { start, end })
    }

    /// Returns windows that start by a cron expression, in UTC and with the default lead and teardown.
    pub fn cron(cron: impl Into<String>, duration: Duration) -> Self {
        let cron = cron.into();
        Self::of(When::Cron { cron, duration })
    }

    fn of(when: When) -> Self {
        Self {
            when,
            time_zone: String::new(),
            lead: LEAD,
            teardown: TEARDOWN,
        }
    }

    /// Returns the window in another time zone.
    #[must_use]
    pub fn in_zone(mut self, zone: impl Into<String>) -> Self {
        self.time_zone = zone.into();
        self
    }

    /// Returns the window with another lead and teardown.
    #[must_use]
    pub fn with_margins(mut self, lead: Duration, teardown: Duration) -> Self {
        (self.lead, self.teardown) = (lead, teardown);
        self
    }

    /// Returns the windows with instants for their times.
    ///
    /// A local time that the clock skips moves forward by the gap; of one that it shows twice the first is meant.
    ///
    /// # Errors
    /// [`BadWindow`] if a time, the zone or the expression can't be read, or the end is not later than the start.
    pub fn plan(&self) -> Result<Plan, BadWindow> {
        let zone = Zone::find(&self.time_zone).map_err(|unknown| BadWindow::Zone(unknown.name))?;
        let margins = Margins {
            lead: signed(self.lead)?,
            teardown: signed(self.teardown)?,
        };
        match &self.when {
            When::Once { start, end } => {
                let (start, end) = (instant(&zone, start)?, instant(&zone, end)?);
                Ok(Plan::Once(Window::new(start, end, margins)?))
            }
            When::Cron { cron, duration } => {
                let parsed = Cron::parse(cron).map_err(|error| BadWindow::Cron {
                    cron: cron.clone(),
                    message: error.to_string(),
                })?;
                let recurrence = Recurrence::new(parsed, zone, signed(*duration)?, margins)?;
                Ok(Plan::Recurring(Box::new(recurrence)))
            }
        }
    }
}

fn signed(length: Duration) -> Result<SignedDuration, BadWindow> {
    SignedDuration::try_from(length).map_err(|_| BadWindow::Bounds(WindowError::OutOfRange))
}

fn instant(zone: &Zone, local: &str) -> Result<jiff::Timestamp, BadWindow> {
    let time: DateTime = local.parse().map_err(|_| BadWindow::Time(local.to_owned()))?;
    zone.instant(time)
        .ok_or(BadWindow::Bounds(WindowError::OutOfRange))
}

impl Plan {
    /// Returns the window that applies at a time. None only near the limits of the calendar.
    pub fn at(&self, now: Timestamp) -> Option<Occurrence> {
        let now = to_jiff(now);
        let window = match self {
            Self::Once(window) => *window,
            Self::Recurring(recurrence) => recurrence.at(now)?,
        };
        Some(Occurrence::of(&window))
    }

    /// Returns the next time after `now` at which another window or phase may apply; none if there is no such time.
    pub fn next_boundary(&self, now: Timestamp) -> Option<Timestamp> {
        let now = to_jiff(now);
        let next = match self {
            Self::Once(window) => window.next_boundary(now),
            Self::Recurring(recurrence) => recurrence.next_boundary(now),
        };
        next.map(from_jiff)
    }
}

/// A window with its boundaries, as records keep it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Occurrence {
    /// The start of the lead.
    pub opening: Timestamp,
    /// The start of the window itself.
    pub start: Timestamp,
    /// The end of the window itself.
    pub end: Timestamp,
    /// The cleanup deadline, from which nothing may be left.
    pub deadline: Timestamp,
}

impl Occurrence {
    fn of(window: &Window) -> Self {
        Self {
            opening: from_jiff(window.opening()),
            start: from_jiff(window.start()),
            end: from_jiff(window.end()),
            deadline: from_jiff(window.deadline()),
        }
    }

    /// Returns the phase of the window at a time. A boundary belongs to the phase that it begins.
    pub fn phase(&self, now: Timestamp) -> Phase {
        if now < self.opening {
            Phase::Before
        } else if now < self.start {
            Phase::Approaching
        } else if now < self.end {
            Phase::Active
        } else if now < self.deadline {
            Phase::Teardown
        } else {
            Phase::Expired
        }
    }

    /// Returns the next boundary after a time; none after the last.
    pub fn next_boundary(&self, now: Timestamp) -> Option<Timestamp> {
        let all = [self.opening, self.start, self.end, self.deadline];
        all.into_iter().find(|boundary| *boundary > now)
    }

    /// Checks that this window may replace the accepted one.
    ///
    /// Once the cleanup deadline of that one is over, any other may follow.
    ///
    /// # Errors
    /// [`BadWindow::EndsEarlier`], and [`BadWindow::StartMoved`] if the lead has begun.
    pub fn may_follow(&self, accepted: &Self, now: Timestamp) -> Result<(), BadWindow> {
        if accepted.phase(now) == Phase::Expired {
            return Ok(());
        }
        if self.end < accepted.end {
            return Err(BadWindow::EndsEarlier);
        }
        if self.start != accepted.start && accepted.phase(now) != Phase::Before {
            return Err(BadWindow::StartMoved);
        }
        Ok(())
    }

    /// Returns true if this window lies inside another one, without regard to lead and teardown.
    pub fn is_within(&self, outer: &Self) -> bool {
        outer.start <= self.start && self.end <= outer.end
    }
}

/// Returns the word for a phase, for people.
pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Before => "before",
        Phase::Approaching => "approaching",
        Phase::Active => "active",
        Phase::Teardown => "teardown",
        Phase::Expired => "expired",
    }
}

/// Returns the time in the calendar's type, moved into its range if necessary.
fn to_jiff(time: Timestamp) -> jiff::Timestamp {
    let nearest = if time.0 < 0 {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    };
    jiff::Timestamp::from_millisecond(time.0).unwrap_or(nearest)
}

fn from_jiff(time: jiff::Timestamp) -> Timestamp {
    Timestamp(time.as_millisecond())
}

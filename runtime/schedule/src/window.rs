//! Windows: time spans with a lead before and a teardown after.

use jiff::{SignedDuration, Timestamp};

/// A time span in which something is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    start: Timestamp,
    end: Timestamp,
    margins: Margins,
}

/// Elapsed time around a window, unaffected by clock changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Margins {
    /// Time before the start, for preparation.
    pub lead: SignedDuration,
    /// Time after the end, for cleanup.
    pub teardown: SignedDuration,
}

/// Phase of a window, in order of time. A boundary belongs to the phase that it opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The time before the lead begins.
    Before,
    /// Lead time before the window, from `start - lead`.
    Approaching,
    /// The window itself, from `start`.
    Active,
    /// The cleanup time, from `end`.
    Teardown,
    /// The time from the [deadline](Window::deadline) on.
    Expired,
}

/// Reasons to refuse the times of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// The window does not end after its start.
    #[error("the end of a window must be later than its start")]
    Empty,
    /// The lead or the teardown is negative.
    #[error("the {margin} of a window must not be negative")]
    Negative {
        /// Name of the margin: `lead` or `teardown`.
        margin: &'static str,
    },
    /// A boundary can't be represented as a timestamp.
    #[error("the window lies beyond the years that can be represented")]
    OutOfRange,
}

impl Margins {
    /// No lead and no teardown.
    pub const NONE: Self = Self {
        lead: SignedDuration::ZERO,
        teardown: SignedDuration::ZERO,
    };

    /// Refuses negative margins.
    pub(crate) fn check(self) -> Result<(), WindowError> {
        for (margin, length) in [("lead", self.lead), ("teardown", self.teardown)] {
            if length.is_negative() {
                return Err(WindowError::Negative { margin });
            }
        }
        Ok(())
    }
}

impl Window {
    /// Creates the window from `start` to `end`, excluding `end`.
    ///
    /// # Errors
    /// [`WindowError`] if `end` is not later than `start`, a margin is negative, or a boundary can't be represented.
    pub fn new(start: Timestamp, end: Timestamp, margins: Margins) -> Result<Self, WindowError> {
        if end <= start {
            return Err(WindowError::Empty);
        }
        margins.check()?;
        let representable =
            start.checked_sub(margins.lead).is_ok() && end.checked_add(margins.teardown).is_ok();
        if !representable {
            return Err(WindowError::OutOfRange);
        }
        Ok(Self { start, end, margins })
    }

    /// Returns the start of the window itself.
    pub fn start(&self) -> Timestamp {
        self.start
    }

    /// Returns the end of the window itself.
    pub fn end(&self) -> Timestamp {
        self.end
    }

    /// Returns the start of the lead.
    pub fn opening(&self) -> Timestamp {
        // Checked when the window was made.
        self.start.saturating_sub(self.margins.lead).unwrap_or(self.start)
    }

    /// Returns the end of the teardown, after which nothing may be left.
    pub fn deadline(&self) -> Timestamp {
        self.end.saturating_add(self.margins.teardown).unwrap_or(self.end)
    }

    /// Returns the phase that a moment belongs to.
    pub fn phase(&self, now: Timestamp) -> Phase {
        if now < self.opening() {
            Phase::Before
        } else if now < self.start {
            Phase::Approaching
        } else if now < self.end {
            Phase::Active
        } else if now < self.deadline() {
            Phase::Teardown
        } else {
            Phase::Expired
        }
    }

    /// Returns the next boundary after a moment, at which the phase changes. `None` once the deadline has passed.
    pub fn next_boundary(&self, now: Timestamp) -> Option<Timestamp> {
        let boundaries = [self.opening(), self.start, self.end, self.deadline()];
        boundaries.into_iter().find(|boundary| *boundary > now)
    }

    /// Returns true if this window lies inside another one, not counting margins.
    pub fn is_within(&self, outer: &Self) -> bool {
        outer.start <= self.start && self.end <= outer.end
    }
}

//! Windows: a stretch of time with a lead before it and a teardown after it.

use jiff::{SignedDuration, Timestamp};

/// A window of time in which something is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    start: Timestamp,
    end: Timestamp,
    margins: Margins,
}

/// The time around a window, elapsed, whatever clocks do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Margins {
    /// The time before the start in which to prepare.
    pub lead: SignedDuration,
    /// The time after the end in which to clean up.
    pub teardown: SignedDuration,
}

/// The phase of a window, in order of time. A boundary belongs to the phase that it opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The lead has not begun.
    Before,
    /// The lead: from `start - lead`.
    Approaching,
    /// The window itself: from `start`.
    Active,
    /// The teardown: from `end`.
    Teardown,
    /// Over: from the [deadline](Window::deadline).
    Expired,
}

/// The reasons for which a window is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// It ends before it starts, or at once.
    #[error("the end of a window must be later than its start")]
    Empty,
    /// A margin is negative.
    #[error("the {margin} of a window must not be negative")]
    Negative {
        /// `lead` or `teardown`.
        margin: &'static str,
    },
    /// A boundary lies beyond the years that a timestamp can hold.
    #[error("the window lies beyond the years that can be represented")]
    OutOfRange,
}

impl Margins {
    /// No time around the window.
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
    /// Returns the window from `start` up to and without `end`.
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

    /// Returns the beginning of the lead.
    pub fn opening(&self) -> Timestamp {
        // Checked when the window was made.
        self.start.saturating_sub(self.margins.lead).unwrap_or(self.start)
    }

    /// Returns the end of the teardown: nothing may be left then.
    pub fn deadline(&self) -> Timestamp {
        self.end.saturating_add(self.margins.teardown).unwrap_or(self.end)
    }

    /// Returns the phase at a moment.
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

    /// Returns the next boundary after a moment, at which to ask again. `None` once the deadline has passed.
    pub fn next_boundary(&self, now: Timestamp) -> Option<Timestamp> {
        let boundaries = [self.opening(), self.start, self.end, self.deadline()];
        boundaries.into_iter().find(|boundary| *boundary > now)
    }

    /// Returns whether this window lies inside another one, margins left aside.
    pub fn is_within(&self, outer: &Self) -> bool {
        outer.start <= self.start && self.end <= outer.end
    }
}

//! Upper bound of a query's time.

use watershed_metrics::jiff::{SignedDuration, Timestamp};

/// Upper bound of time in a query, even if there are later data (Q7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Until {
    /// Time that replaces now.
    pub at: Timestamp,
    /// The last instant up to `at` that can have data; replaces the latest time and the watermark.
    pub latest: Timestamp,
    /// True if data that end before `latest` have their own latest time, as they had then.
    pub only_cuts: bool,
}

impl Until {
    /// Creates a bound at an instant that can have data itself, such as a watermark.
    #[must_use]
    pub fn moment(at: Timestamp) -> Self {
        Self {
            at,
            latest: at,
            only_cuts: false,
        }
    }

    /// Creates a bound for a question as it was, or will be, answered at an instant: later data are not there, and where
    /// the data end before, ranges go by their end as at any other time.
    #[must_use]
    pub fn as_of(at: Timestamp) -> Self {
        Self {
            only_cuts: true,
            ..Self::moment(at)
        }
    }

    /// Returns the latest time of data under this bound, given the one without it.
    pub(crate) fn bounded(self, latest: Option<Timestamp>) -> Option<Timestamp> {
        match self.only_cuts {
            true => latest.map(|latest| latest.min(self.latest)),
            false => Some(self.latest),
        }
    }

    /// Creates a bound at the end of an interval, which belongs to the next interval: a day that ends at midnight has
    /// its last data before.
    #[must_use]
    pub fn end(at: Timestamp) -> Self {
        let before = at.checked_sub(SignedDuration::from_micros(1));
        Self {
            at,
            latest: before.unwrap_or(at),
            only_cuts: false,
        }
    }
}

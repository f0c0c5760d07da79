//! Upper bound of a query's time.

use watershed_metrics::jiff::{SignedDuration, Timestamp};

/// Upper bound of time in a query, even if there are later data (Q7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Until {
    /// Time that replaces now.
    pub at: Timestamp,
    /// The last instant up to `at` that can have data; replaces the latest time and the watermark.
    pub latest: Timestamp,
}

impl Until {
    /// Creates a bound at an instant that can have data itself, such as a watermark.
    #[must_use]
    pub fn moment(at: Timestamp) -> Self {
        Self { at, latest: at }
    }

    /// Creates a bound at the end of an interval, which belongs to the next interval: a day that ends at midnight has
    /// its last data before.
    #[must_use]
    pub fn end(at: Timestamp) -> Self {
        let before = at.checked_sub(SignedDuration::from_micros(1));
        Self {
            at,
            latest: before.unwrap_or(at),
        }
    }
}

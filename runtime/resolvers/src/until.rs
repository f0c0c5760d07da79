//! The time up to which data counts.

use watershed_metrics::jiff::{SignedDuration, Timestamp};

/// The time up to which data counts, whatever there is (Q7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Until {
    /// The time, which stands for now.
    pub at: Timestamp,
    /// The last moment before or at it that has data, which stands for the latest time and the watermark.
    pub latest: Timestamp,
}

impl Until {
    /// A moment that has data itself, such as a watermark.
    #[must_use]
    pub fn moment(at: Timestamp) -> Self {
        Self { at, latest: at }
    }

    /// The end of an interval, which begins the next one: a day that ends at midnight is the day before.
    #[must_use]
    pub fn end(at: Timestamp) -> Self {
        let before = at.checked_sub(SignedDuration::from_micros(1));
        Self {
            at,
            latest: before.unwrap_or(at),
        }
    }
}

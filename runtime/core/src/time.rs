//! Time as the core sees it: handed in with every input.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Wall time in milliseconds since the Unix epoch. Rows and retrigger times use it.
///
/// ```
/// use std::time::Duration;
/// use watershed_core::Timestamp;
///
/// assert_eq!(Timestamp(1_000).after(Duration::from_secs(2)), Timestamp(3_000));
/// assert_eq!(Timestamp(i64::MAX).after(Duration::from_secs(2)), Timestamp(i64::MAX));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This time plus a duration, saturating.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)),
        )
    }
}

/// Monotonic time in milliseconds since an arbitrary start. Backoff, deadlines and graces use it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Mono(pub u64);

impl Mono {
    /// This time plus a duration, saturating.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        )
    }

    /// How long ago `earlier` was; zero if it is still to come.
    #[must_use]
    pub fn since(self, earlier: Mono) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// The pair of clocks read when an input is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// Wall clock; may jump.
    pub wall: Timestamp,
    /// Monotonic clock; never goes back.
    pub mono: Mono,
}

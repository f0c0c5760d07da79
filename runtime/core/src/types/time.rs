//! Time in the core, handed in with every input.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Wall time in milliseconds since the Unix epoch, for rows and requeue times.
///
/// ```
/// use std::time::Duration;
/// use watershed_core::Timestamp;
///
/// assert_eq!(Timestamp(1_000).after(Duration::from_secs(2)), Timestamp(3_000));
/// let time = Timestamp(-1_500);
/// assert_eq!(Timestamp::from(std::time::SystemTime::from(time)), time);
/// assert_eq!(Timestamp(i64::MAX).after(Duration::from_secs(2)), Timestamp(i64::MAX));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Adds a duration, saturating.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)),
        )
    }
}

impl From<SystemTime> for Timestamp {
    /// Rounds down to milliseconds, saturating.
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(since) => Timestamp(0).after(since),
            Err(before) => {
                let before = before.duration();
                let whole = i64::try_from(before.as_millis()).unwrap_or(i64::MAX);
                let has_part = before.subsec_nanos() % 1_000_000 != 0;
                Timestamp(-whole - i64::from(has_part && whole < i64::MAX))
            }
        }
    }
}

impl From<Timestamp> for SystemTime {
    /// Returns the nearest time that the system can represent.
    fn from(time: Timestamp) -> Self {
        let away = Duration::from_millis(time.0.unsigned_abs());
        let found = match time.0 {
            0.. => UNIX_EPOCH.checked_add(away),
            _ => UNIX_EPOCH.checked_sub(away),
        };
        found.unwrap_or(UNIX_EPOCH)
    }
}

#[cfg(feature = "jiff")]
impl From<jiff::Timestamp> for Timestamp {
    /// Rounds down to milliseconds.
    fn from(time: jiff::Timestamp) -> Self {
        let whole = time.as_nanosecond().div_euclid(1_000_000);
        Timestamp(i64::try_from(whole).unwrap_or(i64::MAX))
    }
}

#[cfg(feature = "jiff")]
impl TryFrom<Timestamp> for jiff::Timestamp {
    type Error = jiff::Error;

    /// Converts the time, if it lies in the range of jiff.
    fn try_from(time: Timestamp) -> Result<Self, jiff::Error> {
        Self::from_millisecond(time.0)
    }
}

/// Monotonic time in milliseconds since an arbitrary start, for backoff, deadlines and graces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Mono(pub u64);

impl Mono {
    /// Adds a duration, saturating.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        )
    }

    /// Returns the time since `earlier`; zero if that is in the future.
    #[must_use]
    pub fn since(self, earlier: Mono) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// Readings of both clocks when an input is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// Reading of the wall clock, which may jump.
    pub wall: Timestamp,
    /// Reading of the monotonic clock, which never goes back.
    pub mono: Mono,
}

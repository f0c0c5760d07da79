//! Counts of consecutive failures, as a value that reconcilers keep in a state.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::backoff::backoff;
use crate::{RetryPolicy, Timestamp};

/// A count of failures in a row, with the time of the next attempt.
///
/// The controller counts the attempts of a whole resource by itself. This is for a reconciler that tries several things,
/// each with its own count: it keeps the value in its state, and requests its next run by
/// [`Error::retry_after`](crate::Error::retry_after) or a requeue time. Pure: times come from the caller.
///
/// ```
/// use std::time::Duration;
/// use watershed_core::{Attempts, RetryPolicy, Timestamp};
///
/// let seconds = Duration::from_secs;
/// let policy = RetryPolicy::Backoff { base: seconds(1), cap: seconds(60), attempts: 3, reset_after: seconds(0) };
/// let now = Timestamp(0);
///
/// let once = Attempts::default().failed(now, policy);
/// assert_eq!((once.count, once.wait(now)), (1, Some(seconds(1))));
/// let twice = once.failed(now, policy);
/// assert_eq!(twice.wait(now), Some(seconds(2)));
/// assert!(!twice.is_due(now) && twice.is_due(now.after(seconds(2))));
/// assert!(twice.failed(now, policy).is_used_up(), "three attempts were allowed");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Attempts {
    /// Number of failures since the last success.
    pub count: u32,
    /// Time of the last failure; none before the first.
    pub last: Option<Timestamp>,
    /// Time of the next attempt; none before the first failure and once the attempts are used up.
    pub next: Option<Timestamp>,
}

impl Attempts {
    /// Returns the count after a further failure. The n-th in a row waits for the policy's base, doubled n - 1 times,
    /// up to its cap.
    #[must_use]
    pub fn failed(self, now: Timestamp, policy: RetryPolicy) -> Self {
        let count = self.count.saturating_add(1);
        let next = match policy {
            RetryPolicy::Backoff {
                base, cap, attempts, ..
            } if count < attempts => Some(now.after(backoff(base, cap, count))),
            _ => None,
        };
        Self {
            count,
            last: Some(now),
            next,
        }
    }

    /// Returns the count after a success: no failures.
    #[must_use]
    pub fn succeeded(self) -> Self {
        Self::default()
    }

    /// Returns the count adjusted to a clock that may have been set back: the next attempt comes no later than its full
    /// wait from now.
    ///
    /// ```
    /// use watershed_core::{Attempts, Timestamp};
    ///
    /// let waits = Attempts { count: 1, last: Some(Timestamp(60_000)), next: Some(Timestamp(65_000)) };
    /// assert_eq!(waits.by_clock(Timestamp(61_000)), waits);
    /// let (now, next) = (Some(Timestamp(9_000)), Some(Timestamp(14_000)));
    /// assert_eq!(waits.by_clock(Timestamp(9_000)), Attempts { count: 1, last: now, next });
    /// ```
    #[must_use]
    pub fn by_clock(self, now: Timestamp) -> Self {
        let Some(last) = self.last.filter(|last| *last > now) else {
            return self;
        };
        let earlier = |next: Timestamp| Timestamp(now.0.saturating_add(next.0.saturating_sub(last.0)));
        Self {
            last: Some(now),
            next: self.next.map(earlier),
            ..self
        }
    }

    /// Returns true if an attempt may be made now: nothing has failed, or the wait is over.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.count == 0 || self.next.is_some_and(|next| next <= now)
    }

    /// Returns true if no further attempt is made.
    pub fn is_used_up(&self) -> bool {
        self.count > 0 && self.next.is_none()
    }

    /// Returns the time until the next attempt, zero if it is overdue; none if none is planned.
    pub fn wait(&self, now: Timestamp) -> Option<Duration> {
        let millis = self.next?.0.saturating_sub(now.0);
        Some(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: RetryPolicy = RetryPolicy::Backoff {
        base: Duration::from_secs(2),
        cap: Duration::from_secs(5),
        attempts: 5,
        reset_after: Duration::ZERO,
    };

    #[test]
    fn waits_double_up_to_the_cap_until_the_attempts_are_used_up() {
        let mut attempts = Attempts::default();
        assert!(attempts.is_due(Timestamp(0)) && !attempts.is_used_up());
        let mut waits = Vec::new();
        while !attempts.is_used_up() {
            attempts = attempts.failed(Timestamp(1_000), BACKOFF);
            waits.push(attempts.wait(Timestamp(1_000)).map(|wait| wait.as_secs()));
        }
        assert_eq!(waits, [Some(2), Some(4), Some(5), Some(5), None]);
        assert!(!attempts.is_due(Timestamp(i64::MAX)));
        assert_eq!((attempts.count, attempts.last), (5, Some(Timestamp(1_000))));
        assert_eq!(attempts.succeeded(), Attempts::default());
    }

    #[test]
    fn a_policy_that_never_tries_again_is_used_up_at_once() {
        let failed = Attempts::default().failed(Timestamp(0), RetryPolicy::Never);
        assert!(failed.is_used_up() && !failed.is_due(Timestamp(1)));
    }

    #[test]
    fn an_overdue_attempt_waits_no_longer() {
        let failed = Attempts::default().failed(Timestamp(0), BACKOFF);
        assert_eq!(failed.wait(Timestamp(9_000)), Some(Duration::ZERO));
    }
}

//! Leases that run out, and how sure a holder may be of one.

use std::time::Duration;

use tokio::time::Instant;

/// A lease that runs out unless it is renewed.
///
/// See [`Catalog::lease`](super::Catalog::lease).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The time that it lasts.
    pub term: Duration,
    /// The time at which it was last asked for, which is before it was given: nobody else can have it before `since` +
    /// `term`.
    pub since: Instant,
}

/// The status of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseStatus {
    /// Everything.
    Valid,
    /// Nothing starts; running invocations go on: half of the term has passed without a renewal.
    Expiring,
    /// Nothing: two thirds have passed. What runs has the rest to return before anybody else may begin.
    Expired,
}

impl Lease {
    /// The time at which another process may take it, unless it is renewed before.
    pub fn expires_at(&self) -> Instant {
        self.since + self.term
    }

    fn expiring_at(&self) -> Instant {
        self.since + self.term / 2
    }

    fn expired_at(&self) -> Instant {
        self.since + self.term * 2 / 3
    }

    pub(crate) fn status(&self, now: Instant) -> LeaseStatus {
        if now >= self.expired_at() {
            LeaseStatus::Expired
        } else if now >= self.expiring_at() {
            LeaseStatus::Expiring
        } else {
            LeaseStatus::Valid
        }
    }

    /// Returns the time at which less may be done than now.
    pub(crate) fn next_change(&self, now: Instant) -> Instant {
        if now < self.expiring_at() {
            self.expiring_at()
        } else {
            self.expired_at()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_starts_after_half_of_the_term_and_all_is_over_after_two_thirds() {
        let since = Instant::now();
        let lease = Lease {
            term: Duration::from_secs(6),
            since,
        };
        let at = |ms| lease.status(since + Duration::from_millis(ms));
        assert_eq!([at(0), at(2_999)], [LeaseStatus::Valid; 2]);
        assert_eq!([at(3_000), at(3_999)], [LeaseStatus::Expiring; 2]);
        assert_eq!([at(4_000), at(60_000)], [LeaseStatus::Expired; 2]);
    }
}

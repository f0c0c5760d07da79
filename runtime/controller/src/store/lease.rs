//! Leases that expire, and how certain a holder may be of one.

use std::time::Duration;

use tokio::time::Instant;

/// A lease that expires unless it is renewed.
///
/// See [`Catalog::lease`](super::Catalog::lease).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Time that the lease lasts after each renewal.
    pub term: Duration,
    /// Time at which the last renewal was requested, which is before it was granted: no other process can have the
    /// lease before `since` + `term`.
    pub since: Instant,
}

/// Certainty of a lease, which decides what its holder may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseStatus {
    /// The holder may do everything.
    Valid,
    /// Half of the term has passed without a renewal: nothing starts, but running invocations go on.
    Expiring,
    /// Two thirds of the term have passed: the holder stops, and running invocations have the rest of the term to
    /// return.
    Expired,
}

impl Lease {
    /// Returns the time at which another process may take the lease, unless it is renewed.
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

    /// Returns the time at which the status becomes worse.
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

//! Leases that run out, and how sure a holder may be of one.

use std::time::Duration;

use tokio::time::Instant;

/// A lease that runs out unless it is renewed.
///
/// See [`Catalog::lease`](super::Catalog::lease).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// How long it lasts.
    pub term: Duration,
    /// When it was last asked for, which is before it was given: nobody else can have it before `since` + `term`.
    pub since: Instant,
}

/// What may still be done under a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// Everything.
    Sure,
    /// What runs goes on, and nothing starts: half of the term has passed without a renewal.
    Doubtful,
    /// Nothing: two thirds have passed. What runs has the rest to return before anybody else may begin.
    Over,
}

impl Lease {
    /// The time at which another process may take it, unless it is renewed before.
    pub fn expires_at(&self) -> Instant {
        self.since + self.term
    }

    fn doubtful_at(&self) -> Instant {
        self.since + self.term / 2
    }

    fn over_at(&self) -> Instant {
        self.since + self.term * 2 / 3
    }

    pub(crate) fn certainty(&self, now: Instant) -> Certainty {
        if now >= self.over_at() {
            Certainty::Over
        } else if now >= self.doubtful_at() {
            Certainty::Doubtful
        } else {
            Certainty::Sure
        }
    }

    /// When less may be done than now.
    pub(crate) fn next_change(&self, now: Instant) -> Instant {
        if now < self.doubtful_at() {
            self.doubtful_at()
        } else {
            self.over_at()
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
        let at = |ms| lease.certainty(since + Duration::from_millis(ms));
        assert_eq!([at(0), at(2_999)], [Certainty::Sure; 2]);
        assert_eq!([at(3_000), at(3_999)], [Certainty::Doubtful; 2]);
        assert_eq!([at(4_000), at(60_000)], [Certainty::Over; 2]);
    }
}

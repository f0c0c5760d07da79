//! How sure a controller may be of its lease, and keeping it.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use watershed_core::CommitError;

use crate::call::Signal;
use crate::shared::Shared;
use crate::store::{Catalog, Lease};

/// Part of the term after which the lease is renewed: two tries may fail before anything is held back.
const RENEW: u32 = 4;
/// Part of the term between tries that fail.
const RETRY: u32 = 16;

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

/// Renews the lease of a catalog for as long as the loop is there and the lease is ours.
pub(crate) async fn keep(
    catalog: Arc<dyn Catalog>,
    signals: mpsc::UnboundedSender<Signal>,
    shared: Arc<Shared>,
) {
    while let Some(lease) = catalog.lease() {
        sleep_until(lease.since + lease.term / RENEW).await;
        let signal = match timeout(lease.term / RENEW, catalog.renew()).await {
            Ok(Ok(())) => Signal::Renewed,
            Ok(Err(CommitError::LeaseLost)) => Signal::LeaseLost,
            Ok(Err(CommitError::Failed(message) | CommitError::Full(message))) => {
                tracing::warn!(error = %message, "the lease was not renewed and is tried again");
                sleep(lease.term / RETRY).await;
                continue;
            }
            Err(_) => {
                tracing::warn!("the store did not answer when the lease was to be renewed");
                continue;
            }
        };
        let lost = matches!(signal, Signal::LeaseLost);
        let is_heard = signals.send(signal).is_ok();
        shared.helm.ring();
        if !is_heard || lost {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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

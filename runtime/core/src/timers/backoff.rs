//! Backoff: waits that double with each failure.

use std::time::Duration;

/// Returns the wait after the `failures`-th failure in a row: `base`, doubled with each further failure, up to `cap`.
pub(crate) fn backoff(base: Duration, cap: Duration, failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    base.saturating_mul(1 << doublings).min(cap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_doubles_the_wait_up_to_its_cap() {
        let seconds = Duration::from_secs;
        let waits = [0, 1, 2, 3, 4, u32::MAX].map(|failures| backoff(seconds(1), seconds(5), failures));
        assert_eq!(waits, [1, 1, 2, 4, 5, 5].map(seconds));
    }
}

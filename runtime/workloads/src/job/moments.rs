//! Waits: until wall-clock times, which may be set back, and until monotonic instants.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use watershed_controller::Timestamp;

/// Returns the rest of a process's timeout: at most the whole, even if the clock was set back since the start.
pub(super) fn left(started: Timestamp, timeout: Duration, now: Timestamp) -> Duration {
    let left = started.after(timeout).0.saturating_sub(now.0);
    Duration::from_millis(u64::try_from(left).unwrap_or(0)).min(timeout)
}

/// Waits until an instant; for ever if none.
pub(super) async fn until_moment(moment: Option<Instant>) {
    match moment {
        None => std::future::pending().await,
        Some(moment) => sleep_until(moment).await,
    }
}

/// Waits until a wall-clock time; for ever if none.
pub(super) async fn until(now: Timestamp, time: Option<Timestamp>) {
    match time {
        None => std::future::pending().await,
        Some(time) => {
            let ms = u64::try_from(time.0.saturating_sub(now.0)).unwrap_or(0);
            sleep(Duration::from_millis(ms)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_never_has_more_left_than_its_timeout() {
        let minute = Duration::from_secs(60);
        for (started, now, seconds) in [(0, 0, 60), (0, 20_000, 40), (0, 90_000, 0), (3_600_000, 0, 60)] {
            let found = left(Timestamp(started), minute, Timestamp(now));
            assert_eq!(found, Duration::from_secs(seconds), "{started} {now}");
        }
    }
}

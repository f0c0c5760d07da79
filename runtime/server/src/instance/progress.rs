//! The interval at which a run reports its progress.

use std::time::Duration;

use tokio::time::Instant;

/// The shortest time between two progress reports, each of which reads everything that is not settled.
const PROGRESS_PERIOD: Duration = Duration::from_millis(50);

/// The time of the next progress report.
pub(super) struct Progress {
    is_wanted: bool,
    told_at: Option<Instant>,
    has_changed: bool,
}

impl Progress {
    pub(super) fn new(is_wanted: bool) -> Self {
        Self {
            is_wanted,
            told_at: None,
            has_changed: false,
        }
    }

    pub(super) fn changed(&mut self) {
        self.has_changed = self.is_wanted;
    }

    pub(super) fn told(&mut self) {
        self.told_at = Some(Instant::now());
        self.has_changed = false;
    }

    /// Resolves when there is progress to report and the last report was long enough ago. Cancel-safe.
    pub(super) async fn due(&self) {
        match (self.has_changed, self.told_at) {
            (true, Some(at)) => tokio::time::sleep_until(at + PROGRESS_PERIOD).await,
            (true, None) => {}
            (false, _) => std::future::pending().await,
        }
    }
}

//! Policy for runs that would overlap.

/// Policy for a tick that comes while an earlier run is still in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Concurrency {
    /// Skips the tick and waits for the schedule's next one, so that a long run is not repeated at once.
    #[default]
    Forbid,
    /// Stops the present run and starts a new one.
    Replace,
}

/// Decision about a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Start a run.
    Start,
    /// Do nothing. The tick counts as handled and is not repeated.
    Skip,
    /// Stop the present run, then start a new one.
    Replace,
}

impl Concurrency {
    /// Decides about a tick; `running` is true if an earlier run is still in progress.
    pub fn decide(self, running: bool) -> Decision {
        match (self, running) {
            (_, false) => Decision::Start,
            (Self::Forbid, true) => Decision::Skip,
            (Self::Replace, true) => Decision::Replace,
        }
    }
}

//! The policy for runs that would overlap.

/// The policy for a tick that comes while the run of an earlier one is still going.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Concurrency {
    /// The tick is skipped; the next one is the schedule's. A run that takes too long doesn't run twice in a row.
    #[default]
    Forbid,
    /// The run is stopped and a new one takes its place.
    Replace,
}

/// The decision about a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Start a run.
    Start,
    /// Do nothing. The tick counts as handled: it is not made up for.
    Skip,
    /// Stop the run that is going, then start one.
    Replace,
}

impl Concurrency {
    /// Decides about a tick, given whether a run is still going.
    pub fn decide(self, running: bool) -> Decision {
        match (self, running) {
            (_, false) => Decision::Start,
            (Self::Forbid, true) => Decision::Skip,
            (Self::Replace, true) => Decision::Replace,
        }
    }
}

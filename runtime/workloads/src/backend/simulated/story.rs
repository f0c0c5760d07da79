//! All that happens to the starts of a world, for references that decide by it.

use watershed_core::Timestamp;

use crate::backend::{End, StartId};
use crate::policy::exit::StartFailure;

/// One event, in the order of their times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happening {
    /// The time.
    pub at: Timestamp,
    /// The start.
    pub id: StartId,
    /// The event.
    pub event: Event,
}

/// Events in the life of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Its order was taken.
    Ordered,
    /// Its process is there.
    Begun,
    /// It could not be started.
    NotStarted(StartFailure),
    /// Its process was told to end.
    StopOrdered,
    /// Its process has ended.
    Ended {
        /// The way, as far as anybody knows.
        end: End,
        /// True if it had been told to.
        was_ordered: bool,
    },
    /// It ended with the machine.
    Rebooted,
}

//! Log of all events of starts on a simulated machine, for reference models.

use watershed_core::Timestamp;

use crate::backend::{End, StartId};
use crate::policy::exit::StartFailure;

/// An event of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happening {
    /// Simulated time of the event.
    pub at: Timestamp,
    /// Start id that the event is about.
    pub id: StartId,
    /// The kind of event, with its details.
    pub event: Event,
}

/// A kind of event in the life of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The order was accepted.
    Ordered,
    /// The process exists.
    Begun,
    /// The process could not be started.
    NotStarted(StartFailure),
    /// A stop was ordered.
    StopOrdered,
    /// The process has ended.
    Ended {
        /// Cause of the end as far as it was observed.
        end: End,
        /// True if a stop had been ordered before.
        was_ordered: bool,
    },
    /// The process ended with the machine.
    Rebooted,
}

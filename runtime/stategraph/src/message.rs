//! Messages from operations to the call that waits for them.

use crate::item::Timestamp;
use crate::operations::OperationId;
use crate::reference::Ref;

/// A message in a graph's inbox.
#[derive(Debug)]
pub(crate) enum Message {
    Ended {
        id: OperationId,
        result: Result<(), String>,
        at: Timestamp,
    },
    Background(OperationId),
    Cancel {
        ids: Vec<OperationId>,
        at: Timestamp,
    },
    /// Answer of a handler, with the generation of the call that asked.
    Answered {
        generation: u64,
        reference: Ref,
        answer: Result<bool, String>,
    },
    Observed {
        generation: u64,
        reference: Ref,
        found: Box<dyn std::any::Any + Send>,
    },
    /// A cancelled operation did not react by this time.
    Tick {
        at: Timestamp,
    },
}

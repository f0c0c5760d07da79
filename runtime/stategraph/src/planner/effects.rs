//! What the planner is told, and what it asks for.

use std::sync::Arc;

use crate::item::{Operation, Spec, Timestamp};
use crate::operations::OperationId;
use crate::reason::Reason;
use crate::reference::Ref;

/// What a handler found out about an item.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed<V> {
    /// It is there, with this value.
    Present(V),
    /// It is not there.
    Absent,
    /// It could not be found out; the operation that was under way counts as failed.
    Unclear(String),
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input<V> {
    /// The call starts.
    Begin,
    /// An answer to [`Effect::Observe`].
    Observed {
        /// The item.
        reference: Ref,
        /// What was found.
        found: Observed<V>,
    },
    /// An answer to [`Effect::Ask`].
    Answered {
        /// The item.
        reference: Ref,
        /// Whether it must be recreated, or why that could not be said.
        answer: Result<bool, String>,
    },
    /// An operation returned, of this call or of an earlier one.
    Ended {
        /// Which.
        id: OperationId,
        /// Whether it succeeded.
        result: Result<(), String>,
    },
    /// An operation goes on in the background: the call does not wait for it.
    Background {
        /// Which.
        id: OperationId,
    },
    /// Somebody wants these operations cancelled.
    Cancel(Vec<OperationId>),
    /// An operation was not started after all; that is no failure, and it may be tried again at once.
    Dropped {
        /// Which.
        id: OperationId,
    },
    /// Nothing further is to be started: the call ends when what it waits for has.
    Halt,
    /// A time that was asked for has come.
    Tick,
}

/// An operation to start.
#[derive(Debug, Clone, PartialEq)]
pub struct Start<V> {
    /// Its number, to report with.
    pub id: OperationId,
    /// What to do.
    pub operation: Operation,
    /// The item; for an adopt, the replacement.
    pub reference: Ref,
    /// Why.
    pub reason: Reason,
    /// What the item is.
    pub old: Option<Arc<Spec<V>>>,
    /// What it is to become.
    pub new: Option<Arc<Spec<V>>>,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect<V> {
    /// Ask the handler what became of an item.
    Observe {
        /// The item.
        reference: Ref,
        /// What is known of it.
        known: Arc<Spec<V>>,
    },
    /// Ask the handler whether this change needs a recreate.
    Ask {
        /// The item.
        reference: Ref,
        /// What it is.
        old: Arc<Spec<V>>,
        /// What it is to become.
        new: Arc<Spec<V>>,
    },
    /// Start an operation.
    Start(Start<V>),
    /// Cancel an operation.
    Cancel {
        /// Which.
        id: OperationId,
        /// When it counts as failed if it has not returned: send a tick then.
        deadline: Timestamp,
    },
    /// Nothing more can be done now.
    Done,
}

//! Inputs and effects, by which planner and executor communicate.

use std::sync::Arc;

use crate::item::{Operation, Spec, Timestamp};
use crate::operations::OperationId;
use crate::reason::Reason;
use crate::reference::Ref;

/// Result of an observation by a handler.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed<V> {
    /// The item exists with this value.
    Present(V),
    /// The item does not exist.
    Absent,
    /// The state could not be found out: an operation that was under way counts as failed.
    Unclear(String),
}

/// An event that the planner handles.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # use watershed_stategraph::*;
/// # let (executor, intended) = (warehouse::executor(), warehouse::intended()?);
/// # let (mut current, mut operations) = (Graph::new("warehouse"), Operations::default());
/// # let (extent, options) = (Extent::Everything, Options::default());
/// # let types = executor.types();
/// let mut planner = Planner::new(types, &mut current, &mut operations, Some(&intended), &extent, options)?;
/// planner.step(Timestamp(0), Input::Begin);
/// // The first operation failed, and what depends on it is not started.
/// let ended = Input::Ended { id: OperationId(1), result: Err("the disk is full".to_owned()) };
/// assert_eq!(planner.step(Timestamp(5), ended), [Effect::Done]);
/// let status = planner.status();
/// assert_eq!(status.failed[0].2, "the disk is full");
/// assert_eq!(status.next, Some(Timestamp(1_005)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Input<V> {
    /// The call begins; always the first input.
    Begin,
    /// Result of an [`Effect::Observe`].
    Observed {
        /// Observed item.
        reference: Ref,
        /// Observed state: present, absent or unclear.
        found: Observed<V>,
    },
    /// Answer to an [`Effect::Ask`].
    Answered {
        /// Item that was asked about.
        reference: Ref,
        /// True if the change requires a recreate; an error if that could not be found out.
        answer: Result<bool, String>,
    },
    /// An operation of this or an earlier call returned.
    Ended {
        /// Id of the operation that returned.
        id: OperationId,
        /// Success, or the error.
        result: Result<(), String>,
    },
    /// An operation continues in the background, and the call no longer waits for it.
    Background {
        /// Id of the operation that continues.
        id: OperationId,
    },
    /// These operations are to be cancelled.
    Cancel(Vec<OperationId>),
    /// An operation was not started after all. That is no failure, and a retry may follow at once.
    Dropped {
        /// Id of the operation that was not started.
        id: OperationId,
    },
    /// No further operation is to be started. The call ends after those that it waits for.
    Halt,
    /// A requested time has come.
    Tick,
}

/// An operation that the executor should start.
#[derive(Debug, Clone, PartialEq)]
pub struct Start<V> {
    /// Id to report the result with.
    pub id: OperationId,
    /// Operation: create, modify, delete or adopt.
    pub operation: Operation,
    /// Item of the operation; for an adopt, the replacement.
    pub reference: Ref,
    /// Reason why the operation is needed.
    pub reason: Reason,
    /// Present spec of the item; none for a create.
    pub old: Option<Arc<Spec<V>>>,
    /// New spec of the item; none for a delete that no create follows.
    pub new: Option<Arc<Spec<V>>>,
}

/// An action that the planner requests.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # use watershed_stategraph::*;
/// # let (executor, intended) = (warehouse::executor(), warehouse::intended()?);
/// # let (mut current, mut operations) = (Graph::new("warehouse"), Operations::default());
/// # let (extent, options) = (Extent::Everything, Options::default());
/// # let types = executor.types();
/// let mut planner = Planner::new(types, &mut current, &mut operations, Some(&intended), &extent, options)?;
/// for effect in planner.step(Timestamp(0), Input::Begin) {
///     match effect {
///         Effect::Start(start) => println!("spawn a task that will {} {}", start.operation, start.reference),
///         Effect::Ask { reference, .. } => println!("can `{reference}` be changed?"),
///         Effect::Observe { reference, .. } => println!("is `{reference}` still there?"),
///         Effect::Cancel { id, deadline } => println!("{id:?} has until {deadline:?}"),
///         Effect::Done => panic!("the table is not there yet"),
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Effect<V> {
    /// Ask the handler for the present state of an item.
    Observe {
        /// Item to observe.
        reference: Ref,
        /// Spec of the item as last known.
        known: Arc<Spec<V>>,
    },
    /// Ask the handler whether this change requires a recreate.
    Ask {
        /// Item to ask about.
        reference: Ref,
        /// Present spec of the item.
        old: Arc<Spec<V>>,
        /// Spec that the item should get.
        new: Arc<Spec<V>>,
    },
    /// Start an operation with the item's handler.
    Start(Start<V>),
    /// Cancel a running operation.
    Cancel {
        /// Id of the operation to cancel.
        id: OperationId,
        /// Time at which the operation counts as failed if it has not returned; a tick must be sent then.
        deadline: Timestamp,
    },
    /// End the call: nothing more can be done now.
    Done,
}

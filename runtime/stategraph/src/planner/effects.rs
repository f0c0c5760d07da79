//! Inputs and effects of the planner.

use std::sync::Arc;

use crate::item::{Operation, Spec, Timestamp};
use crate::operations::OperationId;
use crate::reason::Reason;
use crate::reference::Ref;

/// The answer of a handler about an item.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed<V> {
    /// It is there, with this value.
    Present(V),
    /// It is not there.
    Absent,
    /// It could not be found out; the operation that was under way counts as failed.
    Unclear(String),
}

/// An event that the planner takes in.
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
    /// The call starts.
    Begin,
    /// An answer to [`Effect::Observe`].
    Observed {
        /// The item.
        reference: Ref,
        /// The answer.
        found: Observed<V>,
    },
    /// An answer to [`Effect::Ask`].
    Answered {
        /// The item.
        reference: Ref,
        /// True if it must be recreated; an error if that could not be found out.
        answer: Result<bool, String>,
    },
    /// An operation returned, of this call or of an earlier one.
    Ended {
        /// The operation.
        id: OperationId,
        /// Success, or the error.
        result: Result<(), String>,
    },
    /// An operation goes on in the background: the call does not wait for it.
    Background {
        /// The operation.
        id: OperationId,
    },
    /// These operations are to be cancelled.
    Cancel(Vec<OperationId>),
    /// An operation was not started after all; that is no failure, and it may be tried again at once.
    Dropped {
        /// The operation.
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
    /// An action that the planner asks for.
    pub operation: Operation,
    /// The item; for an adopt, the replacement.
    pub reference: Ref,
    /// The reason for it.
    pub reason: Reason,
    /// The item as it is.
    pub old: Option<Arc<Spec<V>>>,
    /// The item as it is to become.
    pub new: Option<Arc<Spec<V>>>,
}

/// An action that the planner asks for.
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
    /// Ask the handler what became of an item.
    Observe {
        /// The item.
        reference: Ref,
        /// The item as it is known.
        known: Arc<Spec<V>>,
    },
    /// Ask the handler whether this change needs a recreate.
    Ask {
        /// The item.
        reference: Ref,
        /// The item as it is.
        old: Arc<Spec<V>>,
        /// The item as it is to become.
        new: Arc<Spec<V>>,
    },
    /// Start an operation.
    Start(Start<V>),
    /// Cancel an operation.
    Cancel {
        /// The operation.
        id: OperationId,
        /// The time at which it counts as failed if it has not returned: send a tick then.
        deadline: Timestamp,
    },
    /// Nothing more can be done now.
    Done,
}

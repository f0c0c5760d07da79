//! Running operations of one graph, which may outlive the call that started them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::graph::Slot;
use crate::item::{Operation, Spec, Timestamp};
use crate::log::{Entry, Line};
use crate::reason::Reason;
use crate::reference::Ref;
use crate::value::Fingerprint;

/// Id of one run of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(pub u64);

/// Tells whether a call waits for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunMode {
    /// The call waits until the operation has ended.
    Foreground,
    /// The call returns without waiting.
    Background,
}

/// Progress of an operation's cancel.
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
/// planner.step(Timestamp(5), Input::Cancel(vec![OperationId(1)]));
/// drop(planner);
/// match operations.on(&Ref::parse("table/orders")?).expect("it has not returned").ending() {
///     Ending::Cancelled { at, deadline } => assert_eq!((at, deadline), (Timestamp(5), Timestamp(10_005))),
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The operation was not cancelled.
    None,
    /// The operation was cancelled and must return by the deadline.
    Cancelled {
        /// Time at which the cancel was requested.
        at: Timestamp,
        /// Time at which the operation counts as failed.
        deadline: Timestamp,
    },
    /// The operation missed the deadline and counts as failed. Its later result is ignored.
    Abandoned,
}

/// An operation that is under way.
#[derive(Debug, Clone)]
pub struct Running<V> {
    pub(crate) reference: Ref,
    /// Slot of the item in the current graph at the start.
    pub(crate) slot: Slot,
    pub(crate) operation: Operation,
    pub(crate) mode: RunMode,
    pub(crate) ending: Ending,
    /// Intent of the operation; none for a plain delete.
    pub(crate) intent: Option<Arc<Spec<V>>>,
    pub(crate) relied: Vec<(usize, Ref)>,
    pub(crate) witnessed: Vec<(Ref, Fingerprint)>,
    pub(crate) reason: Reason,
    pub(crate) started: Timestamp,
    pub(crate) cancelled: Option<Timestamp>,
    /// Error of the previous operation on the same item; none if it did not fail.
    pub(crate) previous: Option<String>,
    pub(crate) line: Line,
}

impl<V> Running<V> {
    /// Returns the log entry of the running operation.
    pub(crate) fn entry(&self) -> Entry {
        Entry {
            reference: self.reference.clone(),
            operation: self.operation,
            reason: self.reason.clone(),
            start: self.started,
            end: None,
            cancelled: self.cancelled,
            error: None,
            previous: self.previous.clone(),
        }
    }

    fn is_waited_for(&self) -> bool {
        self.mode == RunMode::Foreground && self.ending != Ending::Abandoned
    }

    /// Returns the item that the operation works on.
    pub fn reference(&self) -> &Ref {
        &self.reference
    }

    /// Returns whether this is a create, modify, delete or adopt.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Returns whether a call waits for the operation.
    pub fn mode(&self) -> RunMode {
        self.mode
    }

    /// Returns the progress of the cancel, if the operation was cancelled.
    pub fn ending(&self) -> Ending {
        self.ending
    }
}

/// Running operations of one graph, in order of start.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # use watershed_stategraph::*;
/// # let (executor, intended) = (warehouse::executor(), warehouse::intended()?);
/// # let (extent, options) = (Extent::Everything, Options::default());
/// let (mut current, mut operations) = (Graph::new("warehouse"), Operations::default());
/// assert!(operations.is_empty());
/// # let types = executor.types();
/// let mut planner = Planner::new(types, &mut current, &mut operations, Some(&intended), &extent, options)?;
/// planner.step(Timestamp(0), Input::Begin);
/// // They outlive the call: the next one takes their ends.
/// drop(planner);
/// let refs: Vec<&str> = operations.iter().map(|(_, running)| running.reference().as_str()).collect();
/// assert_eq!(refs, ["table/orders"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Operations<V> {
    /// Operations by id. Boxed, because the map moves its values.
    running: BTreeMap<OperationId, Box<Running<V>>>,
    by_ref: BTreeMap<Ref, OperationId>,
    started: u64,
    foreground: usize,
}

impl<V> Default for Operations<V> {
    fn default() -> Self {
        Self {
            running: BTreeMap::new(),
            by_ref: BTreeMap::new(),
            started: 0,
            foreground: 0,
        }
    }
}

impl<V> Operations<V> {
    /// Lists all operations, in order of start.
    pub fn iter(&self) -> impl Iterator<Item = (OperationId, &Running<V>)> {
        self.running.iter().map(|(&id, running)| (id, &**running))
    }

    /// Returns true if no operation is under way.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Returns the operation on this item.
    pub fn on(&self, reference: &Ref) -> Option<&Running<V>> {
        self.get(*self.by_ref.get(reference)?)
    }

    /// Returns the operation on this item or on its replacement.
    pub(crate) fn on_either(&self, reference: &Ref) -> Option<&Running<V>> {
        if self.running.is_empty() {
            return None;
        }
        self.on(reference).or_else(|| self.on(&reference.alias()))
    }

    pub(crate) fn get(&self, id: OperationId) -> Option<&Running<V>> {
        self.running.get(&id).map(AsRef::as_ref)
    }

    pub(crate) fn set_mode(&mut self, id: OperationId, mode: RunMode) {
        self.change(id, |running| running.mode = mode);
    }

    pub(crate) fn set_ending(&mut self, id: OperationId, ending: Ending) {
        self.change(id, |running| running.ending = ending);
    }

    /// Records the time of an operation's cancel, and its place in the log.
    pub(crate) fn set_cancelled(&mut self, id: OperationId, at: Timestamp, line: Line) {
        self.change(id, |running| {
            running.cancelled = Some(at);
            running.line = line;
        });
    }

    fn change(&mut self, id: OperationId, change: impl FnOnce(&mut Running<V>)) {
        if let Some(running) = self.running.get_mut(&id) {
            self.foreground -= usize::from(running.is_waited_for());
            change(running);
            self.foreground += usize::from(running.is_waited_for());
        }
    }

    /// Returns the id that the next started operation will get.
    pub(crate) fn next_id(&self) -> OperationId {
        OperationId(self.started + 1)
    }

    pub(crate) fn start(&mut self, running: Running<V>) -> OperationId {
        let id = self.next_id();
        self.started = id.0;
        let taken = self.by_ref.insert(running.reference.clone(), id);
        assert!(taken.is_none(), "an item has one operation at a time");
        self.foreground += usize::from(running.is_waited_for());
        self.running.insert(id, Box::new(running));
        id
    }

    pub(crate) fn end(&mut self, id: OperationId) -> Option<Box<Running<V>>> {
        let running = self.running.remove(&id)?;
        self.by_ref.remove(&running.reference);
        self.foreground -= usize::from(running.is_waited_for());
        Some(running)
    }

    /// Returns the number of operations that a call waits for.
    pub(crate) fn in_foreground(&self) -> usize {
        self.foreground
    }

    /// Returns the earliest deadline of a cancelled operation.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        let deadline = |running: &Running<V>| match running.ending {
            Ending::Cancelled { deadline, .. } => Some(deadline),
            Ending::None | Ending::Abandoned => None,
        };
        self.running
            .values()
            .filter_map(|running| deadline(running))
            .min()
    }

    /// Clears the log places of operations from earlier calls.
    pub(crate) fn begin_log(&mut self) {
        for running in self.running.values_mut() {
            running.line = Line::None;
        }
    }
}

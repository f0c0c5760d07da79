//! The executor: carries out the planner's effects as tasks, and turns their results into its inputs.
//!
//! Invariants:
//! 1. Between two awaits of a call every effect has been carried out and every input that is at hand
//!    was taken: a call that is dropped leaves nothing but operations under way, and their items say so.
//! 2. Each operation reports its end once, to the inbox of its graph, which the next call reads if no
//!    call is under way. An inbox holds at most three messages for each operation that was started.

mod background;
mod calls;
mod notices;
mod operate;
mod persist;
mod session;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::handler::{AnyHandler, Handler};
use crate::item::{Operation, Timestamp};
use crate::log::Log;
use crate::message::Message;
use crate::operations::{OperationId, Operations};
use crate::plan::StalePlan;
use crate::planner::{CallError, DEFAULT_LIMIT};
use crate::reference::Ref;
use crate::status::Status;
use crate::types::{ItemType, Types};
use crate::value::Value;

use notices::Notices;
pub use persist::{PersistError, PersistFuture, Persister};
use session::Session;

/// Operations of a call, and the status after it.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use watershed_stategraph::{Extent, Graph};
/// let mut current = Graph::new("warehouse");
/// let intended = warehouse::intended()?;
/// let report = warehouse::executor().converge(&mut current, Some(&intended), &Extent::Everything).await?;
/// assert!(report.status.is_converged());
/// let made: Vec<&str> = report.log.entries.iter().map(|entry| entry.reference.as_str()).collect();
/// assert_eq!(made, ["table/orders", "view/daily"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Operations in order of start.
    pub log: Log,
    /// Status of the graph after the call.
    pub status: Status,
}

/// Reason why a plan was not applied. No operation has run.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::json;
/// use watershed_stategraph::{ApplyError, Extent, Graph, Item, Ref, StalePlan};
/// let (executor, intended) = (warehouse::executor(), warehouse::intended()?);
/// let mut current = Graph::new("warehouse");
/// let plan = executor.plan(&current, Some(&intended), &Extent::Everything).await?;
/// // Before the plan is approved, another process makes a table.
/// current.insert(Item::new(Ref::parse("table/customers")?, json!(["name"])))?;
/// match executor.apply(&mut current, Some(&intended), &plan).await {
///     Err(ApplyError::Stale(StalePlan::Current)) => println!("look at the new plan, please"),
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The plan was made for other graphs.
    #[error("the plan is stale")]
    Stale(#[from] StalePlan),
    /// The graphs are invalid.
    #[error("the graphs cannot be converged")]
    Refused(#[from] CallError),
}

type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Runs the planner's operations with the handlers of the embedder.
///
/// It remembers nothing but the operations that are under way: keep one executor for as long as graphs are
/// converged. Another one would take its work for the remains of a crashed process, and is refused while an
/// operation goes on ([`CallError::HeldElsewhere`]). Graphs are told apart by name, which is unique among those
/// of one executor. Calls for different graphs may run at the same time; a second call for one graph waits for
/// the first.
///
/// ```
/// use serde_json::{Value, json};
/// use watershed_stategraph::{Context, Executor, Extent, Graph, Handler, HandlerError, Item, ItemType, Ref};
///
/// struct Printer;
/// impl Handler<Value> for Printer {
///     async fn create(&self, _: &Context, item: &Ref, new: &Value) -> Result<(), HandlerError> {
///         println!("create {item} as {new}");
///         Ok(())
///     }
///     async fn modify(&self, _: &Context, item: &Ref, old: &Value, new: &Value) -> Result<(), HandlerError> {
///         println!("change {item} from {old} to {new}");
///         Ok(())
///     }
///     async fn delete(&self, _: &Context, item: &Ref, _: &Value) -> Result<(), HandlerError> {
///         println!("delete {item}");
///         Ok(())
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let executor = Executor::new().handle("file", ItemType::new(), Printer);
/// let mut intended = Graph::new("site");
/// intended.insert(Item::new(Ref::parse("file/index.html")?, json!("hello")))?;
/// let mut current = Graph::new("site");
/// let report = executor.converge(&mut current, Some(&intended), &Extent::Everything).await?;
/// assert!(report.status.is_converged());
/// assert_eq!(current.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Executor<V: Value> {
    types: Types<V>,
    handlers: BTreeMap<String, Arc<dyn AnyHandler<V>>>,
    clock: Clock,
    limit: usize,
    graphs: Mutex<BTreeMap<String, Arc<Desk<V>>>>,
    notices: Arc<Notices>,
    session: Arc<Session>,
}

/// Operations, locks and messages of one graph.
struct Desk<V> {
    /// State of the call under way, which keeps this locked.
    work: tokio::sync::Mutex<Work<V>>,
    /// Operations that can be cancelled, even during a call.
    running: Mutex<BTreeMap<OperationId, Cancellable>>,
    /// Notified whenever a running operation has returned.
    returned: Notify,
    inbox: UnboundedSender<Message>,
}

struct Work<V> {
    operations: Operations<V>,
    inbox: UnboundedReceiver<Message>,
    /// Number of the present call. Answers for dropped calls carry an earlier one and are ignored.
    generation: u64,
}

struct Cancellable {
    reference: Ref,
    operation: Operation,
    token: CancellationToken,
    /// Time by both clocks at which a cancelled operation counts as failed; none once that is reported, or without a
    /// cancel.
    deadline: Option<(Instant, Timestamp)>,
}

impl<V: Value> fmt::Debug for Executor<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("types", &self.types)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl<V: Value> Default for Executor<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Value> Executor<V> {
    /// Creates an executor without handlers, with the machine's clock.
    pub fn new() -> Self {
        Self {
            types: Types::new(),
            handlers: BTreeMap::new(),
            clock: Arc::new(wall_clock),
            limit: DEFAULT_LIMIT,
            graphs: Mutex::default(),
            notices: Arc::default(),
            session: Session::begin(),
        }
    }

    /// Registers the handler of a type of items. A type that is registered twice is an error of every call.
    #[must_use]
    pub fn handle(mut self, type_name: &str, item_type: ItemType<V>, handler: impl Handler<V>) -> Self {
        self.types.register(type_name, item_type);
        let handlers = self.handlers.entry(type_name.to_owned());
        handlers.or_insert_with(|| Arc::new(handler));
        self
    }

    /// Sets the maximum number of operations that a call waits for at a time, at least one.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            ..self
        }
    }

    /// Replaces the machine's clock as the source of timestamps.
    #[must_use]
    pub fn clock(self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            clock: Arc::new(clock),
            ..self
        }
    }

    /// Returns the types of items with a handler.
    pub fn types(&self) -> &Types<V> {
        &self.types
    }

    fn desk(&self, graph: &str) -> Arc<Desk<V>> {
        let mut graphs = lock(&self.graphs);
        let desk = graphs.entry(graph.to_owned()).or_insert_with(|| {
            let (sender, receiver) = mpsc::unbounded_channel();
            let work = Work {
                operations: Operations::default(),
                inbox: receiver,
                generation: 0,
            };
            Arc::new(Desk {
                work: tokio::sync::Mutex::new(work),
                running: Mutex::default(),
                returned: Notify::new(),
                inbox: sender,
            })
        });
        Arc::clone(desk)
    }
}

/// Locks a mutex even after a panic, because the guarded value is always consistent.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Inputs that are ready, and are taken before the next await.
type AtHand<V> = VecDeque<crate::planner::Input<V>>;

//! Resources that stand for many things: a reconciler over a state graph (feature `stategraph`).
//!
//! You say what the items of a resource are ([`Renderer`]) and how items of each type are made
//! ([`Handler`](watershed_stategraph::Handler)); [`GraphReconciler`] does the rest. It keeps the current graph
//! in the resource's state, stores it before anything starts that a crash could hide and again whenever
//! operations have ended, and looks at every item that can be observed each time it is asked.
//!
//! ```
//! # use std::time::Duration;
//! # use serde_json::{Value, json};
//! use watershed_controller::stategraph::{GraphContext, GraphReconciler, GraphState, Renderer};
//! use watershed_controller::{Controller, Error, Key, KindOptions, Resource, json_message};
//! use watershed_stategraph::{Context, Executor, Graph, Handler, HandlerError, Item, ItemType, Ref};
//!
//! /// Names of lamps that are to shine.
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Lamps(Vec<String>);
//! json_message!(Lamps, format = 1);
//!
//! struct House;
//! impl Renderer for House {
//!     type Spec = Lamps;
//!     type Value = Value;
//!     fn render(&self, context: &GraphContext<Self>, intended: &mut Graph<Value>) -> Result<(), Box<Error>> {
//!         for lamp in &context.spec().0 {
//!             let reference = Ref::new("lamp", lamp).map_err(|e| Error::permanent("lamp-name", e.to_string()))?;
//!             intended.put(Item::new(reference, json!("on"))).expect("no external items");
//!         }
//!         Ok(())
//!     }
//! }
//!
//! struct Switch;
//! impl Handler<Value> for Switch {
//!     async fn create(&self, _: &Context, _: &Ref, _: &Value) -> Result<(), HandlerError> { Ok(()) }
//!     async fn modify(&self, _: &Context, _: &Ref, _: &Value, _: &Value) -> Result<(), HandlerError> { Ok(()) }
//!     async fn delete(&self, _: &Context, _: &Ref, _: &Value) -> Result<(), HandlerError> { Ok(()) }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let executor = Executor::new().handle("lamp", ItemType::new(), Switch);
//! let house = GraphReconciler::new(House, executor);
//! let controller = Controller::builder().kind(KindOptions::new("house"), house).start().await?;
//! controller.create(Resource::declare("house", "mine", &Lamps(vec!["hall".into(), "stairs".into()]))?).await?;
//! controller.wait_until_idle(Duration::from_secs(10)).await?;
//! let state = controller.get(Key::new("house", "mine"))?.state::<GraphState<Value>>()?;
//! assert_eq!(state.expect("it was converged").0.len(), 2);
//! # Ok(())
//! # }
//! ```

mod kept;
mod outcome;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use watershed_core::{Error, Outcome, Target, Uid, Work};
use watershed_stategraph::{CallError, Executor, Extent, Graph, PersistError, Report, Value};

use crate::handle::Handle;
use crate::types::message::{DecodeError, EncodeError, Message};
use crate::workers::reconciler::Reconciler;
use crate::workers::reconciler::context::Context;
use kept::InState;

/// Context of an invocation, as a [`Renderer`] receives it.
///
/// ```
/// use watershed_controller::stategraph::{GraphContext, Renderer};
/// /// A line for a log.
/// fn summary<R: Renderer>(context: &GraphContext<R>) -> String {
///     let before = context.state().map_or(0, |state| state.0.len());
///     format!("{} with {before} items", context.name())
/// }
/// ```
pub type GraphContext<R> = Context<GraphReconciler<R>>;

/// Renders the spec of a resource as the items of a graph.
///
/// ```
/// # use serde_json::{Value, json};
/// # use watershed_controller::stategraph::{GraphContext, Renderer};
/// # use watershed_controller::{Error, json_message};
/// # use watershed_stategraph::{Dependency, Graph, Item, Ref};
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Lamps(Vec<String>);
/// # json_message!(Lamps, format = 1);
/// /// Lamps need power, which is not ours to switch.
/// struct House;
/// impl Renderer for House {
///     type Spec = Lamps;
///     type Value = Value;
///     fn render(&self, context: &GraphContext<Self>, intended: &mut Graph<Value>) -> Result<(), Box<Error>> {
///         for name in &context.spec().0 {
///             let lamp = Ref::new("lamp", name).map_err(|e| Error::permanent("lamp-name", e.to_string()))?;
///             intended.put(Item::new(lamp, json!("on")).needs(Dependency::on(power()))).expect("it is ours");
///         }
///         Ok(())
///     }
///     fn surroundings(&self, _: &GraphContext<Self>, current: &mut Graph<Value>) -> Result<(), Box<Error>> {
///         match std::fs::exists("/sys/class/power_supply/mains") {
///             Ok(true) => current.put(Item::external(power(), json!({}))).expect("it needs nothing"),
///             _ => drop(current.remove(&power())),
///         }
///         Ok(())
///     }
/// }
/// fn power() -> Ref {
///     Ref::parse("supply/mains").expect("a type and a name")
/// }
/// ```
pub trait Renderer: Sized + Send + Sync + 'static {
    /// Type of the resource's spec.
    type Spec: Message;
    /// Type of an item's value, as its handlers understand it.
    type Value: Value;

    /// Adds every item that the spec asks for to the intended graph, which is empty.
    ///
    /// # Errors
    /// Why the spec cannot be rendered; nothing is touched then.
    fn render(
        &self,
        context: &GraphContext<Self>,
        intended: &mut Graph<Self::Value>,
    ) -> Result<(), Box<Error>>;

    /// Adds the external items that exist to the current graph, and removes those that don't. By default there are
    /// none.
    ///
    /// # Errors
    /// Why the surroundings cannot be told; nothing is touched then.
    fn surroundings(
        &self,
        context: &GraphContext<Self>,
        current: &mut Graph<Self::Value>,
    ) -> Result<(), Box<Error>> {
        let _ = (context, current);
        Ok(())
    }
}

/// State of a resource with a graph: the current graph, with pending operations and failures.
///
/// ```
/// use serde_json::{Value, json};
/// use watershed_controller::Message;
/// use watershed_controller::stategraph::GraphState;
/// use watershed_stategraph::{Graph, Item, Ref};
/// let mut house = Graph::new("house");
/// house.insert(Item::new(Ref::parse("lamp/hall")?, json!("on")))?;
/// // What the catalog keeps, also for programs that only read it.
/// let bytes = GraphState(house).encode()?;
/// let state = GraphState::<Value>::decode(GraphState::<Value>::FORMAT, &bytes)?;
/// let lamps: Vec<&str> = state.0.items().map(|item| item.reference().name()).collect();
/// assert_eq!(lamps, ["hall"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GraphState<V: Value>(pub Graph<V>);

impl<V: Value> Message for GraphState<V> {
    const FORMAT: u32 = 1;

    /// Encodes the graph with its items in order, so that equal graphs have equal bytes if equal values do.
    fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        serde_json::to_vec(&self.0).map_err(|error| EncodeError {
            type_name: std::any::type_name::<Self>(),
            message: error.to_string(),
        })
    }

    fn decode(format: u32, bytes: &[u8]) -> Result<Self, DecodeError> {
        match format {
            1 => serde_json::from_slice(bytes)
                .map(Self)
                .map_err(DecodeError::malformed::<Self>),
            _ => Err(DecodeError::unknown_format::<Self>(format)),
        }
    }
}

/// A reconciler that converges the graph of a resource. Cheap to clone; clones share the operations under way.
///
/// ```
/// # use std::time::Duration;
/// # use serde_json::{Value, json};
/// # use watershed_controller::stategraph::{GraphContext, GraphReconciler, Renderer};
/// # use watershed_controller::{Controller, Error, KindOptions, Resource, json_message};
/// # use watershed_stategraph::{Context, Executor, Graph, Handler, HandlerError, Item, ItemType, Ref};
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Lamps(Vec<String>);
/// # json_message!(Lamps, format = 1);
/// # struct House;
/// # impl Renderer for House {
/// #     type Spec = Lamps;
/// #     type Value = Value;
/// #     fn render(&self, _: &GraphContext<Self>, intended: &mut Graph<Value>) -> Result<(), Box<Error>> {
/// #         intended.put(Item::new(Ref::parse("lamp/hall").expect("a ref"), json!("on"))).expect("it is ours");
/// #         Ok(())
/// #     }
/// # }
/// # struct Switch;
/// # impl Handler<Value> for Switch {
/// #     async fn create(&self, _: &Context, _: &Ref, _: &Value) -> Result<(), HandlerError> { Ok(()) }
/// #     async fn modify(&self, _: &Context, _: &Ref, _: &Value, _: &Value) -> Result<(), HandlerError> { Ok(()) }
/// #     async fn delete(&self, _: &Context, _: &Ref, _: &Value) -> Result<(), HandlerError> { Ok(()) }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let executor = Executor::new().handle("lamp", ItemType::new(), Switch);
/// let house = GraphReconciler::new(House, executor).check_every(Duration::from_secs(60));
/// let controller = Controller::builder().kind(KindOptions::new("house"), house.clone()).start().await?;
/// // Handlers may go on in the background, so somebody listens for their end.
/// tokio::spawn(house.follow(controller.handle()));
/// controller.create(Resource::declare("house", "mine", &Lamps(vec!["hall".into()]))?).await?;
/// controller.wait_until_idle(Duration::from_secs(10)).await?;
/// controller.shutdown(Duration::from_secs(10)).await?;
/// # Ok(())
/// # }
/// ```
pub struct GraphReconciler<R: Renderer> {
    parts: Arc<Parts<R>>,
    check_every: Option<Duration>,
}

struct Parts<R: Renderer> {
    renderer: R,
    executor: Executor<R::Value>,
}

impl<R: Renderer> Clone for GraphReconciler<R> {
    fn clone(&self) -> Self {
        Self {
            parts: Arc::clone(&self.parts),
            check_every: self.check_every,
        }
    }
}

impl<R: Renderer> std::fmt::Debug for GraphReconciler<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GraphReconciler")
            .field("executor", &self.parts.executor)
            .field("check_every", &self.check_every)
            .finish_non_exhaustive()
    }
}

impl<R: Renderer> GraphReconciler<R> {
    /// Creates a reconciler from a renderer and the executor of its items.
    pub fn new(renderer: R, executor: Executor<R::Value>) -> Self {
        Self {
            parts: Arc::new(Parts { renderer, executor }),
            check_every: None,
        }
    }

    /// Sets the longest time between checks for drift. Without it, drift is checked only when the resource is
    /// requested.
    #[must_use]
    pub fn check_every(self, interval: Duration) -> Self {
        Self {
            check_every: Some(interval),
            ..self
        }
    }

    /// Requests a resource whenever one of its background operations has ended. Spawn this if handlers continue in the
    /// background; it ends with the controller, even if operations remain.
    pub async fn follow(self, controller: Handle) {
        tokio::select! {
            () = controller.until_stopped() => {}
            () = self.ask_after_ends(&controller) => {}
        }
    }

    async fn ask_after_ends(&self, controller: &Handle) {
        while let Some(graph) = self.parts.executor.ended().await {
            let Some(uid) = kept::uid_of(&graph) else { continue };
            // One that is gone needs no further call.
            let _ = controller.nudge(Target::Uid(uid)).await;
        }
    }

    /// Returns the stored graph, with every observable item in doubt.
    fn current(&self, context: &Context<Self>) -> Graph<R::Value> {
        let name = kept::graph_name(context.uid());
        let stored = context.state().map(|state| state.0.clone());
        let mut current = stored.unwrap_or_else(|| Graph::new(name));
        self.parts.executor.recheck(&mut current);
        current
    }

    async fn converge(
        &self,
        context: &Context<Self>,
        mut current: Graph<R::Value>,
        intended: Option<&Graph<R::Value>>,
    ) -> Result<(Report, Graph<R::Value>), Error> {
        let mut keeper = InState::new(context.clone());
        let result = self
            .parts
            .executor
            .converge_persisted(
                &mut current,
                intended,
                &Extent::Everything,
                &mut keeper,
                context.cancellation(),
            )
            .await;
        match result {
            Ok(report) => Ok((report, current)),
            // The one before it in this process is still at it, and will have ended soon.
            Err(PersistError::Refused(error @ CallError::HeldElsewhere(_))) => {
                Err(Error::transient("graph-held-elsewhere", error.to_string()))
            }
            Err(PersistError::Refused(error)) => Err(Error::permanent("graph-refused", error.to_string())),
            Err(PersistError::NotStored(error)) => Err(Error::transient("graph-not-stored", error)),
        }
    }
}

impl<R: Renderer> Reconciler for GraphReconciler<R> {
    type Spec = R::Spec;
    type State = GraphState<R::Value>;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let mut current = self.current(&context);
        let mut intended = Graph::new(current.name());
        self.parts
            .renderer
            .render(&context, &mut intended)
            .map_err(|error| *error)?;
        self.parts
            .renderer
            .surroundings(&context, &mut current)
            .map_err(|error| *error)?;
        let (report, _) = self.converge(&context, current, Some(&intended)).await?;
        outcome::from_report(&report, self.check_every).map_err(|error| *error)
    }

    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let current = self.current(&context);
        let name = current.name().to_owned();
        // What still makes something is to stop.
        self.parts.executor.cancel(&name, |_, _| true);
        let (report, current) = self.converge(&context, current, None).await?;
        outcome::check_delete(&report, &current).map_err(|error| *error)?;
        Ok(Outcome::from_work(Work::Dropped))
    }
}

/// Returns the resource that a graph belongs to; for tests and tools.
///
/// ```
/// use watershed_controller::Resource;
/// use watershed_controller::stategraph::resource_of;
/// let uid = Resource::fresh_uid();
/// assert_eq!(resource_of(&uid.to_string()), Some(uid));
/// assert_eq!(resource_of("warehouse"), None);
/// ```
pub fn resource_of(graph: &str) -> Option<Uid> {
    kept::uid_of(graph)
}

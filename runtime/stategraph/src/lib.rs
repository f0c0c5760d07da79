//! Converges many dependent things inside one resource.
//!
//! Render an intended [`Graph`], keep the current one, write a [`Handler`] for each type of item, and let
//! an [`Executor`] perform what is needed, in an order that respects every [`Dependency`]. Start there, or
//! at [`Planner`] for the algorithm without tasks and clocks; [`plan`] only says what would be done.
//!
//! | module | what |
//! |---|---|
//! | `reference`, `value`, `predicate`, `dependency`, `item` | what an item is |
//! | `graph`, `order` | items by ref, stored and compared; ranks and cycles |
//! | `planner` | what to do next, as a function of what happened |
//! | `plan` | the same, rehearsed |
//! | `handler`, `engine` | performing it |
//! | `log`, `reason`, `status` | what was done and why, and how things stand |
//! | `export` | pictures |
//!
//! The rules S1 to S14 that comments and tests name are listed in `docs/stategraph.md`.
//!
//! # The warehouse of the examples
//!
//! The examples of the types use this module as `warehouse`:
//!
//! ```
#![doc = include_str!("../doc/warehouse.rs.in")]
//! ```

/// Holder of the guide's examples, which are compiled and run as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/stategraph.md")]
struct Guide;

mod dependency;
mod engine;
mod export;
mod field;
mod graph;
mod handler;
mod item;
mod links;
mod log;
mod message;
mod operations;
mod plan;
mod planner;
mod predicate;
mod reason;
mod reference;
mod status;
mod types;
mod value;

pub use dependency::Dependency;
pub use engine::{ApplyError, Executor, PersistError, PersistFuture, Persister, Report};
pub use export::{Diagram, JsonEdge, JsonItem, JsonView};
pub use field::FieldPath;
pub use graph::{Difference, Extent, Graph, GraphError, Group, GroupPath, ItemChange};
pub use handler::{Context, Handler, HandlerError};
pub use item::{Failure, Item, Operation, Origin, Spec, State, Timestamp};
pub use log::{Entry, Log, MOST_ENTRIES};
pub use operations::{Ending, OperationId, Operations, RunMode, Running};
pub use plan::{Plan, Planned, StalePlan, plan};
pub use planner::{CallError, DEFAULT_LIMIT, Effect, Input, Observed, Observing, Options, Planner, Start};
pub use predicate::{Operator, Predicate};
pub use reason::{Blocker, Problem, Reason, Unmet};
pub use reference::{Ref, RefError};
pub use status::Status;
pub use types::{ItemType, ReplaceOrder, Retry, Types};
pub use value::{Fingerprint, Value};

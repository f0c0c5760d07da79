//! Converges many dependent things inside one resource.

mod dependency;
mod engine;
mod export;
mod graph;
mod handler;
mod item;
mod links;
mod log;
mod operations;
mod order;
mod plan;
mod planner;
mod predicate;
mod reason;
mod reference;
mod status;
mod types;
mod value;

pub use dependency::Dependency;
pub use engine::{ApplyError, Executor, Report};
pub use export::{JsonEdge, JsonItem, JsonView, Picture};
pub use graph::{Difference, Graph, GraphError, Group, GroupPath, ItemChange};
pub use handler::{Context, Handler, HandlerError};
pub use item::{Failure, Item, Operation, Origin, Spec, State, Timestamp};
pub use log::{Entry, Log, MOST_ENTRIES};
pub use operations::{Ending, Ground, OperationId, Operations, Running};
pub use plan::{Plan, Planned, StalePlan, plan};
pub use planner::{
    CallError, DEFAULT_LIMIT, Effect, Extent, Input, Observed, Observing, Options, Planner, Start,
};
pub use predicate::{FieldPath, Operator, Predicate};
pub use reason::{Held, Problem, Reason, Unmet};
pub use reference::{Ref, RefError};
pub use status::Status;
pub use types::{ItemType, ReplaceOrder, Retry, Types};
pub use value::{Fingerprint, Value};

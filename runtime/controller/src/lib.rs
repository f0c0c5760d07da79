//! Keeps declared resources converged: the tokio host of [`watershed_core`].
//!
//! You declare resources; each has a *kind*, and for each kind you write a [`Reconciler`], which looks at what is
//! wanted and makes it so. The controller keeps the resources in a durable catalog, knows which reads which, and calls
//! your reconcilers in the right order, again and again until everything is as it should be.
//!
//! ```
//! use watershed_controller::{Context, Controller, Error, Outcome, Reconciler, json_message};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Greeting(String);
//! json_message!(Greeting, format = 1);
//!
//! struct Greeter;
//!
//! impl Reconciler for Greeter {
//!     type Spec = Greeting;
//!     type State = Greeting;
//!
//!     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
//!         let greeting = format!("{}, {}", context.spec().0, context.name());
//!         if context.state().is_some_and(|said| said.0 == greeting) {
//!             return Ok(Outcome::unchanged());
//!         }
//!         context.set_state(&Greeting(greeting)).await?;
//!         Ok(Outcome::changed())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let controller = Controller::builder().kind("greeting", Greeter).start().await?;
//! let greetings = controller.resources::<Greeter>();
//! greetings.apply("world", &Greeting("hello".into())).settled(None).await?;
//!
//! let world = greetings.get("world")?;
//! assert_eq!(world.state.expect("it was greeted").0, "hello, world");
//! # Ok(())
//! # }
//! ```
//!
//! # Where to start
//!
//! - [`Controller::builder`] registers kinds, chooses a [`store`](store::Store) and starts; [`Handle`] has every
//!   operation, and [`Controller::resources`](Handle::resources) those of one kind in terms of its types; an [`EditRequest`] is
//!   awaited to what comes of it.
//! - [`Reconciler`] is the one trait to write, [`Context`] what it gets, [`message`] how specs and states become
//!   bytes.
//! - `stategraph` (feature of that name) is a reconciler for resources that stand for many things.
//! - `watershed-testkit`, a crate for dev-dependencies, tests reconcilers and stores of yours.
//! - [`store`] keeps catalogs in memory, in SQLite (feature `sqlite`) or in Postgres (feature `postgres`).
//!
//! # A good guest
//!
//! The crate spawns on the current tokio runtime and installs nothing global: no signal handler, no subscriber, no
//! panic hook. It writes to no file but the catalog. It ends when its [`Controller`] is dropped.

mod api;
mod cluster;
mod event_loop;
mod failpoints;
mod handle;
mod inbox;
#[cfg(all(test, feature = "interleavings"))]
mod interleavings;
mod metrics;
mod read;
#[cfg(feature = "stategraph")]
pub mod stategraph;
pub mod store;
mod sync;
mod tasks;
#[cfg(test)]
mod tests;
mod types;
mod workers;

pub use api::controller::{Builder, Controller};
pub use api::typed::Resources;
pub use handle::edit::EditRequest;
pub use handle::request::Request;
pub use handle::{Delete, Handle, Refresh};
pub use metrics::stats;
pub use read::watch::Event;
pub use types::error::{EditError, RequestError, StartError, WaitError};
pub use types::kind::KindOptions;
pub use types::message::{self, Message};
pub use types::observer::InvocationObserver;
pub use types::resource::Resource;
pub use types::select::Select;
/// The core's types that every embedder uses; the others are in the modules below.
pub use watershed_core::{
    Batch, Edit, Error, Expect, Key, Kind, Limits, Name, NewResource, Outcome, Ref, Refusal, RetryPolicy,
    RunOutcome, Timestamp, Uid, Update, Work,
};
pub use workers::reconciler::Reconciler;
pub use workers::reconciler::context::Context;

/// Types of a reconciler's [`Context`], and of its errors.
pub mod reconciler {
    pub use crate::types::error::SetStateError;
    pub use tokio_util::sync::CancellationToken;
    pub use watershed_core::{ErrorKind, OwnedView, Phase, RefView, Refreshes, SourcePosition, TEXT_MAX};
}

/// Types of a kind's options, see [`KindOptions`].
pub mod kind {
    pub use crate::types::kind::DEFAULT_RETRY;
    pub use watershed_core::{
        AtStart, Attempts, Nudging, OnOwned, OnTimedAncestor, OptionsProblem, Parents, Pool,
    };
}

/// A resource in full: its row, versions and status, and the ways to name and list it.
pub mod resource {
    pub use crate::api::typed::{ReadError, Typed};
    pub use crate::handle::Listing;
    pub use watershed_core::{
        LastRun, NAME_MAX, NameProblem, NoOpRun, ObservedInputs, ObservedRef, Required, Revision, Row,
        Settled, SpecVersion, Stage, StateVersion, Status, Target,
    };
}

/// Batches, and the results of edits and requests.
pub mod request {
    pub use crate::api::controller::DEFAULT_CALL_TIMEOUT;
    pub use crate::handle::edit::BatchRequest;
    pub use crate::handle::origin::on_behalf_of;
    pub use crate::handle::request::{AppliedBatch, DEFAULT_DEADLINE};
    pub use watershed_core::{Applied, Change, Settlement};
}

/// Runs of resources with their reasons: see [`Handle::history`].
pub mod history {
    pub use crate::types::error::HistoryError;
    pub use watershed_core::{
        CHAIN_MAX, Cause, HistoryRow, InvocationId, Link, OmittedLinks, Priority, Reason, Repeats, RunResult,
        Trigger,
    };
}

/// Types of the explanations by [`Handle::explain`].
pub mod explain {
    pub use watershed_core::{Blocker, Explanation, Subject};
}

/// Types of the results of [`Handle::check_consistency`].
pub mod consistency {
    pub use crate::types::error::CheckError;
    pub use watershed_core::{Compared, Consistency, Finding, Rule};
}

/// Clocks: the machine's, tokio's for tests, and the trait for others.
pub mod clock {
    pub use crate::types::clock::{Clock, SystemClock, TokioClock};
    pub use watershed_core::{Mono, Now};
}

/// Watches on the catalog: see [`Handle::watch`].
pub mod watch {
    pub use crate::api::selected::{SelectionEvent, SelectionWatch};
    pub use crate::api::typed::KindWatch;
    pub use crate::read::watch::{Changes, Watch};
    pub use watershed_core::{Removed, StatusUpdate};
}

/// Orderly and other ends of a controller.
pub mod shutdown {
    pub use crate::api::controller::DROP_GRACE;
    pub use crate::event_loop::host::OnLeaseLost;
    pub use crate::types::error::ShutdownError;
    pub use watershed_core::{StopReason, Unreturned};
}

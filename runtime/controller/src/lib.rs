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
//! let greetings = controller.of::<Greeter>();
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
//!   operation, and [`Controller::of`](Handle::of) those of one kind in terms of its types; an [`EditRequest`] is
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
#[cfg(all(test, interleavings))]
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
mod workers;

pub use api::clock::{Clock, SystemClock, TokioClock};
pub use api::controller::{Builder, Controller, DEFAULT_CALL_TIMEOUT, DROP_GRACE};
pub use api::error::{
    CheckError, EditError, HistoryError, RequestError, SetStateError, ShutdownError, StartError, WaitError,
};
pub use api::handle::edit::{BatchRequest, EditRequest};
pub use api::handle::{Delete, Handle, Listing, Refresh};
pub use api::kind::{DEFAULT_RETRY, KindOptions};
pub use api::message::{self, Message};
pub use api::reconciler::Reconciler;
pub use api::reconciler::context::Context;
pub use api::request::{AppliedBatch, DEFAULT_DEADLINE, Request};
pub use api::resource::Resource;
pub use api::select::Select;
pub use api::typed::{KindWatch, ReadError, Resources, Typed};
pub use event_loop::host::OnLeaseLost;
pub use failpoints::CRASH_POINTS;
pub use metrics::stats::{self, Stats};
pub use read::watch::{Changes, Event, Watch};

pub use tokio_util::sync::CancellationToken;
/// The words of the core, which this interface speaks.
pub use watershed_core::{
    Applied, AtStart, Attempts, Batch, CHAIN_MAX, Cause, Change, Commit, CommitError, CommitId, Compared,
    Consistency, Cut, Edit, Epoch, Error, ErrorKind, Expect, Explanation, Finding, Gone, HistoryRow,
    InvocationId, Key, Kind, LastRun, Limits, Link, Mono, NAME_MAX, Name, NameProblem, NewResource, NoOpRun,
    Now, Nudging, OnOwned, OnTimedAncestor, Outcome, OwnedView, Parents, Phase, Place, Pool, Priority,
    Reason, Ref, RefView, Refreshes, Refusal, Required, RetryPolicy, Revision, Row, Rule, RunOutcome,
    RunResult, Seen, SeenRef, Settled, Settlement, SpecVersion, Standing, StateVersion, Status, StatusUpdate,
    StopReason, Stored, StoredRow, Subject, Target, Timestamp, Uid, Unreturned, Update, Why, WhyNot, Work,
    Write,
};

//! A kit that tests reconcilers: in simulated time, from seeds, without a database and without sleeps.
//!
//! For `dev-dependencies`. A test makes an outside, a reconciler over it, and specs; the [`Kit`] does the rest:
//!
//! ```
//! # use std::{collections::BTreeMap, sync::{Arc, Mutex}};
//! # use watershed_controller::{Context, Error, Outcome, Reconciler, Uid, Work, json_message};
//! use watershed_testkit::{Kit, Outside};
//! # #[derive(serde::Serialize, serde::Deserialize)]
//! # struct Text(String);
//! # json_message!(Text, format = 1);
//! # struct Writer(Notes);
//! # impl Reconciler for Writer {
//! #     type Spec = Text;
//! #     type State = ();
//! #     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
//! #         let text = context.spec().0.clone();
//! #         tokio::task::yield_now().await;
//! #         self.0.0.lock().unwrap().insert(context.uid(), text);
//! #         Ok(Outcome::from_work(Work::Built))
//! #     }
//! #     async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
//! #         self.0.0.lock().unwrap().remove(&context.uid());
//! #         Ok(Outcome::from_work(Work::Dropped))
//! #     }
//! # }
//! #[derive(Clone, Default)]
//! struct Notes(Arc<Mutex<BTreeMap<Uid, String>>>);
//!
//! impl Outside for Notes {
//!     type Seen = BTreeMap<Uid, String>;
//!
//!     fn look(&self) -> Self::Seen {
//!         self.0.lock().unwrap().clone()
//!     }
//! }
//!
//! // In a `#[test]`:
//! Kit::new(Notes::default, |notes| Writer(notes.clone()), |roll| Text(roll.pick(&["a", "b"]).to_string()))
//!     .check();
//! ```
//!
//! # What is played
//!
//! The real controller runs the reconciler over a store in memory; only the clock is simulated. Each seed is one play:
//! a handful of edits, with what can go wrong in between. The first seeds are systematic, later ones random.
//!
//! | what happens | what the reconciler sees of it |
//! |---|---|
//! | specs change, resources are renamed (in swaps as well), deleted, created anew | `reconcile`, `rename`, `delete`, as ever |
//! | an edit or a request comes while it waits, at each of its awaits | its token is cancelled; it goes on until it returns |
//! | its process stops without waiting, or loses the lease | it is dropped where it waits |
//! | its process dies: where it waits, when it is done, before or after the commit | nothing, not even a drop; the next process finds the stored row |
//! | its process stands still until another has taken over ([`Kit::fenced`]) | nothing; it goes on with an epoch that is over |
//! | what it reads changes, fails, goes, comes again ([`Kit::reads`]) | refs with other targets, states, failures |
//! | the outside is in trouble ([`Outside::trouble`]) | errors of what it calls |
//! | time passes | a `retrigger` that it asked for |
//!
//! Then all is mended, what failed is tried again, and everything comes to rest. Three things must hold, and need no
//! oracle: the outside and the states are as the same specs make them from scratch; running all once more changes
//! nothing; deleting all leaves nothing.
//!
//! # What it says
//!
//! A play that failed is made as short as can be. The [`Report`] names the [`Fault`] by what could not be left out,
//! tells the story, and shows the difference:
//!
//! ```text
//! the reconciler is not cancel-safe: a run after a cancelled one does not make it right
//!   1. "alpha" is created with spec 5
//!   2. the reconcile of "alpha" waits for the second time
//!   3. there its process is stopped, and another one starts
//!   4. what has failed is tried again, and all comes to rest
//! the outside, which is + and from scratch would be -
//!   - 5
//!   + 10
//! hint: effect first, state second; find what an earlier run left by a key of your own, the uid for instance
//! again: WATERSHED_TESTKIT_SEED=1082 with this test, found after 412 steps
//! ```
//!
//! `WATERSHED_TESTKIT_SEED` plays one seed, `WATERSHED_TESTKIT_STEPS` says how long a check goes on.
//!
//! # What it can't see
//!
//! It interrupts where a future waits. Between two effects without an await it can't, so let the operations of a
//! stand-in wait ([`Outside`]). Tasks and threads that a reconciler spawns are not stopped with it, and what is drawn at
//! random or read from the machine's clock makes a play differ from its next one: take the time from
//! [`Context::now`](watershed_controller::Context::now). A reconciler that is wrong in the same way from scratch is not noticed.

mod check;
mod ending;
mod fault;
mod given;
mod interrupting;
mod kit;
mod outside;
mod play;
mod probe;
mod process;
mod roll;
#[cfg(test)]
mod samples;
mod script;
mod shrink;
mod sight;
pub mod store;
mod story;
mod sync;
mod systematic;
mod things;

pub use fault::{Fault, Passed, Report};
pub use kit::Kit;
pub use outside::Outside;
pub use roll::Roll;

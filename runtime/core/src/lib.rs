//! The state machine of the controller: no async, no IO, no clock, no randomness.
//!
//! [`Core`] owns the catalog of resources, keeps their dependency graph, and decides which invocation starts
//! when. It is a function of its inputs: the embedder (the host) turns whatever happens into [`Input`]s and
//! carries out the [`Effect`]s that come back.
//!
//! # How a host drives it
//!
//! ```text
//! let (mut core, mut effects) = Core::open(now, limits, kinds, stored)?;
//! loop {
//!     core.flush(now, &mut effects);          // 1. group commit: at most one Commit effect
//!     carry_out(effects.drain(..));           // 2. tasks, timer, store, answers, events
//!     let first = wait_for_one_input().await; // 3. shutdown, completions, commits, calls, time
//!     core.handle(now, first, &mut effects);
//!     while let Some(next) = ready_input() {  // 4. drain what is ready, up to a bound
//!         core.handle(now, next, &mut effects);
//!     }
//! }
//! ```
//!
//! **Group commit.** [`Core::handle`] never emits [`Effect::Commit`]; only [`Core::flush`] does, and only while no
//! commit is under way. So everything handled between two flushes, and everything handled while the store is
//! busy, goes into one transaction. The host answers each `Commit` with exactly one [`Input::Committed`] or
//! [`Input::CommitFailed`]; the core itself requests the same commit again after a failure, and stops
//! ([`Effect::Stopped`]) after 30 s of them.
//!
//! **Release.** [`Effect::Answer`] and [`Effect::Publish`] come only when the rows that they speak of are
//! committed; so do the [`Effect::Start`]s that an edit requested. The host may carry out every effect at once
//! and in order; it never has to hold one back.
//!
//! **Reads.** `get`, `list` and `watch` are served by the host from what `Publish` brought. They never touch the
//! core.
//!
//! **Backpressure.** While [`Core::accepts_calls`] is false the host takes no further [`Input::Call`]; all other
//! inputs are always taken.
//!
//! **Time.** Every call gets [`Now`], wall and monotonic. [`Effect::Timer`] says when [`Input::Time`] is due; a
//! later `Timer` replaces an earlier one. Handing in `Time` too early or twice does no harm.

mod batch;
mod calls;
mod consistency;
mod core;
mod graph;
mod journal;
mod schedule;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod timers;
mod types;

pub use self::core::loading::OpenError;
pub use self::core::{Core, Counters};
pub use timers::attempts::Attempts;
pub use types::consistency::{Compared, Consistency, Finding, Rule};
pub use types::edit::{Applied, Batch, Change, Edit, Expect, NewResource, Target, Update};
pub use types::effect::{
    Answer, Commit, Effect, HistoryRow, OwnedView, Publish, RefView, Removed, RunOutcome, Settlement, Start,
    StatusUpdate, StopReason, Unreturned, Write,
};
pub use types::error::{Error, ErrorKind, Refusal, SourcePosition};
pub use types::explanation::{Blocker, Explanation, Subject};
pub use types::ids::{
    CallId, CommitId, Epoch, InvocationId, Refreshes, Revision, SpecVersion, StateVersion, Uid,
};
pub use types::input::{Call, CommitError, Input, Returned, Stored, StoredRow};
pub use types::kind::{
    AtStart, KindOptions, Limits, Nudging, OnOwned, OnTimedAncestor, Parents, Pool, RetryPolicy,
};
pub use types::name::{Key, Kind, NAME_MAX, Name, NameProblem, Ref, Required};
pub use types::no_op::NoOpRun;
pub use types::options_problem::OptionsProblem;
pub use types::reason::{CHAIN_MAX, Cause, Link, OmittedLinks, Priority, Reason, Trigger};
pub use types::row::{Deletion, Intents, Row};
pub use types::run::{LastRun, ObservedInputs, ObservedRef, Outcome, Phase, Repeats, RunResult, Work};
pub use types::stage::{Settled, Stage, Status};
pub use types::text::TEXT_MAX;
pub use types::time::{Mono, Now, Timestamp};

//! The event loop: owns the core, feeds it inputs, and carries out its effects.
//!
//! [`host`] holds the core and makes one turn at a time; [`driver`] is the loop's task, which runs the turns.

pub(crate) mod commit_delay;
pub(crate) mod committer;
pub(crate) mod debounce;
mod driver;
pub(crate) mod host;
pub(crate) mod initial_snapshot;
mod timer;

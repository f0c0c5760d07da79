//! Jobs and services: programs that run beside a project's data.
//!
//! A job runs once to completion, a service is kept running. What is decided about them stands in [`policy`]: pure
//! functions of what was observed, with no clock, no randomness and no IO of their own. What starts and stops processes
//! is a [`backend`], which decides nothing. In between are three kinds of the controller.
//!
//! | start at | for |
//! |---|---|
//! | [`Workloads`] | the kinds of one project, registered with a controller |
//! | [`job`] | programs that run once |
//! | [`service`] | programs that are kept running |
//! | [`replica`] | one running copy of a service: the kind that starts and stops processes |
//! | [`policy`] | all decisions, each with a table of its cases |
//! | [`backend::Backend`] | starting, listing and stopping processes |
//! | [`backend::simulated::World`] | a machine that does it all wrong, from a seed |

#![allow(
    clippy::result_large_err,
    reason = "an error of a run is made once and stored on its resource"
)]

pub mod backend;
pub mod job;
pub mod output;
pub mod policy;
pub mod replica;
pub mod service;

mod addresses;
mod backends;
mod cancels;
mod crash;
mod message;
mod observations;
mod ports;
mod probe;
mod program;
mod project;
mod refs;
mod render;
mod results;
mod settings;
mod shared;
mod transition;
mod watcher;
mod workloads;

#[cfg(test)]
mod tests;

pub use backend::Connect;
pub use crash::CRASH_POINTS;
pub use message::{Job, Service};
pub use observations::BackendStatus;
pub use policy::health::Probed;
pub use probe::{Asks, ProbeTarget};
pub use program::{Docker, Port, Ports, Program};
pub use render::{Render, Verbatim};
pub use results::{CheckResult, RESULTS_FOR, RESULTS_MAX, results_of};
pub use settings::{CheckSpec, Logs, Question, Stopping};
pub use transition::{TRANSITIONS_MAX, Transition};
pub use workloads::{JOBS_AT_ONCE, SCAN_INTERVAL, Workloads, WorkloadsBuilder};

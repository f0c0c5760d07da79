//! The data runtime: projects that are opened and kept converged inside a process.
//!
//! | module | holds |
//! |---|---|
//! | [`instance`] | an open project: start at [`Runtime`] |
//! | `http` | the API over HTTP, with the feature of that name |
//! | `sql` | the outputs by the protocol of Postgres, with the feature `pgwire` |
//! | [`documents`] | documents that the program prints for other programs, from [`watershed_api`] |
//! | [`logs`] | logs of invocations, stored on disk |
//! | `telemetry` | traces by OpenTelemetry, with the feature `otel` |
//! | [`state_folder`] | the folder that holds an environment's state, and the locks on it |
//! | [`exit`] | the exit codes of the program, from [`watershed_api`] |
//!
//! The program `watershed` is the crate `watershed-cli` above this one. The socket by which its commands talk to the process that
//! owns a state folder is no part of the library.

mod backup;
#[cfg(feature = "http")]
mod columns;
#[cfg(feature = "http")]
pub mod editor;
#[cfg(feature = "http")]
mod fenced;
// Public for the program, which writes the same forms.
#[doc(hidden)]
pub mod forms;
mod hiding;
#[cfg(feature = "http")]
pub mod http;
pub mod instance;
mod kept;
pub mod logs;
mod out;
#[cfg(feature = "http")]
mod projection;
mod report;
mod selection;
mod service;
#[cfg(feature = "http")]
mod slots;
#[cfg(feature = "pgwire")]
pub mod sql;
// Public for the tests and benchmarks that speak to it without the program.
#[doc(hidden)]
pub mod program;
#[doc(hidden)]
pub mod socket;
pub mod state_folder;
#[cfg(feature = "http")]
mod targets;
#[cfg(feature = "otel")]
pub mod telemetry;
pub mod units;

pub use instance::{Directory, Files, Instance, Links, Options, Runtime, Viewer, unfinished};
pub use instance::{directory, links};
pub use logs::LogFollower;
pub use service::{AnswerFile, Source};
pub use watershed_api as api;
pub use watershed_api::request::Selection;
pub use watershed_api::{Code, Problem, documents, exit};
pub use watershed_drivers::objects::{Prefix, PrefixError};
pub use watershed_drivers::olap::Exported;
pub use watershed_drivers::sandbox::WorkingFolder;
pub use watershed_drivers::shares::{MemoryShare, Share, Slots};
pub use watershed_metrics as metrics;

/// Returns an error with its causes, outermost first, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

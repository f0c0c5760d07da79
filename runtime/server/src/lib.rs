//! The data runtime and the `watershed` program.
//!
//! | module | holds |
//! |---|---|
//! | [`instance`] | a project brought to life: start at [`Runtime`] |
//! | [`cli`] | the program: command line, output, exit codes |
//! | [`documents`] | what the program prints for other programs |
//! | [`logs`] | what invocations say, kept on disk |
//! | [`state_folder`] | where an environment's state is kept and who may touch it |
//! | [`socket`] | how commands talk to the process that owns a state folder |
//! | [`exit`] | the exit codes |

mod backup;
pub mod cli;
pub mod documents;
pub mod exit;
mod hiding;
pub mod instance;
pub mod logs;
mod render;
mod report;
mod selection;
pub mod socket;
pub mod state_folder;
mod success;
mod sync;

pub use instance::{Files, Instance, LogFollower, Options, Runtime};
pub use socket::Selection;

/// An error with its causes, outermost first, in one line.
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

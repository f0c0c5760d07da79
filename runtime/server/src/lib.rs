//! The data runtime and the `watershed` program.
//!
//! | module | holds |
//! |---|---|
//! | [`cli`] | the program: command line, output, exit codes |
//! | [`documents`] | what the program prints for other programs |
//! | [`state_folder`] | where an environment's state is kept and who may touch it |
//! | [`socket`] | how commands talk to the process that owns a state folder |
//! | [`exit`] | the exit codes |

pub mod cli;
pub mod documents;
pub mod exit;
mod render;
mod report;
pub mod socket;
pub mod state_folder;

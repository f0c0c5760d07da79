//! Shared state of one engine: the outputs as reconcilers of all kinds know and change them.
//!
//! | module | holds |
//! |---|---|
//! | [`Outputs`] | the outputs in the engine, kept true through changes; the engine is opened only when something is to be done |
//! | [`traces`] | what migrations and connectors left there for everybody, as an input of what reads it |
//! | [`settings`], [`sessions`], [`access`], [`database`] | the settings that a project states: from rows of its catalog or from its files |
//! | [`secrets`] | values that are not to be seen |
//! | [`selection`] | the resources that a run is for |
//! | [`Asking`] | questions that read no row of a table |
//! | [`sql_parser`] | the engine's parser as the compiler asks for it |
//! | [`failure`] | errors of runs that all kinds share |
//! | [`refs`], [`literal`](mod@literal), [`digest`](mod@digest) | targets of refs, constants, digests of several parts |
//!
//! It stands above compilers and drivers and knows no kind but by its name.

#![allow(
    clippy::result_large_err,
    reason = "an error of a run is made once and stored on its resource"
)]

pub mod access;
pub mod database;
pub mod digest;
pub mod failure;
pub mod literal;
pub mod refs;
pub mod secrets;
pub mod selection;
pub mod sessions;
pub mod settings;
pub mod sql_parser;
pub mod traces;

mod outputs;
mod question;

pub use outputs::{Claim, Lookup, Outputs};
pub use question::{Asking, Described};
pub use settings::EngineSettings;

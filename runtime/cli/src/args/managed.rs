//! The command line of `set` and `event`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use crate::candidates::complete_names;
use crate::values::Desired;

/// The arguments of `set`.
#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Managed resource, by `name` or `kind/name`.
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete_names))]
    pub name: String,
    /// Desired stage, until `desired` in the resource's file changes.
    #[arg(value_name = "desired=STAGE")]
    pub change: Desired,
}

/// The arguments of `event`.
#[derive(Debug, Args)]
pub(crate) struct Event {
    /// File with a CloudEvent as JSON, or a list of them; `-` for the standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

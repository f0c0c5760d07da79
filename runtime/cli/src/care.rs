//! `doctor`, `gc`: upkeep of a project's state.

use watershed_api::operations::ops;
use watershed_api::request::NoInput;
use watershed_api::{Exit, Operation as _};

use super::args::{Doctor, Format, Gc, Shared};
use super::ask::{ask, ask_at};
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::project::Location;

/// Runs the command `doctor`.
pub(super) fn doctor(console: &mut Console, shared: &Shared, args: &Doctor) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let location = Location::find(shared, None)?;
    let is_there = location.state.exists() || location.state.engine().exists();
    let request = match args.repair && is_there {
        true => ops::Repair::request(NoInput {}),
        false => ops::Doctor::request(NoInput {}),
    };
    ask_at(console, shared, &location, format, request)
}

/// Runs the command `gc`.
pub(super) fn gc(console: &mut Console, shared: &Shared, _args: &Gc) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    ask(console, shared, format, ops::Gc::request(NoInput {}))
}

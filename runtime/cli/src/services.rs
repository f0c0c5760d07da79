//! `scale`, `restart`, `rollback`: changes of services by hand.

use watershed_api::operations::ops;
use watershed_api::request::{RestartRequest, RollbackRequest, ScaleRequest};
use watershed_api::{Exit, Operation as _};

use super::args::{Format, Restart, Rollback, Scale, Shared};
use super::ask::ask;
use super::console::{Console, choose_format};
use super::failure::Failure;

/// Runs the command `scale`.
pub(super) fn scale(console: &mut Console, shared: &Shared, args: &Scale) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let request = ScaleRequest {
        names: vec![args.name.clone()],
        replicas: args.replicas.0,
    };
    ask(console, shared, format, ops::Scale::request(request))
}

/// Runs the command `restart`.
pub(super) fn restart(console: &mut Console, shared: &Shared, args: &Restart) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let request = RestartRequest {
        names: args.names.clone(),
        now: args.now,
    };
    ask(console, shared, format, ops::Restart::request(request))
}

/// Runs the command `rollback`.
pub(super) fn rollback(console: &mut Console, shared: &Shared, args: &Rollback) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let request = RollbackRequest {
        names: vec![args.name.clone()],
        to: args.to,
    };
    ask(console, shared, format, ops::Rollback::request(request))
}
